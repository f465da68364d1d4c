# SPDX-License-Identifier: Apache-2.0
"""Collectives on TensorFlow's tensors, with gradients.

All ranks must call with the same `name`, type and shape; in which order they call does not matter.  In a tf.function
the operators run side by side, as soon as their inputs are there.

Gradients are those of the sum of all ranks' losses: each rank's result depends on every rank's input, so a gradient is
itself a collective, named `name`/gradient, and every rank must ask for it."""
import contextlib
import ctypes
import functools

import tensorflow as tf

from lockstep import native

MEAN, WEIGHTED_MEAN, SUM = "mean", "weighted_mean", "sum"
GRADIENT = "gradient/"  # before the name of a variable: what is reduced is its gradient


@functools.lru_cache(maxsize=None)
def _ops():
    """The operators.  The library looks for TensorFlow when it is opened, so it is opened here and not earlier."""
    native.start()
    path = native.ops_path()
    module = tf.load_op_library(path)
    library = ctypes.CDLL(path)
    library.lockstep_tf_problem.restype = ctypes.c_char_p
    problem = library.lockstep_tf_problem().decode()
    if problem:
        raise native.LockstepError(f"{path}: {problem}")
    return module


def _make(function, *inputs, **attributes):
    """Makes an operator; `function` is its name in Python."""
    with _lasting():
        return getattr(_ops(), function)(*inputs, **attributes)


@functools.lru_cache(maxsize=None)
def xla_problem():
    """Why there is no all-reduce in functions compiled with jit_compile=True; None when there is."""
    _ops()
    library = ctypes.CDLL(native.ops_path())
    library.lockstep_tf_xla_problem.restype = ctypes.c_char_p
    problem = library.lockstep_tf_xla_problem()
    return problem and problem.decode()


_LASTING = tf.compat.v1.AttrValue(list=tf.compat.v1.AttrValue.ListValue())


@contextlib.contextmanager
def _lasting():
    """Operators made here are computed each time.

    TensorFlow computes stateless operators with constant inputs once, while it prepares a graph; it leaves alone those
    with the attribute in_place (Grappler) or _scoped_allocator (the runtime; an empty list means nothing else)."""
    if tf.executing_eagerly():
        yield
        return
    with tf.compat.v1.get_default_graph()._attr_scope({"_scoped_allocator": _LASTING}):
        yield


def exact(number, dtype):
    """tf.cast(), but a number of Python is not made a float32 on the way."""
    return tf.cast(number, dtype) if tf.is_tensor(number) else tf.constant(number, dtype)


# ---- what is common to the reductions ------------------------------------------------------------------------

def _operation(op, weight):
    """The operation's name, and the weight as a tensor."""
    if weight is None:
        if op == WEIGHTED_MEAN:
            raise ValueError("a weighted mean needs a weight")
        return op, tf.constant(1.0, tf.float64)
    if op not in (MEAN, WEIGHTED_MEAN):
        raise ValueError(f"a weight goes with a mean, not with op='{op}'")
    return WEIGHTED_MEAN, exact(weight, tf.float64)


def _is_float32(scale):
    return ctypes.c_float(scale).value == scale


def _scaled(tensor, scale):
    """Attributes of operators are float32: what does not fit is multiplied here, where it would show."""
    if tensor.dtype == tf.float64 and not _is_float32(scale):
        return tensor * tf.constant(scale, tf.float64), 1.0
    return tensor, scale


def is_in_xla():
    if tf.executing_eagerly():
        return False
    from lockstep import xla
    return xla.is_compiling()


def allreduce(tensor, name, op=MEAN, weight=None, prescale=1.0, postscale=1.0):
    """The reduction of all ranks' tensors.

    op: "mean", "sum", "min", "max", "product"; with a weight per rank the mean is sum(weight * x) / sum(weight).
    prescale multiplies the input, postscale the result."""
    return allreduce_group([tensor], [name], op, weight, prescale, postscale)[0]


def allreduce_group(tensors, names, op=MEAN, weight=None, prescale=1.0, postscale=1.0):
    """Reduces a list of tensors that are there at the same time; the list is complete when all are reduced."""
    tensors = [tf.convert_to_tensor(tensor) for tensor in tensors]
    names = list(names)
    if len(tensors) != len(names):
        raise ValueError(f"{len(tensors)} tensors, but {len(names)} names")
    if not tensors:
        return []
    op, weight = _operation(op, weight)
    if is_in_xla():
        from lockstep import xla
        return xla.allreduce_group(tensors, names, op, weight, prescale, postscale)
    has_double = any(tensor.dtype == tf.float64 for tensor in tensors)
    if has_double and not (_is_float32(prescale) and _is_float32(postscale)):
        return [_allreduce_double(*pair, op, weight, prescale, postscale) for pair in zip(tensors, names)]
    scales = {"prescale": prescale, "postscale": postscale}
    if len(tensors) == 1:
        return [_make("lockstep_allreduce", tensors[0], weight, tensor_name=names[0], op=op, **scales)]
    return list(_make("lockstep_allreduce_group", tensors, weight, tensor_names=names, op=op, **scales))


def _allreduce_double(tensor, name, op, weight, prescale, postscale):
    tensor, prescale = _scaled(tensor, prescale)
    _, attr_postscale = _scaled(tensor, postscale)
    reduced = _make("lockstep_allreduce", tensor, weight, tensor_name=name, op=op, prescale=prescale,
                    postscale=attr_postscale)
    return _scaled(reduced, postscale)[0]


def reduce_scatter(tensor, name, op=MEAN, weight=None, prescale=1.0, postscale=1.0):
    """Reduces, and leaves each rank its block of rows; their number must be divisible by the number of ranks.

    A vector need not: the first ranks have one element more."""
    tensor = tf.convert_to_tensor(tensor)
    op, weight = _operation(op, weight)
    tensor, prescale = _scaled(tensor, prescale)
    _, attr_postscale = _scaled(tensor, postscale)
    block = _make("lockstep_reduce_scatter", tensor, weight, tensor_name=name, op=op, prescale=prescale,
                  postscale=attr_postscale)
    return _scaled(block, postscale)[0]


# ---- the others ----------------------------------------------------------------------------------------------

def broadcast(tensor, name, root=0):
    """The tensor of rank `root`, on every rank."""
    return _make("lockstep_broadcast", tensor, tensor_name=name, root=root)


def allgather(tensor, name):
    """The rows of all ranks, one after another; their number may differ."""
    return _make("lockstep_allgather", tensor, tensor_name=name).output


def alltoall(tensor, name, splits):
    """splits[r] rows go to rank r.  Returns what came, ordered by rank, and how many rows came from each."""
    splits = tf.cast(splits, tf.int64)
    output, rows = _make("lockstep_alltoall", tensor, splits, tensor_name=name)
    return output, rows


def barrier(name="barrier"):
    """Returns when every rank has called it; in a graph, the operation that does."""
    return _make("lockstep_barrier", tensor_name=name)


# ---- gradients -----------------------------------------------------------------------------------------------

def _text(value):
    return value.decode() if isinstance(value, bytes) else value


def numbered_in(graph, name):
    """The name, with a number from its second use in the graph on."""
    uses = getattr(graph, "_lockstep_names", None)
    if uses is None:
        uses = graph._lockstep_names = {}
    uses[name] = uses.get(name, 0) + 1
    return name if uses[name] == 1 else f"{name}/{uses[name]}"


def _gradient_name(op):
    return gradient_names([op.get_attr("tensor_name")])[0]


def gradient_names(names):
    """Names of the collectives that are the gradients of those.  A graph may take several gradients through one collective (a
    persistent tape), which may run at the same time."""
    names = [_text(name) + "/gradient" for name in names]
    if tf.executing_eagerly():
        return names
    return [numbered_in(tf.compat.v1.get_default_graph(), name) for name in names]


def check_gradient(op, names):
    """Raises where an operation has no gradient."""
    if op not in (SUM, MEAN, WEIGHTED_MEAN):
        raise LookupError(f"'{', '.join(names)}': an all-reduce with op='{op}' has no gradient; sums and means have")


def reduced_gradients(grads, names, op, weight, prescale, postscale):
    """What flows back through a reduction: the same reduction of the gradients.

    With weights, d(sum(w*x)/W)/dx is w/W on each rank: the gradients are summed, and each rank takes its share.  Not so where
    gradients of slices were reduced to that of the batch: what each rank makes of that is for its own slice again, and the
    gradients with respect to it are those of slices, of which the batch has the weighted mean."""
    if op != WEIGHTED_MEAN:
        return allreduce_group(grads, names, op, None, prescale, postscale)
    if all(name.startswith(GRADIENT) for name in names):
        return allreduce_group(grads, names, op, weight, prescale, postscale)
    sums = allreduce_group(grads, names, SUM, None, prescale, postscale)
    total = allreduce(weight, names[0] + "/weight", SUM)
    share = tf.math.divide_no_nan(weight, total)
    return [grad * tf.cast(share, grad.dtype) for grad in sums]


def _reduce_attributes(op):
    return _text(op.get_attr("op")), op.inputs[len(op.inputs) - 1], op.get_attr("prescale"), op.get_attr("postscale")


@tf.RegisterGradient("LockstepAllreduce")
def _allreduce_gradient(op, grad):
    operation, weight, *scales = _reduce_attributes(op)
    check_gradient(operation, [_text(op.get_attr("tensor_name"))])
    return [*reduced_gradients([grad], [_gradient_name(op)], operation, weight, *scales), None]


@tf.RegisterGradient("LockstepAllreduceGroup")
def _allreduce_group_gradient(op, *grads):
    operation, weight, *scales = _reduce_attributes(op)
    names = [_text(name) for name in op.get_attr("tensor_names")]
    check_gradient(operation, names)
    known = [i for i, grad in enumerate(grads) if grad is not None]
    reduced = reduced_gradients([grads[i] for i in known], gradient_names(names[i] for i in known), operation, weight,
                                *scales)
    result = [None] * (len(grads) + 1)  # the weight has none
    for i, grad in zip(known, reduced):
        result[i] = grad
    return result


@tf.RegisterGradient("LockstepReduceScatter")
def _reduce_scatter_gradient(op, grad):
    operation, weight, prescale, postscale = _reduce_attributes(op)
    name = _gradient_name(op)
    check_gradient(operation, [name])
    gathered = allgather(grad, name) * exact(prescale * postscale, grad.dtype)
    gathered.set_shape(op.inputs[0].shape)
    if operation == MEAN:
        gathered /= tf.cast(native.size(), grad.dtype)
    elif operation == WEIGHTED_MEAN:
        total = allreduce(weight, name + "/weight", SUM)
        gathered *= tf.cast(tf.math.divide_no_nan(weight, total), grad.dtype)
    return [gathered, None]


@tf.RegisterGradient("LockstepBroadcast")
def _broadcast_gradient(op, grad):
    total = allreduce(grad, _gradient_name(op), SUM)
    if native.rank() == op.get_attr("root"):
        return total
    with tf.control_dependencies([total]):  # or the sum would be dropped from the graph, here but not at the root
        return tf.zeros_like(grad)


@tf.RegisterGradient("LockstepAllgather")
def _allgather_gradient(op, grad, _):
    # Each rank sends back what belongs to the others' rows; here the parts for our own rows are added.
    rows = op.outputs[1]
    parts, _ = alltoall(grad, _gradient_name(op), rows)
    own = tf.shape(op.inputs[0])
    total = tf.reduce_sum(tf.reshape(parts, tf.concat([[native.size()], own], 0)), 0)
    total.set_shape(op.inputs[0].shape)
    return total


@tf.RegisterGradient("LockstepAlltoall")
def _alltoall_gradient(op, grad, _):
    back, _ = alltoall(grad, _gradient_name(op), op.outputs[1])
    back.set_shape(op.inputs[0].shape)
    return [back, None]


tf.no_gradient("LockstepBarrier")
