# SPDX-License-Identifier: Apache-2.0
"""Operators of layers: products of matrices, convolutions, and what is done with each matrix or picture by itself.  A product may go over
the rows: that is a sum over them.

    x [rows, 8] @ weights [8, 4]        rows
    transpose(x) @ y                    a total, [8, 4]
    x @ transpose(y)                    all rows with all rows"""
from lockstep.losses.states import (Figure, Fixed, Positions, Rows, Sparse, Unclear, all_rows, dimension, means, need_fixed, only, rank_of)


# ---- products of matrices ------------------------------------------------------------------------------------

@means("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def matmul(anatomy, op, states):
    names = ("transpose_a", "transpose_b") if op.type == "MatMul" else ("adj_x", "adj_y")
    ranks = [rank_of(tensor) for tensor in op.inputs]
    rank = max(ranks)
    batch = [f"batch {place}" for place in range(rank - 2)]
    labels = []
    for own_rank, name, inner in zip(ranks, names, (["left", "both"], ["both", "right"])):
        labels.append(batch[rank - own_rank:] + (inner[::-1] if op.get_attr(name) else inner))
    _note_batch_sizes(anatomy, op, labels, batch)
    return contracted(anatomy, op, states, labels, batch + ["left", "right"])


def _note_batch_sizes(anatomy, op, labels, batch):
    known = {}
    for tensor, own in zip(op.inputs, labels):
        for label, size in zip(own, anatomy.sizes.of(tensor)):
            if label not in known or known[label].number == 1 and not known[label].names:
                known[label] = size
    anatomy.sizes.note(op.outputs[0], [known.get(label) for label in batch + ["left", "right"]])


@means("Einsum")
def einsum(anatomy, op, states):
    equation = op.get_attr("equation").decode().replace(" ", "")
    inputs, _, output = equation.partition("->")
    ranks = [rank_of(tensor) for tensor in op.inputs]
    dots = max([rank - len(term) + 3 for rank, term in zip(ranks, inputs.split(",")) if "..." in term], default=0)

    def labels_of(term, rank):
        first, has_dots, last = term.partition("...")
        number = rank - len(first) - len(last) if has_dots else 0
        return [*first, *(f".{place}" for place in range(dots - number, dots)), *last]

    labels = [labels_of(term, rank) for term, rank in zip(inputs.split(","), ranks)]
    return contracted(anatomy, op, states, labels, labels_of(output, rank_of(op.outputs[0])))


def contracted(anatomy, op, states, labels, output):
    """A sum of products over the labels that the output does not have."""
    if not only(states, Rows, Figure, Fixed):
        raise Unclear(op.type)
    rows = [state._replace(axis=own[state.axis]) for own, state in zip(labels, states) if isinstance(state, Rows)]
    if not rows:
        return anatomy.figure_of(states, is_linear=True) if any(isinstance(state, Figure) for state in states) else Fixed()
    found = anatomy.one_kind(rows)
    label = found.axis
    for tensor, own, state in zip(op.inputs, labels, states):
        if own.count(label) > 1:
            raise Unclear("the diagonal of rows")
        if not isinstance(state, Rows) and label in own and dimension(tensor, own.index(label)) != 1:
            raise Unclear("something for each row that is not made from rows")
        anatomy.feeds_rows = anatomy.feeds_rows or isinstance(state, Figure)
    anatomy.note_use(states, "sum")
    if label in output:
        return found._replace(axis=output.index(label))
    if any(isinstance(state, Figure) for state in states):
        raise Unclear("a product over rows with a figure of them")
    return anatomy.total(op, found)


@means("SparseTensorDenseMatMul", "SparseToDense")
def sparse_rows(anatomy, op, states):
    """[rows, 1000], of which few are not 0, @ weights"""
    *sparse, other = states if op.type == "SparseTensorDenseMatMul" else (states[0], states[2], states[1], states[3])
    if not only(sparse, Sparse) or not isinstance(other, Fixed) or (op.type == "SparseTensorDenseMatMul" and op.get_attr("adjoint_a")):
        raise Unclear(op.type)
    return Rows()


@means("BiasAdd")
def bias(anatomy, op, states):
    rows, added = states
    place = rank_of(op.inputs[0]) - 1 if op.get_attr("data_format") == b"NHWC" else 1
    anatomy.sizes.note_like(op.outputs[0], op.inputs[:1])
    if not isinstance(rows, Rows):
        return anatomy.elementwise(op, states) if only(states, Figure, Fixed) else _unclear(op)
    if rows.axis == place or not isinstance(added, (Fixed, Figure)):
        raise Unclear(op.type)
    anatomy.feeds_rows = anatomy.feeds_rows or isinstance(added, Figure)
    anatomy.note_use([added], "sum")
    return rows


def _unclear(op):
    raise Unclear(op.type)


# ---- cross entropy -------------------------------------------------------------------------------------------

@means("SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits")
def cross_entropy(anatomy, op, states):
    logits, labels = states
    if only(states, Fixed):
        return [Fixed(), Fixed()]
    if op.type == "SparseSoftmaxCrossEntropyWithLogits":
        one_for_each = [op.outputs[0], op.inputs[1]]
        joined = anatomy.rows_by_rows(one_for_each, [logits, labels], 1) if only(states, Rows, Fixed) else _unclear(op)
    else:
        joined = anatomy.rows_by_rows(list(op.inputs), states, 2) if only(states, Rows, Fixed) else _unclear(op)
    if joined.axis != 0:
        raise Unclear(op.type)
    return [joined, joined]


# ---- each picture, matrix or sentence by itself --------------------------------------------------------------

_FROM_ROWS = {  # the inputs that must be rows, if one is; the others must be fixed
    **dict.fromkeys("""AdjustContrastv2 AdjustHue AdjustSaturation AvgPool AvgPool3D Conv2D Conv3D DepthToSpace DepthwiseConv2dNative Dilation2D
        ExtractGlimpse ExtractGlimpseV2 ExtractImagePatches ExtractVolumePatches ImageProjectiveTransformV2 ImageProjectiveTransformV3 LRN MaxPool MaxPool3D MaxPoolV2
        ResizeArea ResizeBicubic ResizeBilinear ResizeNearestNeighbor ScaleAndTranslate SpaceToDepth FractionalAvgPool
        FractionalMaxPool""".split(), (0,)),
    **dict.fromkeys(("MaxPoolGrad", "MaxPoolGradV2", "MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGrad", "MaxPool3DGradGrad", "LRNGrad"), (0, 1, 2)),
    **dict.fromkeys(("ResizeBilinearGrad", "ResizeBicubicGrad"), (0, 1)), "ResizeNearestNeighborGrad": (0,), "Dilation2DBackpropInput": (0, 2),
    **dict.fromkeys(("AvgPoolGrad", "AvgPool3DGrad"), (1,)),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput"), (2,)),
}


@means(*_FROM_ROWS)
def picture_by_picture(anatomy, op, states):
    of_rows = [states[place] for place in _FROM_ROWS[op.type]]
    others = [state for place, state in enumerate(states) if place not in _FROM_ROWS[op.type]]
    shape = op.type.endswith(("BackpropInput", "BackpropInputV2")) or op.type in ("AvgPoolGrad", "AvgPool3DGrad")
    if shape:  # the first input is the shape of the rows
        others = others[1:]
    if op.type.startswith("Adjust") and rank_of(op.inputs[0]) < 4:  # one picture
        raise Unclear(op.type)
    if op.type.startswith("ImageProjectiveTransform"):  # one for all pictures, or one for each
        others = [state for state in others if state != states[0]]
    if all_rows(of_rows) and anatomy.one_kind(of_rows).axis == 0:
        if any(isinstance(state, Figure) for state in others):
            anatomy.feeds_rows = True
            anatomy.note_use(others, "sum")
        elif not only(others, Fixed):
            raise Unclear(op.type)
        return [anatomy.one_kind(of_rows)] * len(op.outputs)
    if any(isinstance(state, Figure) for state in states) and only(states, Figure, Fixed):
        return [anatomy.figure_of(states)] * len(op.outputs)
    need_fixed(op, states)
    return [Fixed()] * len(op.outputs)


@means("CropAndResize")
def crop(anatomy, op, states):
    pictures, boxes, numbers, size = states
    if pictures == Rows() and boxes == Rows() and isinstance(numbers, Positions) and not numbers.others and isinstance(size, Fixed):
        return pictures
    need_fixed(op, states)
    return Fixed()


@means("ReverseSequence")
def reversed_sequence(anatomy, op, states):
    sequences, lengths = states
    if isinstance(sequences, Rows):
        is_own = isinstance(lengths, Rows) and lengths == Rows(0, sequences.before, sequences.after) and op.get_attr("batch_dim") == sequences.axis
        is_same = isinstance(lengths, Fixed) and op.get_attr("batch_dim") != sequences.axis
        if op.get_attr("seq_dim") == sequences.axis or not (is_own or is_same):
            raise Unclear(op.type)
        return sequences
    need_fixed(op, states)
    return Fixed()


@means("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter")
def filter_gradient(anatomy, op, states):
    if all_rows([states[0], states[2]]) and anatomy.one_kind([states[0], states[2]]).axis == 0:
        return anatomy.total(op, anatomy.one_kind([states[0], states[2]]))
    need_fixed(op, states)
    return Fixed()


@means("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(anatomy, op, states):
    rows, *others = states
    if not isinstance(rows, Rows) or rows.axis != 0 or not only(others, Fixed):
        need_fixed(op, states)
        return [Fixed()] * len(op.outputs)
    if op.get_attr("is_training"):
        anatomy.feeds_rows = True
    figures = Figure(False) if op.get_attr("is_training") else Fixed()
    return [rows] + [figures] * (len(op.outputs) - 1)


_INNER = {  # how many of the last dimensions are taken together
    **dict.fromkeys("""BatchMatrixInverse Cholesky CholeskyGrad Eig LogMatrixDeterminant MatrixBandPart MatrixDeterminant MatrixDiagPart MatrixDiagPartV2
        MatrixDiagPartV3 MatrixExponential MatrixInverse MatrixLogarithm MatrixSolve MatrixSolveLs MatrixSquareRoot MatrixTriangularSolve Qr
        SelfAdjointEigV2 Svd FFT2D IFFT2D RFFT2D IRFFT2D""".split(), 2),
    **dict.fromkeys(("FFT3D", "IFFT3D", "RFFT3D", "IRFFT3D"), 3),
}


@means(*_INNER)
def matrix_by_matrix(anatomy, op, states):
    inner = _INNER[op.type]
    if only(states, Fixed):
        return [Fixed()] * len(op.outputs)
    if only(states, Figure, Fixed):
        return [anatomy.figure_of(states)] * len(op.outputs)
    if not only(states, Rows, Fixed):
        raise Unclear(op.type)
    rank = max(rank_of(tensor) for tensor in op.inputs)
    if op.type in ("MatrixSolve", "MatrixTriangularSolve") and isinstance(states[0], Fixed) and states[1].axis == rank_of(op.inputs[1]) - 1:
        return states[1]._replace(axis=rank - 1)  # column by column
    shifts = [rank - rank_of(tensor) if rank_of(tensor) >= inner else rank for tensor in op.inputs]
    found = anatomy.one_kind([state._replace(axis=state.axis + shift) for state, shift in zip(states, shifts) if isinstance(state, Rows)])
    for tensor, state, shift in zip(op.inputs, states, shifts):
        if isinstance(state, Fixed) and found.axis >= shift and dimension(tensor, found.axis - shift) != 1:
            raise Unclear("something for each row that is not made from rows")
    if found.axis >= rank - inner:
        raise Unclear(op.type)
    return [found] * len(op.outputs)
