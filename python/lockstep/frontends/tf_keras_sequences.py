# SPDX-License-Identifier: Apache-2.0
"""tf_keras.utils.Sequence with several workers, also ImageDataGenerator's.

A thread of tf_keras goes through the batches of an epoch.  When all have been taken it shuffles and begins anew, unless the
epoch has ended within a tenth of a second: then it is stopped, and the next epoch has a thread of its own.  Whether
on_epoch_end() and shuffle() are called once or twice is a matter of time, so ranks would go on with different batches.  Here the
thread begins anew only where the epoch needs more batches than the sequence has (steps_per_epoch).

Seams: KerasSequenceAdapter, which knows how many batches an epoch takes; OrderedEnqueuer._wait_queue, after each pass."""
from lockstep import hooks, world
from lockstep.slices import weak


def attach():
    from tf_keras.src.engine import data_adapter
    from tf_keras.src.utils import data_utils

    @hooks.wrap(data_adapter.KerasSequenceAdapter, "__init__")
    def init(original, self, x, *args, **kwargs):
        self._lockstep_batches = _batches_of_epoch(kwargs.get("steps") or len(x))
        original(self, x, *args, **kwargs)

    @hooks.wrap(data_adapter.KerasSequenceAdapter, "_handle_multiprocessing")
    def handle_multiprocessing(original, self, *args, **kwargs):
        make_batches = original(self, *args, **kwargs)

        def make_limited():
            batches = make_batches()
            if self._enqueuer and world.size > 1:
                self._enqueuer._lockstep_batches_left = self._lockstep_batches
            return batches

        return make_limited

    @hooks.wrap(data_utils.OrderedEnqueuer, "_wait_queue")
    def wait_queue(original, self):
        original(self)
        if not hasattr(self, "_lockstep_batches_left"):  # made by the script, for a loop of its own
            return
        self._lockstep_batches_left -= len(self.sequence)
        if self._lockstep_batches_left <= 0:
            self.stop_signal.wait()


def _batches_of_epoch(steps):
    """With LOCKSTEP_BATCH=per-rank every rank gets a batch in each step."""
    return -(-steps // world.size) * world.size if weak.is_on() else steps
