# SPDX-License-Identifier: Apache-2.0
"""What is to be done for a set of fetches, found once by walking through the graph and then remembered."""
import tensorflow as tf

from lockstep.frontends.v1 import parts, picked, taken, walk
from lockstep.losses import looks

_ASSIGN = ("Assign", "AssignAdd", "AssignSub", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
_SUMMED = ("AssignAdd", "AssignAddVariableOp")


class Plan:
    """Of the operations that a run needs: does it train, on which iterators, what does it initialise."""

    def __init__(self, graph, targets, fetches, fed):
        self.fetches, self.fed = fetches, fed
        self.kept = (targets, fetches, fed)  # their ids are the key of this plan: they must live as long
        known = parts.state(graph)
        self.ops = walk.before([*targets, *fetches], {id(tensor) for tensor in fed})
        self.trains = known.has_gradients and any(map(walk.reduces_gradients, self.ops))
        self.groups = [group for group in known.groups if group.source in self.ops] if self.trains else []
        self.losses = list(known.targets)  # a train op need not compute the loss, so that it is not among its operations
        self.initialised = self._initialised(graph)
        self.fixed_rows = _fixed_rows(self.ops) if self.trains else frozenset()
        self._effects = {}

    def _initialised(self, graph):
        """Variables that get a value which may differ between ranks."""
        candidates = {variable.op.name: variable for variable in taken.variables_of(graph)}
        restores = any(op.type in ("RestoreV2", "Restore") for op in self.ops)
        found = []
        for op in self.ops:
            if op.type not in ("Assign", "AssignVariableOp"):
                continue
            variable = candidates.get(op.inputs[0].op.name)
            if variable is not None and (restores or op == variable.initializer):
                found.append(variable)
        return sorted(found, key=lambda variable: variable.op.name)

    def effects(self, sources):
        """What a run computes from these tensors, which are cut."""
        key = tuple(map(id, sources))
        if key not in self._effects:
            self._effects[key] = Effects(self, sources)
        return self._effects[key]


class Effects:
    """Which fetches are figures of the slice, and which variables are changed by it."""

    def __init__(self, plan, sources):
        ops = walk.after(sources, plan.ops)
        cut = {id(tensor) for tensor in sources}
        self.kept = sources
        self.has_time_first = walk.takes_rows_apart(sources, plan.ops)
        self.problem = looks.problem_in(sources, plan.losses) if looks.is_on() and plan.trains else None
        self.pick = picked.picks(sources, walk.before(filter(walk.reduces_gradients, plan.ops)))
        self.fetches = [i for i, tensor in enumerate(plan.fetches) if tensor.op in ops or id(tensor) in cut]
        summed, averaged = {}, {}
        for op in ops:
            if op.type in _ASSIGN:
                handle = op.inputs[0].op
                kind = summed if op.type in _SUMMED and _is_count(handle) else averaged
                kind[handle.name] = handle
        self.summed = [summed[name] for name in sorted(summed)]
        self.averaged = [averaged[name] for name in sorted(averaged) if name not in summed]


def _is_count(handle):
    """A sum over samples: of tf.metrics, or a whole number."""
    if handle.get_attr("dtype").is_integer:
        return True
    metric_variables = handle.graph.get_collection_ref(tf.compat.v1.GraphKeys.METRIC_VARIABLES)
    return any(variable.op is handle for variable in metric_variables)


def _fixed_rows(ops):
    """First dimensions that are written into the graph: where the batch size is one of them, batches cannot be cut.

    A reshape to [64, ...], a state of zeros for 64 rows, a range of 64: in each the script counts on its own batch size."""
    found = set()
    for op in ops:
        if op.type in ("Reshape", "Fill", "BroadcastTo", "Range"):
            position = {"Fill": 0, "Range": 1}.get(op.type, 1)
            value = tf.get_static_value(op.inputs[position])
            if value is not None and value.size:
                found.add(int(value.reshape(-1)[0]))
        elif op.type == "Const" and op.outputs[0].shape.rank and op.outputs[0].shape.rank > 1:
            found.add(tf.compat.dimension_value(op.outputs[0].shape[0]))
    return frozenset(found)


def plan(graph, targets, fetches, feed):
    fed = [ref.deref() for ref in feed]
    known = parts.state(graph)
    key = (tuple(map(id, targets)), tuple(map(id, fetches)), tuple(map(id, fed)))
    found = known.plans.get(key)
    if found is None:
        found = known.plans[key] = Plan(graph, list(targets), list(fetches), fed)
    return found
