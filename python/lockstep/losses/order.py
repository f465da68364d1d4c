# SPDX-License-Identifier: Apache-2.0
"""In which order the operators of a graph are looked at."""
from lockstep.losses.states import Unclear


def operations_before(graph, results, given, inputs_of):
    """(those that the results are computed from, inputs first; names of the tensors used; are there loops).  They may have been made in another
    order: a branch of TensorFlow 1 gets its inputs afterwards.  Its loops go round through a Merge, which comes last in them."""
    ordered, begun, done, used, loops = [], set(), set(), set(), set()
    waiting = list(results)
    while waiting:
        tensor = waiting[-1]
        op = tensor.op
        if tensor.graph is not graph:
            raise Unclear("a tensor of another function")
        used.add(tensor.name)
        if tensor.name in given or op.name in done:
            waiting.pop()
        elif op.name not in begun:
            begun.add(op.name)
            waiting.extend(inputs_of(op))
        elif any(_is_before(source, given, done) is False and not _goes_round(source.op, begun) for source in inputs_of(op)):
            if not _goes_round(op, begun):
                raise Unclear("operators in a circle")
            loops.add(op.name)
            waiting.pop()
        else:
            waiting.pop()
            done.add(op.name)
            ordered.append(op)
    return ordered, used, bool(loops)


def _is_before(tensor, given, done):
    return tensor.name in given or tensor.op.name in done


def _goes_round(op, begun):
    return op.type.endswith("Merge") and op.name in begun
