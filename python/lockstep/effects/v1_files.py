# SPDX-License-Identifier: Apache-2.0
"""Files that v1 scripts write come from rank 0; the others wait until they are whole.

  Saver.save, write_graph           rank 0 writes; all go on with its result, or its error
  Saver.restore                     ends when all ranks have read
  SavedModelBuilder                 rank 0 builds and writes
  FileWriter                        writes nothing on other ranks, which wait when rank 0 flushes or closes
  timers of hooks (every N seconds) rank 0's clock decides: a save is something that all ranks take part in

Services of a Supervisor run in threads of their own, at any time: they write on rank 0 and do nothing elsewhere."""
import threading

import numpy as np
from tensorflow.python.framework import graph_io
from tensorflow.python.saved_model import builder_impl
from tensorflow.python.summary.writer import writer
from tensorflow.python.training import basic_session_run_hooks, saver, supervisor, training_util

from lockstep import hooks, host, say, world
from lockstep.effects import once


def attach():
    if world.size == 1:
        return
    _attach_saver()
    _attach_graph_files()
    _attach_saved_model()
    _attach_supervisor()
    _attach_events()

    @hooks.wrap(basic_session_run_hooks.SecondOrStepTimer, "should_trigger_for_step")
    def should_trigger_for_step(original, self, step):
        own = original(self, step)
        if self._every_secs is None or not _all_take_part():
            return own
        return bool(host.broadcast(np.array([own], np.uint8), "timer")[0])


def _all_take_part():
    """Threads other than the main one do not run at the same points on all ranks."""
    return threading.current_thread() is threading.main_thread()


def _once(what, act, path=""):
    """As once.once in the main thread; in others rank 0 acts, and nobody waits."""
    if _all_take_part():
        return once.once(what, act, path)
    if not world.is_root():
        return None
    with world.alone():
        return act()


# ---- checkpoints ---------------------------------------------------------------------------------------------

def _attach_saver():
    @hooks.wrap(saver.Saver, "save")
    def save(original, self, sess, save_path, *args, **kwargs):
        if _all_take_part():
            _agree_on_state(sess)

        def act():
            path = original(self, sess, save_path, *args, **kwargs)
            return [path, self._last_checkpoints]

        value = _once("save a checkpoint", act, save_path)
        if value is None:
            return save_path
        path, last = value
        if not world.is_root():
            self.set_last_checkpoints_with_time([tuple(item) for item in last])
        return path


    @hooks.wrap(saver.Saver, "restore")
    def restore(original, self, sess, save_path):
        original(self, sess, save_path)
        once.wait_for_readers("restore a checkpoint")


def _agree_on_state(sess):
    from lockstep.frontends.v1 import runs
    runs.settle(sess)


# ---- graphs and models ---------------------------------------------------------------------------------------

def _attach_graph_files():
    for module in (graph_io, training_util):
        @hooks.wrap(module, "write_graph")
        def write_graph(original, *args, **kwargs):
            return _once("write a graph", lambda: original(*args, **kwargs))


def _attach_saved_model():
    for kind in (builder_impl._SavedModelBuilder, builder_impl.SavedModelBuilder):
        for name in ("__init__", "add_meta_graph", "add_meta_graph_and_variables", "save"):
            if name in kind.__dict__:
                _attach_step(kind, name)


def _attach_step(kind, name):
    @hooks.wrap(kind, name)
    def step(original, self, *args, **kwargs):
        if name == "add_meta_graph_and_variables" and _all_take_part():
            _agree_on_state(args[0] if args else kwargs["sess"])

        def act():
            value = original(self, *args, **kwargs)
            return None if value is None else value.decode() if isinstance(value, bytes) else value

        return _once(f"save a model ({name})", act)


# ---- events --------------------------------------------------------------------------------------------------

class _NoEvents:
    """An event writer that writes nothing."""

    def __init__(self, *args, **_):
        self._folder = next((arg for arg in args if isinstance(arg, (str, bytes))), "")

    def get_logdir(self):
        return self._folder

    def add_event(self, event):
        pass

    def flush(self):
        pass

    def close(self):
        pass

    def reopen(self):
        pass


def _attach_events():
    """What was flushed can be read on every rank."""
    if not world.is_root():
        writer.EventFileWriter = writer.EventFileWriterV2 = _NoEvents
    for name in ("flush", "close"):
        @hooks.wrap(writer.FileWriter, name)
        def write_all(original, self):
            return _once("write events", lambda: original(self))


def _attach_supervisor():
    @hooks.wrap(supervisor.SVSummaryThread, "run_loop")
    def run_loop(original, self):
        from lockstep.frontends.v1 import walk
        takes = any(op.type.startswith("IteratorGetNext") or "Dequeue" in op.type
                    for op in walk.before([self._sv.summary_op]))
        if takes:
            say.once("the summaries of the Supervisor need a batch, and its thread would take one on some ranks only: it does not "
                     "run; fetch the summaries in the training loop")
        elif world.is_root():
            original(self)
