# SPDX-License-Identifier: Apache-2.0
"""LOCKSTEP_NAN: gradients that are not finite.

The engine says which variable's, and on which rank it was (src/engine/unfinite.c).  After the reduction all ranks have the
same gradient, so what is decided by it is decided alike: `stop` ends every rank with an error that names the variable,
`skip` leaves the optimizer's step out.  Who scales the loss of float16 expects infinite gradients and looks at them
itself: then nothing is done here."""
import tensorflow as tf

from lockstep import hooks, native, say, variables

_is_expected = False


def attach_keras():
    from keras.src.optimizers import loss_scale_optimizer
    _attach_scaling(loss_scale_optimizer.LossScaleOptimizer)


def attach_tf_keras():
    from tf_keras.src.mixed_precision import loss_scale_optimizer
    for name in ("LossScaleOptimizer", "LossScaleOptimizerV3"):
        _attach_scaling(getattr(loss_scale_optimizer, name))


def _attach_scaling(owner):
    @hooks.wrap(owner, "__init__")
    def init(original, self, *args, **kwargs):
        global _is_expected
        _is_expected = True
        native.expect_unfinite()
        return original(self, *args, **kwargs)


def checked(grads, sources):
    """The reduced gradients; with LOCKSTEP_NAN=stop a bad one is an error on every rank."""
    if native.setting("NAN") != "stop" or _is_expected:
        return grads
    return [_checked(grad, source) for grad, source in zip(grads, sources)]


def _checked(grad, source):
    if grad is None:
        return None
    text = f"LOCKSTEP_NAN=stop: the gradient of '{variables.key(source)}' is not finite; which rank it came from is said above"
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(tf.debugging.check_numerics(grad.values, text), grad.indices, grad.dense_shape)
    return tf.debugging.check_numerics(grad, text) if grad.dtype.is_floating else grad


def apply(optimizer, grads, sources, act):
    """act() applies the gradients; with LOCKSTEP_NAN=skip only where all of them are finite."""
    if native.setting("NAN") != "skip" or _is_expected:
        return act()
    values = [grad.values if isinstance(grad, tf.IndexedSlices) else grad for grad in grads if grad is not None]
    is_finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(value)) for value in values])
    if tf.executing_eagerly():
        return act() if is_finite else None
    if not hasattr(optimizer, "build"):
        raise native.LockstepError(f"LOCKSTEP_NAN=skip: the step of {type(optimizer).__name__} cannot be left out; use stop or warn")
    if not (getattr(optimizer, "built", False) or getattr(optimizer, "_built", False)):
        with tf.init_scope():  # no variable can be made in a branch
            optimizer.build([source for source, grad in zip(sources, grads) if grad is not None])
    say.once("LOCKSTEP_NAN=skip: steps whose gradients are not finite are left out on all ranks")

    def applied():
        act()
        return tf.constant(True)

    tf.cond(is_finite, applied, lambda: tf.constant(False))
    return optimizer.iterations
