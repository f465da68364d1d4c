# SPDX-License-Identifier: Apache-2.0
"""Every rank sees the samples in the same order: pipelines that may give them as they come are told to keep it.

Slices are cut from batches that must be equal on all ranks: with another order on each, samples would be missing and
others counted twice.  Seams: the argument `deterministic` of the methods of tf.data.Dataset, and tf.data.Options."""
import inspect

from tensorflow.python.data.ops import dataset_ops

from lockstep import hooks, native, world

_METHODS = ("map", "interleave", "batch")


def attach():
    if world.size == 1 or native.setting("SHARD") == "off":
        return
    for name in _METHODS:
        _keep_order(name)

    @hooks.wrap(dataset_ops.DatasetV2, "with_options")
    def with_options(original, self, options, name=None):
        if options is not None and options.deterministic is False:
            options = dataset_ops.Options().merge(options)  # a copy: the script's own stays as it is
            options.deterministic = True
        return original(self, options, name)


def _keep_order(name):
    signature = inspect.signature(getattr(dataset_ops.DatasetV2, name))

    @hooks.wrap(dataset_ops.DatasetV2, name)
    def method(original, *args, **kwargs):
        given = signature.bind(*args, **kwargs)
        if given.arguments.get("deterministic") is False:
            given.arguments["deterministic"] = True
        return original(*given.args, **given.kwargs)
