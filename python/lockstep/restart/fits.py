# SPDX-License-Identifier: Apache-2.0
"""Which call of fit() a script is in, and what is done there after a restart.

A position is (epochs done in this fit, batches drawn of the next one).  A front end tells: fit_begins, then for each batch
step(), and fit_ends; and it knows how to draw batches without computing on them (keras_fits.py)."""
import json
import re
import sys

from lockstep import gradients, host, native, noise, say, world
from lockstep.restart import contents, folder, wishes, writer

# The engine's words, also in TensorFlow's errors.
LOST_RANK = re.compile(r"rank \d+ \(.*\) (is gone|does not respond)|given up this one|not all ranks have started")
END_CODE = 75  # EX_TEMPFAIL of sysexits.h: start again to go on
state = None  # the folder; None: there are no snapshots
_count = 0
_current = None


class Fit:
    """One call of fit().  `snapshot`: where it goes on (meta and parts), None: from its beginning."""

    def __init__(self, number, model, snapshot):
        self.number, self.model, self.snapshot = number, model, snapshot
        self.callbacks = []
        self.first_epoch, self.epochs, self.batches = 0, 0, 0
        self.is_begun = False  # on_train_begin was called
        self.source = None  # what gives the batches to train on
        self.epoch_states = None
        self.is_computed = False  # a step was run: all variables exist
        self.clock = wishes.Clock(state)

    @property
    def has_ended(self):
        return self.snapshot is not None and self.snapshot.meta["end"]

    @property
    def position(self):
        """Where the snapshot was taken."""
        return self.snapshot.meta["epochs"], self.snapshot.meta["batches"]


class Shared:
    """A snapshot that rank 0 has open, for all ranks; they call each function together."""

    def __init__(self, found):
        self._found = found
        text = json.dumps({"name": found.name, **found.meta}).encode() if found is not None else b""
        text = host.broadcast_bytes(text, "restart/meta")
        self.meta = json.loads(text) if text else None

    def part(self, index):
        return host.broadcast_bytes(self._found.part(index) if world.is_root() else b"", "restart/part")

    def close(self):
        if self._found is not None:
            self._found.close()


def attach():
    global state
    state = native.setting("STATE") or None
    if state is None:
        return
    if world.is_root():
        with world.alone():
            folder.make(state)
    wishes.attach()
    gradients.listen_to_steps(_note_step)
    gradients.listen(_note_graph)
    noise.listen_to_stateful(_note_stateful)
    _keep_errors()


def current():
    return _current


def fit_begins(model):
    """None for a fit() inside of another, which belongs to that one's steps."""
    global _count, _current
    if state is None or _current is not None:
        return None
    _count += 1
    _current = Fit(_count, model, _find(_count))
    if _current.snapshot is not None and not _current.has_ended:
        meta = _current.snapshot.meta
        _tell(f"fit() number {_count} goes on from {meta['name']}: epoch {meta['epoch'] + 1}, step {meta['batches']}")
    return _current


def _find(number):
    """The snapshot that this call of fit() goes on from."""
    found = None
    if world.is_root():
        with world.alone():  # the folder is no file of the script
            found = folder.end_of_fit(state, number, _tell) or _in_the_middle_of(number)
    shared = Shared(found)
    return shared if shared.meta is not None else None


def _in_the_middle_of(number):
    found = folder.newest(state, _tell)
    if found is not None and found.meta["fit"] != number:
        found.close()
        return None
    return found


def fit_ends(fit):
    """It returned.  What it left is kept, or put in place."""
    global _current
    _current = None
    if fit.has_ended:
        restore(fit)  # again: on_train_end may have changed something
        is_there(fit)
    else:
        _keep(fit, f"fit-{fit.number:06}", is_end=True)
    if fit.clock.must_end():
        _end("with a snapshot")


def is_there(fit):
    """The fit is where its snapshot was taken."""
    fit.snapshot.close()
    fit.snapshot = None


def fit_fails():
    global _current
    _current = None


# ---- steps ---------------------------------------------------------------------------------------------------

def epoch_begins(fit):
    """The first batch of an epoch is about to be drawn."""
    fit.batches = 0
    fit.epoch_states = contents.random_states()


def step(fit, epoch):
    """A batch is about to be computed: here a snapshot may be taken, or the job end."""
    _report_error()
    is_due, must_end = fit.clock.look(writer.is_busy())
    if is_due and (fit.epochs, fit.batches) != (0, 0):  # at the beginning there is nothing to keep
        _keep(fit, None, is_end=False, epoch=epoch)
    if must_end:
        _end("with a snapshot" if (fit.epochs, fit.batches) != (0, 0) else "before the first step of this fit(), with nothing new to keep")


def _keep(fit, name, is_end, epoch=0):
    kept = None
    if world.is_root():
        kept = contents.Contents({
            "fit": fit.number, "end": is_end, "epochs": fit.epochs, "batches": fit.batches, "epoch": epoch,
            "random": {"now": contents.random_states(), "epoch": fit.epoch_states},
            "stop_training": bool(getattr(fit.model, "stop_training", False))})
        kept.meta["callbacks"] = contents.callbacks_of(fit.callbacks, kept)
    contents.add_variables(kept, fit.model)
    if world.is_root():
        writer.write(state, name, kept)


def restore(fit):
    """Puts what the snapshot has in place; all ranks together."""
    meta = fit.snapshot.meta
    contents.put_variables(meta["variables"], fit.snapshot.part, fit.model)
    contents.put_callbacks(fit.callbacks, meta["callbacks"], fit.snapshot.part)
    fit.model.stop_training = meta["stop_training"]
    if meta["end"]:
        contents.put_random_states(meta["random"]["now"])


def _report_error():
    error = writer.take_error()
    if error is not None:
        say.once(f"error: no snapshot was written ({error}); training goes on, the one before is intact")


def _end(how):
    """All ranks are here: the snapshot is brought to the disk, and every rank ends with the same code."""
    writer.wait()
    error = writer.take_error() if world.is_root() else None
    failed = bool(host.broadcast(_number(error is not None), "snapshot/failed")[0])
    if failed:
        say.once(f"error: no snapshot was written before the end that was asked for ({error})")
    else:
        _tell(f"ended as asked, {how} in {state}: start again to go on")
    sys.exit(1 if failed else END_CODE)


def _number(value):
    import numpy as np
    return np.array([int(value)], np.int64)


def _tell(text):
    if world.is_root():
        print(f"lockstep: {text}", file=sys.stderr, flush=True)


# ---- what cannot go on ---------------------------------------------------------------------------------------

def _note_step():
    if _current is None:
        say.once("LOCKSTEP_STATE: snapshots are made in fit() only, and this script trains in a loop of its own. After a failure it "
                 "begins again, unless it restores a checkpoint itself (tf.train.CheckpointManager)")


def _note_graph():
    import tensorflow as tf
    if not tf.executing_eagerly() and not tf.inside_function() and _current is None:
        say.once("LOCKSTEP_STATE: snapshots are made in fit() only, and this script trains in a Session. After a failure it begins "
                 "again, unless it restores a checkpoint itself (MonitoredTrainingSession with checkpoint_dir does, Saver)")


def _note_stateful(name):
    if _current is not None:
        say.once(f"LOCKSTEP_STATE: the numbers that {name} draws inside of a graph begin anew after a restart: the result will then not be "
                 "that of an undisturbed run (Dropout of tf_keras, tf.random.uniform; use Keras 3's layers or tf.random.Generator)")


# ---- errors of the script ------------------------------------------------------------------------------------

def note_error(error):
    """`lockstep run` starts again where a rank was lost, and not a script that ends with the same error at the same place."""
    place = [_count, _current.epochs, _current.batches] if _current is not None else [_count, -1, -1]
    name = folder.LOST if LOST_RANK.search(str(error)) else folder.ERROR
    try:
        if native.setting("STATE"):
            with world.alone():
                folder.put_text(native.setting("STATE"), name, {"error": f"{type(error).__name__}: {error}"[:1000], "place": place})
    except (OSError, native.LockstepError):
        pass  # a rank of a host that does not see the folder; settings that are wrong


def _keep_errors():
    before = sys.excepthook

    def hook(kind, error, trace):
        if world.on() and not issubclass(kind, KeyboardInterrupt):
            note_error(error)
        before(kind, error, trace)

    sys.excepthook = hook
