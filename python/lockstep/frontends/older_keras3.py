# SPDX-License-Identifier: Apache-2.0
"""What older versions of Keras 3 do in other places than the present one.

Before 3.7 there is a method for each function that Trainer._make_function makes since then.  Seam: make_train_function and
make_test_function.  The functions they make call self.train_step when they are traced: while one of them runs, the model has a
step of ours in its place.  Its variables draw their initial values before TensorFlow's are made; variables.py would not see
it.  And compute_loss() itself sums up what layers gave to add_loss().

Before 3.13 a small number is added to the number of entries that a mask leaves, before 3.14 penalties on activities are sums over
the batch, not means."""
import contextlib

import tensorflow as tf

from lockstep import hooks
from lockstep.frontends import steps
from lockstep.slices import current, part as parts


def attach_variables():
    """Initial values are drawn for the variable, not for the rows of a slice, however many it has."""
    from keras.src.backend.tensorflow.core import Variable
    for name in ("__init__", "_deferred_initialize"):
        @hooks.wrap(Variable, name)
        def whole(original, self, *args, **kwargs):
            with current.scope(parts.WHOLE):
                return original(self, *args, **kwargs)


def attach_steps(trainer_class, choosing):
    """choosing(make, trains) is the function that picks, for each iterator, one of those that make(step) gives."""
    for kind in ("train", "test"):
        _attach_step(trainer_class, kind, choosing)


def _attach_step(trainer_class, kind, choosing):
    name = f"{kind}_function"

    @hooks.wrap(trainer_class, f"make_{name}")
    def make_function(original, self, force=False):
        if getattr(self, name) is not None and not force:
            return getattr(self, name)

        def make(step):
            kept = getattr(self, name)
            original(self, True)  # each has traces of its own
            made = _with_step(getattr(self, name), self, f"{kind}_step", step)
            setattr(self, name, kept)
            return made

        function = choosing(make, kind == "train")
        setattr(self, name, steps.counted(function, self) if kind == "train" else function)
        return getattr(self, name)


def _with_step(function, model, name, step):
    def function_with_step(iterator):
        with _replaced(model, name, step(getattr(model, name))):
            return function(iterator)

    return function_with_step


def attach_added_losses():
    from keras.src.trainers.trainer import Trainer

    @hooks.wrap(Trainer, "compute_loss")
    def compute_loss(original, self, *args, **kwargs):
        """One number for each row was summed over the slice's rows."""
        loss = original(self, *args, **kwargs)
        for added in self.losses if steps.is_sliced() else []:
            if steps.has_rows(added):
                total = tf.reduce_sum(tf.cast(added, loss.dtype))
                loss += steps.sum_as_mean(total) - total
        return loss


def added_to_valid(mask, dtype):
    """What is added to the part of its entries that a mask leaves."""
    from keras.src import backend
    return tf.constant(backend.epsilon(), dtype) / tf.cast(tf.size(mask, tf.int64), dtype)


def attach_activity_penalties():
    from keras.src.layers.layer import Layer

    @hooks.wrap(Layer, "__call__")
    def call_layer(original, self, *args, **kwargs):
        penalty = self.__dict__.get("activity_regularizer")
        if penalty is None or not steps.is_sliced():
            return original(self, *args, **kwargs)
        with _replaced(self, "activity_regularizer", lambda output: steps.sum_as_mean(penalty(output))):
            return original(self, *args, **kwargs)


@contextlib.contextmanager
def _replaced(owner, name, value):
    """Not with setattr: Keras tracks attributes."""
    own = owner.__dict__
    before = own.get(name)
    own[name] = value
    try:
        yield
    finally:
        if before is None:
            del own[name]
        else:
            own[name] = before
