# SPDX-License-Identifier: Apache-2.0
"""Lockstep from Python: where this process stands in the job, and collectives on TensorFlow's tensors.

Importing this package starts nothing and imports neither TensorFlow nor the C library: it happens at the start of every
rank's Python.  rank() and its kin start the engine, which joins the MPI job; the collectives (lockstep.ops) import
TensorFlow too."""
import importlib

_FROM = {
    "lockstep.native": ("include_path", "is_root", "lib_path", "local_rank", "local_size", "rank", "size", "start", "stop"),
    "lockstep.ops": ("allreduce", "allreduce_group", "broadcast", "allgather", "reduce_scatter", "alltoall", "barrier"),
    "lockstep.data": ("DataSet",),
}

__all__ = [name for names in _FROM.values() for name in names]


def __getattr__(name):
    for module, names in _FROM.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    if name == "data":
        return importlib.import_module("lockstep.data")
    if name == "__version__":
        from importlib.metadata import version
        return version("lockstep")
    raise AttributeError(f"module 'lockstep' has no attribute '{name}'")


def __dir__():
    return [*globals(), *__all__, "data", "__version__"]
