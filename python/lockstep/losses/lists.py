# SPDX-License-Identifier: Apache-2.0
"""Lists of tensors, with which loops go through time: an item for each step.

    inputs [time, rows, 8] -> list of [rows, 8] -> the loop's body takes one, puts one into another list -> [time, rows, 4]

A list with an item for each row is not followed."""
from lockstep.losses.states import NOTHING, Figure, Fixed, List, Rows, Unclear, joined, means, need_fixed


@means("TensorListReserve", "EmptyTensorList")
def new(anatomy, op, states):
    need_fixed(op, states[1:])  # the number of its items; their shape may be that of rows
    return NOTHING


@means("TensorListFromTensor")
def taken_apart(anatomy, op, states):
    state = states[0]
    if isinstance(state, Rows):
        if state.axis == 0:
            raise Unclear("rows are taken apart")
        return List(state._replace(axis=state.axis - 1))
    return List(_item(op, state))


def _item(op, state):
    if not isinstance(state, (Fixed, Figure, Rows)):
        raise Unclear(op.type)
    return state


@means("TensorListSetItem")
def put(anatomy, op, states):
    found, place, item = states[:3]
    need_fixed(op, [place])
    return _with_item(op, found, item)


@means("TensorListPushBack")
def append(anatomy, op, states):
    return _with_item(op, *states)


def _with_item(op, found, item):
    _item(op, item)
    if not isinstance(found, List):
        raise Unclear(op.type)
    both = item if found.item is None else joined([found.item, item])
    return List(_item(op, both))


@means("TensorListGetItem")
def got(anatomy, op, states):
    need_fixed(op, states[1:2])
    return _items(op, states[0])


@means("TensorListPopBack")
def popped(anatomy, op, states):
    return [states[0], _items(op, states[0])]


@means("TensorListStack")
def stacked(anatomy, op, states):
    item = _items(op, states[0])
    return item._replace(axis=item.axis + 1) if isinstance(item, Rows) else item


def _items(op, state):
    if not isinstance(state, List):
        raise Unclear(op.type)
    return Fixed() if state.item is None else state.item  # zeros, where nothing was put


@means("TensorListLength")
def length(anatomy, op, states):
    return Fixed()


@means("TensorListResize")
def resized(anatomy, op, states):
    need_fixed(op, states[1:])
    return states[0]


# ---- TensorFlow 1: what is in an array travels with its flow ---------------------------------------------------

@means("TensorArrayV3")
def new_array(anatomy, op, states):
    need_fixed(op, states)
    return [Fixed(), NOTHING]


@means("TensorArrayScatterV3")
def array_of(anatomy, op, states):
    _, places, value, _ = states
    need_fixed(op, [places])
    return taken_apart(anatomy, op, [value])


@means("TensorArrayWriteV3")
def written(anatomy, op, states):
    _, place, item, flow = states
    need_fixed(op, [place])
    return _with_item(op, flow, item)


@means("TensorArrayReadV3")
def read(anatomy, op, states):
    need_fixed(op, states[1:2])
    return _items(op, states[2])


@means("TensorArrayGatherV3")
def gathered(anatomy, op, states):
    need_fixed(op, states[1:2])
    return stacked(anatomy, op, states[2:])


@means("TensorArraySizeV3")
def size(anatomy, op, states):
    return Fixed()
