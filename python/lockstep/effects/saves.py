# SPDX-License-Identifier: Apache-2.0
"""Models and checkpoints are written by rank 0; the others wait until they are whole (once.py).

Seams: the functions of Keras 3 and tf_keras that write a file, which save(), save_weights(), ModelCheckpoint and
BackupAndRestore all come to; MultiDeviceSaver.save, below every tf.train.Checkpoint and CheckpointManager;
save_and_return_nodes, below tf.saved_model.save and Keras's export.  What these write around it (the `checkpoint` file,
metadata, deletions of old checkpoints) are plain files (files.py)."""
import collections
import importlib
import os

import tensorflow as tf
from tensorflow.python.checkpoint import checkpoint, checkpoint_management, functional_saver
from tensorflow.python.eager.polymorphic_function import function_context
from tensorflow.python.saved_model import load as loaded_model, save as saved_model

from lockstep import hooks, world
from lockstep.effects import overlay, whole
from lockstep.effects.once import follow, once, share, wait_for_readers

# (module, function): the second argument is the path
_KERAS = (("saving.saving_lib", "save_model"), ("saving.saving_lib", "save_weights_only"),
          ("legacy.saving.legacy_h5_format", "save_model_to_hdf5"))
_TF_KERAS = (("saving.saving_lib", "save_model"), ("saving.saving_lib", "save_weights_only"),
             ("saving.legacy.hdf5_format", "save_model_to_hdf5"), ("saving.legacy.saved_model.save", "save"))


def attach_keras():
    for module, name in _KERAS:
        _attach_writer(importlib.import_module(f"keras.src.{module}"), name)
    _attach_names()


def _attach_names():
    """Keras makes objects to look at while it saves and loads: they are no part of the model, but take names."""
    from keras.src.backend.common import global_state
    from keras.src.saving import saving_lib

    def names():
        return dict(global_state.get_global_attribute("object_name_uids") or {})

    def take(given):
        global_state.set_global_attribute("object_name_uids", collections.defaultdict(int, given))

    follow("keras names", names, take)
    if hasattr(saving_lib, "get_attr_skipset"):
        @hooks.wrap(saving_lib, "get_attr_skipset")
        def skipset(original, *args):
            with world.alone():
                return original(*args)


def attach_tf_keras():
    for module, name in _TF_KERAS:
        _attach_writer(importlib.import_module(f"tf_keras.src.{module}"), name)


def _attach_writer(module, name):
    if not hasattr(module, name):
        return

    @hooks.wrap(module, name)
    def write(original, model, filepath, *args, **kwargs):
        if not isinstance(filepath, (str, os.PathLike)):
            return original(model, filepath, *args, **kwargs)  # memory of this process

        def act():
            if kwargs.get("max_shard_size"):  # several files
                return original(model, filepath, *args, **kwargs)
            with whole.replaced(filepath) as path:
                return original(model, path, *args, **kwargs)

        return once("save model", act, filepath)


def attach():
    if world.size == 1:
        return
    _attach_checkpoint()
    _attach_saved_model()


def _attach_checkpoint():
    @hooks.wrap(functional_saver.MultiDeviceSaver, "save")
    def save(original, self, file_prefix, options=None):
        if not tf.executing_eagerly():
            return original(self, file_prefix, options)
        path = file_prefix.numpy() if tf.is_tensor(file_prefix) else file_prefix

        def act():
            original(self, file_prefix, options)

        return once("save checkpoint", act, path)

    @hooks.wrap(functional_saver.MultiDeviceSaver, "restore")
    def restore(original, self, file_prefix, options=None):
        result = original(self, file_prefix, options)
        if tf.executing_eagerly():
            wait_for_readers("restore checkpoint")
        return result

    # Names with the time of day in them, and temporary folders, differ between ranks: rank 0's is taken, and returned to the script.
    for name in ("save", "write"):
        @hooks.wrap(checkpoint.Checkpoint, name)
        def with_prefix(original, self, file_prefix, *args, **kwargs):
            if not tf.executing_eagerly():
                return original(self, file_prefix, *args, **kwargs)
            own = os.fsdecode(file_prefix)
            prefix = share(own, "name of checkpoint")
            written = original(self, prefix, *args, **kwargs)
            if own != prefix:
                _find_again(own, prefix, written)
            return written

    @hooks.wrap(checkpoint.Checkpoint, "read")
    def read(original, self, save_path, *args, **kwargs):
        return original(self, save_path if save_path is None else overlay.as_saved(save_path), *args, **kwargs)

    @hooks.wrap(checkpoint_management.CheckpointManager, "__init__")
    def init(original, self, checkpoint, directory, *args, **kwargs):
        if tf.executing_eagerly():
            directory = share(os.fsdecode(directory), "name of checkpoint folder")
        return original(self, checkpoint, directory, *args, **kwargs)


def _find_again(own, prefix, written):
    """This rank finds the checkpoint, and the file that says which one is the last, where it asked for them."""
    overlay.call_it(own + written.removeprefix(prefix), written)
    overlay.call_it(os.path.join(os.path.dirname(own), "checkpoint"), os.path.join(os.path.dirname(prefix), "checkpoint"))


def _attach_saved_model():
    @hooks.wrap(saved_model, "save_and_return_nodes")
    def save(original, obj, export_dir, *args, **kwargs):
        return once("save SavedModel", lambda: original(obj, export_dir, *args, **kwargs), export_dir) or ([], {})

    # Its variables are read in C++, by the name that rank 0 gave the folder.
    @hooks.wrap(loaded_model, "load_partial")
    def load(original, export_dir, *args, **kwargs):
        return original(overlay.as_saved(export_dir), *args, **kwargs)

    # A SavedModel has the graphs of the script's functions, and must load where there is no Lockstep: functions that
    # were traced with our operators are traced again without.  TensorFlow does so when the context of a function differs.
    original = function_context.make_function_context

    def make_function_context(scope_type=None):
        if world.is_alone() and scope_type is None:
            scope_type = "lockstep: one rank"
        return original(scope_type)

    function_context.make_function_context = make_function_context
