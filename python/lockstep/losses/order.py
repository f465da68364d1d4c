# SPDX-License-Identifier: Apache-2.0
"""In which order the operators of a graph are looked at."""
from lockstep.losses.states import Unclear


def operations_before(graph, results, given, inputs_of):
    """(those that the results are computed from, inputs first; names of the tensors used; do some go round in a loop).  They may have been made in
    another order: a branch of TensorFlow 1 gets its inputs afterwards, and what a loop begins with comes from its end."""
    ordered, begun, used, has_loops = [], set(), set(), False
    path = [(None, iter(results))]  # operators, and those of their inputs that are still to be looked at
    on_path = set()
    while path:
        op, inputs = path[-1]
        tensor = next(inputs, None)
        if tensor is None:
            path.pop()
            on_path.discard(op and op.name)
            ordered += [op] if op is not None else []
            continue
        if tensor.graph is not graph:
            raise Unclear("a tensor of another function")
        used.add(tensor.name)
        has_loops = has_loops or tensor.op.name in on_path
        if tensor.name not in given and tensor.op.name not in begun:
            begun.add(tensor.op.name)
            on_path.add(tensor.op.name)
            path.append((tensor.op, iter(inputs_of(tensor.op))))
    return ordered, used, has_loops
