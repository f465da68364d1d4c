# SPDX-License-Identifier: Apache-2.0
"""Graphs that leave the process have no operator of ours: they load where there is no Lockstep.

Seam: Graph.as_graph_def, from which meta graphs, frozen graphs and TensorBoard's graphs are made (sessions run the graph
itself).  A reduction becomes the identity: what one process would have."""
import functools

from tensorflow.python.framework import ops as framework_ops

_OURS = "Lockstep"
_FIRST_OUTPUTS = ("reduced", "output", "block")


def attach():
    original = framework_ops.Graph.as_graph_def
    if getattr(original, "_lockstep", False):
        return

    @functools.wraps(original)
    def as_graph_def(self, *args, **kwargs):
        return clean(original(self, *args, **kwargs))

    # Not with hooks.wrap: rank 0 writes alone, and then too.
    as_graph_def._lockstep = True
    framework_ops.Graph.as_graph_def = as_graph_def


def clean(graph_def):
    for nodes in [graph_def.node, *(function.node_def for function in graph_def.library.function)]:
        ours = {node.name for node in nodes if node.op.startswith(_OURS)}
        for node in nodes:
            if node.name in ours:
                _replace(node)
    for function in graph_def.library.function:
        _rename_outputs(function)
    return graph_def


def _replace(node):
    data = [name for name in node.input if not name.startswith("^")]
    after = [name for name in node.input if name.startswith("^")]
    types = type(node.attr["T"]).FromString(node.attr["T"].SerializeToString())
    if types.HasField("list"):
        node.op, inputs = "IdentityN", data[:len(types.list.type)]
    else:
        node.op, inputs = ("Identity", data[:1]) if data else ("NoOp", [])
    node.attr.clear()
    if inputs:
        node.attr["T"].CopyFrom(types)
    del node.input[:]
    node.input.extend([*inputs, *after])


def _rename_outputs(function):
    """Inside functions inputs name the output they mean; that of the identity is called "output"."""
    replaced = {node.name for node in function.node_def if node.op in ("Identity", "IdentityN")}

    def rename(text):
        name, _, rest = text.partition(":")
        output, _, index = rest.partition(":")
        return f"{name}:output:{index}" if name in replaced and output in _FIRST_OUTPUTS else text

    for node in function.node_def:
        node.input[:] = [rename(text) for text in node.input]
    for key in function.ret:
        function.ret[key] = rename(function.ret[key])
