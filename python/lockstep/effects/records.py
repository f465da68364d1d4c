# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow writes in C++: event files and TFRecords of ranks other than 0 go to their own folder, and what
TensorFlow then reads in C++ is waited for until rank 0 has written it.

Seams: the operator that opens an event file (tf.summary, TensorBoard), the profiler, TFRecordWriter, tf.io.write_file; for
reading: the making of an iterator over data, tf.io.read_file, tables from text files."""
import os
import weakref

import tensorflow as tf
from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.lib.io import tf_record
from tensorflow.python.ops import gen_io_ops, gen_summary_ops, lookup_ops
from tensorflow.python.profiler import profiler_v2

from lockstep import hooks, world
from lockstep.effects import files, journal, overlay, tf_files


def attach():
    if world.size == 1:
        return
    if world.is_root():
        _attach_root()
        _before_reading(journal.look)
        return
    _attach_events()
    _attach_records()
    _attach_read_file()
    _before_reading(overlay.settle)


def _attach_root():
    @hooks.wrap(tf_record.TFRecordWriter, "__init__")
    def init(original, self, path, *args, **kwargs):
        files.touch(path, journal.REWRITE)
        return original(self, path, *args, **kwargs)

    @hooks.wrap(tf.io, "write_file")
    def write_file(original, filename, *args, **kwargs):
        if tf.executing_eagerly():
            path = os.fsdecode(filename.numpy() if tf.is_tensor(filename) else filename)
            files.touch_folders(os.path.dirname(path))
            files.touch(path, journal.REWRITE)
        return original(filename, *args, **kwargs)


def _attach_events():
    @hooks.wrap(gen_summary_ops, "create_summary_file_writer")
    def create_writer(original, writer, logdir, *args, **kwargs):
        return original(writer, overlay.shadow("/events"), *args, **kwargs)

    @hooks.wrap(profiler_v2, "start")
    def start(original, logdir, *args, **kwargs):
        return original(overlay.shadow("/profile"), *args, **kwargs)


def _attach_records():
    @hooks.wrap(tf_record.TFRecordWriter, "__init__")
    def init(original, self, path, options=None):
        if "://" in os.fsdecode(path):
            return original(self, overlay.shadow("/records"), options)
        original(self, overlay.to_write(path), options)
        overlay.note_open(path, weakref.ref(self))
        return None

    def closing(original, self, *args):
        original(self, *args)
        self.closed = True

    for name in ("close", "__exit__"):
        hooks.wrap(tf_record.TFRecordWriter, name)(closing)

    @hooks.wrap(tf.io, "write_file")
    def write_file(original, filename, contents, name=None):
        if not tf.executing_eagerly():
            return original(filename, contents, name)
        text = os.fsdecode(filename.numpy() if tf.is_tensor(filename) else filename)
        if "://" in text:
            return None
        os.makedirs(os.path.dirname(os.path.abspath(text)), exist_ok=True)
        return original(overlay.to_write(text), contents, name)


def _attach_read_file():
    """An eager read of a path is of this rank's file, which rank 0 may have written anew already."""
    @hooks.wrap(gen_io_ops, "read_file")
    def read_file(original, filename, name=None):
        if tf.executing_eagerly() and not (tf.is_tensor(filename) and filename.shape.rank):
            text = os.fsdecode(filename.numpy() if tf.is_tensor(filename) else filename)
            filename = text if "://" in text else tf_files.or_itself(text)
        return original(filename, name)


def _before_reading(act):
    def reading(original, *args, **kwargs):
        act()
        return original(*args, **kwargs)

    hooks.wrap(iterator_ops.OwnedIterator, "__init__")(reading)
    hooks.wrap(gen_io_ops, "read_file")(reading)
    hooks.wrap(lookup_ops.TextFileInitializer, "__init__")(reading)
