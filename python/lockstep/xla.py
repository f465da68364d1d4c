# SPDX-License-Identifier: Apache-2.0
"""All-reduce in functions that XLA compiles (jit_compile=True).

XLA refuses operators it does not know.  It takes a custom call: a function registered under a name, which gets
buffers and a text.  The call blocks, so a list of tensors goes into one call (see src/tf/xla.c).

The programs that ranks compile may differ, by the rows of a slice, and XLA orders calls as it likes: a rank could wait in one
call for a rank that waits in another.  So each call of a function is given a result of the one before, as an operand that
is not looked at."""
import sys

import tensorflow as tf

from lockstep import native, ops

TARGET = "lockstep_tf_xla_allreduce"


def is_compiling():
    """Is a function with jit_compile=True being traced?  TensorFlow keeps this only in the tf.function itself, which
    is somewhere up the stack while it is traced."""
    frame = sys._getframe(1)
    while frame is not None:
        # Only locals of TensorFlow's own methods are looked at: those of the script may do anything when touched.
        if frame.f_globals.get("__name__", "").endswith("polymorphic_function"):
            if getattr(frame.f_locals.get("self"), "_jit_compile", None):
                return True
        frame = frame.f_back
    return False


def _describe(tensors, names, op, prescale, postscale):
    lines = [f"{op} {float(prescale)!r} {float(postscale)!r}", str(len(tensors))]
    for tensor, name in zip(tensors, names):
        if not tensor.shape.is_fully_defined():
            raise ValueError(f"'{name}': XLA needs a known shape, not {tensor.shape}")
        if "\n" in name:
            raise ValueError(f"{name!r}: a name is one line")
        lines.append(" ".join([tensor.dtype.name, str(tensor.shape.rank), *map(str, tensor.shape), name]))
    return "\n".join(lines)


def allreduce_group(tensors, names, op, weight, prescale=1.0, postscale=1.0):
    """As ops.allreduce_group; op is "weighted_mean" where the weight counts."""
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops
    problem = ops.xla_problem()
    if problem is not None:
        raise native.LockstepError(f"no all-reduce in a function with jit_compile=True: {problem}")
    text = _describe(tensors, names, op, prescale, postscale)
    graph = tf.compat.v1.get_default_graph()
    before = getattr(graph, "_lockstep_calls", [])

    @tf.custom_gradient
    def call(*inputs):
        reduced = gen_xla_ops.xla_custom_call_v2(
            operands=[weight, *inputs, *before], call_target_name=TARGET, backend_config=text, has_side_effect=True,
            result_dtypes=[tensor.dtype for tensor in inputs], result_shapes=[tensor.shape for tensor in inputs])

        def gradient(*grads):
            ops.check_gradient(op, names)
            return ops.reduced_gradients(list(grads), ops.gradient_names(names), op, weight, prescale, postscale)

        return list(reduced), gradient

    results = list(call(*tensors))
    graph._lockstep_calls = results[:1]
    return results
