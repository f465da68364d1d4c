/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/mem.h"
#include "data/pickle_int.h"

#define MAX_MEMO (1UL << 20) /* CIFAR-100 has 50,000 names of pictures, each remembered */

/* ---- stack and memory
 * --------------------------------------------------------------------------------------------- */

ls_status_t ls_pickle_push(ls_pickle_machine_t *machine, const ls_pickle_value_t *value)
{
    if (machine->depth == LS_PICKLE_STACK_ROOM) {
        return ls_pickle_bad(machine, "the pickle needs a deeper stack than CIFAR's files do");
    }
    machine->stack[machine->depth++] = *value;
    return LS_OK;
}

/* The `count` values on top; they stay there. */
static ls_status_t top(ls_pickle_machine_t *machine, unsigned count, ls_pickle_value_t **values_p)
{
    if (machine->depth < count) {
        return ls_pickle_bad(machine, "the pickle takes more from its stack than there is");
    }
    *values_p = &machine->stack[machine->depth - count];
    return LS_OK;
}

/* How many values are above the last mark. */
static ls_status_t above_mark(ls_pickle_machine_t *machine, unsigned *count_p)
{
    for (unsigned count = 0; count < machine->depth; count++) {
        if (machine->stack[machine->depth - count - 1].kind == LS_PICKLE_MARK) {
            *count_p = count;
            return LS_OK;
        }
    }
    return ls_pickle_bad(machine, "the pickle lacks a mark on its stack");
}

ls_status_t ls_pickle_remember(ls_pickle_machine_t *machine, uint64_t index)
{
    ls_pickle_value_t *value  = NULL;
    ls_status_t        status = top(machine, 1, &value);

    if (status != LS_OK) {
        return status;
    }
    if (index >= MAX_MEMO) {
        return ls_pickle_bad(machine, "the pickle remembers more than CIFAR's files do");
    }
    if (index >= machine->memo_room) {
        const uint64_t room = index < 512 ? 1024 : 2 * index;

        status = ls_mem_resize((void **)&machine->memo, machine->memo_room * sizeof(*value),
                               room * sizeof(*value), "memory of a pickle");
        if (status != LS_OK) {
            return status;
        }
        machine->memo_room = room;
    }
    machine->memo[index] = *value;
    machine->num_memo    = index >= machine->num_memo ? index + 1 : machine->num_memo;
    return LS_OK;
}

ls_status_t ls_pickle_recall(ls_pickle_machine_t *machine, uint64_t index)
{
    return index < machine->num_memo
               ? ls_pickle_push(machine, &machine->memo[index])
               : ls_pickle_bad(machine, "the pickle recalls what it has not remembered");
}

/* ---- tuples and names
 * --------------------------------------------------------------------------------------------- */

ls_status_t ls_pickle_tuple(ls_pickle_machine_t *machine, unsigned count)
{
    ls_pickle_value_t tuple   = {.kind = LS_PICKLE_TUPLE, .number = count, .offset = machine->num_items},
                      *values = NULL;
    const ls_status_t status  = top(machine, count, &values);

    if (status != LS_OK) {
        return status;
    }
    if (machine->num_items + count > LS_PICKLE_ITEMS_ROOM) {
        return ls_pickle_bad(machine, "the pickle has more tuples than CIFAR's files");
    }
    memcpy(&machine->items[machine->num_items], values, count * sizeof(*values));
    machine->num_items += count;
    machine->depth -= count;
    return ls_pickle_push(machine, &tuple);
}

ls_status_t ls_pickle_tuple_from_mark(ls_pickle_machine_t *machine)
{
    unsigned    count  = 0;
    ls_status_t status = above_mark(machine, &count);

    if (status == LS_OK) {
        status = ls_pickle_tuple(machine, count);
    }
    if (status == LS_OK) { /* it takes the place of the mark */
        machine->stack[machine->depth - 2] = machine->stack[machine->depth - 1];
        machine->depth--;
    }
    return status;
}

ls_status_t ls_pickle_name(ls_pickle_machine_t *machine, const char *module, const char *name)
{
    static const struct {
        const char      *module, *name;
        ls_pickle_kind_t kind;
    } known[] = {
        {"numpy.core.multiarray", "_reconstruct", LS_PICKLE_CALL_RECONSTRUCT},
        {"numpy._core.multiarray", "_reconstruct", LS_PICKLE_CALL_RECONSTRUCT},
        {"numpy.core.numeric", "_frombuffer", LS_PICKLE_CALL_FROMBUFFER},
        {"numpy._core.numeric", "_frombuffer", LS_PICKLE_CALL_FROMBUFFER},
        {"numpy", "ndarray", LS_PICKLE_CLASS_NDARRAY},
        {"numpy", "dtype", LS_PICKLE_CALL_DTYPE},
    };

    for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i].module, module) == 0 && strcmp(known[i].name, name) == 0) {
            return ls_pickle_push(machine, &(ls_pickle_value_t){.kind = known[i].kind});
        }
    }
    return ls_pickle_bad(machine,
                         "the pickle names a function that CIFAR's files do not use; nothing was executed");
}

ls_status_t ls_pickle_name_from_stack(ls_pickle_machine_t *machine)
{
    ls_pickle_value_t *names  = NULL;
    const ls_status_t  status = top(machine, 2, &names);

    if (status != LS_OK) {
        return status;
    }
    machine->depth -= 2;
    return ls_pickle_name(machine, names[0].kind == LS_PICKLE_TEXT ? names[0].name : "",
                          names[1].kind == LS_PICKLE_TEXT ? names[1].name : "");
}

/* ---- lists and dictionaries
 * --------------------------------------------------------------------------------------- */

ls_status_t ls_pickle_new_list(ls_pickle_machine_t *machine)
{
    ls_pickle_t *pickle = &machine->pickle;

    if (pickle->num_lists == LS_PICKLE_MAX_LISTS) {
        return ls_pickle_bad(machine, "the pickle has more lists than CIFAR's files");
    }
    return ls_pickle_push(machine,
                          &(ls_pickle_value_t){.kind = LS_PICKLE_LIST, .number = pickle->num_lists++});
}

static ls_status_t append_one(ls_pickle_machine_t *machine, uint64_t which, const ls_pickle_value_t *value)
{
    ls_pickle_list_t *list = &machine->pickle.lists[which];

    if (value->kind != LS_PICKLE_NUMBER || value->number > 255 || (list->values == NULL && list->count > 0)) {
        ls_mem_free(list->values); /* names of pictures, for example: only counted */
        list->values = NULL;
        list->count++;
        return LS_OK;
    }
    if (list->count == machine->lists_room[which]) {
        const uint64_t    room   = list->count < 512 ? 1024 : 2 * list->count;
        const ls_status_t status = ls_mem_resize((void **)&list->values, list->count, room, "labels");

        if (status != LS_OK) {
            return status;
        }
        machine->lists_room[which] = room;
    }
    list->values[list->count++] = (unsigned char)value->number;
    return LS_OK;
}

ls_status_t ls_pickle_append(ls_pickle_machine_t *machine, bool from_mark)
{
    unsigned           count  = 1;
    const unsigned     marks  = from_mark ? 1 : 0;
    ls_pickle_value_t *values = NULL;
    ls_status_t        status = from_mark ? above_mark(machine, &count) : LS_OK;

    if (status == LS_OK) {
        status = top(machine, count + marks + 1, &values);
    }
    if (status == LS_OK && values[0].kind != LS_PICKLE_LIST) {
        status = ls_pickle_bad(machine, "the pickle appends to what is not a list");
    }
    for (unsigned i = 0; i < count && status == LS_OK; i++) {
        status = append_one(machine, values[0].number, &values[1 + marks + i]);
    }
    if (status == LS_OK) {
        machine->depth -= count + marks;
    }
    return status;
}

static ls_status_t set_one(ls_pickle_machine_t *machine, const ls_pickle_value_t *key,
                           const ls_pickle_value_t *value)
{
    if (key->kind != LS_PICKLE_TEXT) {
        return ls_pickle_bad(machine, "a key of the dictionary is not a text");
    }
    if (value->kind == LS_PICKLE_LIST && strlen(key->name) < sizeof(machine->pickle.lists[0].key)) {
        strcpy(machine->pickle.lists[value->number].key, key->name);
    }
    if (strcmp(key->name, "data") == 0) {
        if (value->kind != LS_PICKLE_ARRAY || value->offset == 0) {
            return ls_pickle_bad(machine, "'data' is not an array of bytes");
        }
        machine->pickle.data_offset = value->offset;
        machine->pickle.rows        = value->number;
        machine->pickle.columns     = value->columns;
    }
    return LS_OK;
}

ls_status_t ls_pickle_set(ls_pickle_machine_t *machine, bool from_mark)
{
    unsigned           count  = 2;
    const unsigned     marks  = from_mark ? 1 : 0;
    ls_pickle_value_t *values = NULL;
    ls_status_t        status = from_mark ? above_mark(machine, &count) : LS_OK;

    if (status == LS_OK) {
        status = top(machine, count + marks + 1, &values);
    }
    if (status == LS_OK && (values[0].kind != LS_PICKLE_DICT || count % 2 != 0)) {
        status = ls_pickle_bad(machine, "the pickle sets entries of what is not a dictionary");
    }
    for (unsigned i = 0; i < count && status == LS_OK; i += 2) {
        status = set_one(machine, &values[1 + marks + i], &values[2 + marks + i]);
    }
    if (status == LS_OK) {
        machine->depth -= count + marks;
    }
    return status;
}

/* ---- arrays
 * ------------------------------------------------------------------------------------------------------- */

static const ls_pickle_value_t *item(const ls_pickle_machine_t *machine, const ls_pickle_value_t *tuple,
                                     unsigned index)
{
    static const ls_pickle_value_t none;

    return tuple->kind == LS_PICKLE_TUPLE && index < tuple->number ? &machine->items[tuple->offset + index]
                                                                   : &none;
}

/* Fills the array from its shape, type and bytes. */
static ls_status_t set_array(ls_pickle_machine_t *machine, ls_pickle_value_t *array,
                             const ls_pickle_value_t *shape, const ls_pickle_value_t *dtype,
                             const ls_pickle_value_t *bytes)
{
    const uint64_t rows = item(machine, shape, 0)->number, columns = item(machine, shape, 1)->number;
    uint64_t       product;

    if (dtype->kind != LS_PICKLE_DTYPE_UINT8) {
        return ls_pickle_bad(machine, "an array is not of type uint8");
    }
    if (bytes->kind != LS_PICKLE_TEXT) {
        return ls_pickle_bad(
            machine, "an array's bytes are written as text (Python 3, protocol 2); save it with protocol 4");
    }
    if (shape->number != 2 || __builtin_mul_overflow(rows, columns, &product) || product != bytes->number) {
        return ls_pickle_bad(machine, "an array's shape does not have two dimensions that fit its bytes");
    }
    array->kind    = LS_PICKLE_ARRAY;
    array->offset  = bytes->offset;
    array->number  = rows;
    array->columns = columns;
    return LS_OK;
}

/* callable, arguments -> value */
ls_status_t ls_pickle_call(ls_pickle_machine_t *machine)
{
    ls_pickle_value_t *values = NULL, result = {.kind = LS_PICKLE_ARRAY};
    ls_status_t        status = top(machine, 2, &values);

    if (status != LS_OK) {
        return status;
    }
    switch (values[0].kind) {
    case LS_PICKLE_CALL_RECONSTRUCT:
        break;
    case LS_PICKLE_CALL_DTYPE:
        result.kind = strcmp(item(machine, &values[1], 0)->name, "u1") == 0 ? LS_PICKLE_DTYPE_UINT8
                                                                            : LS_PICKLE_DTYPE_OTHER;
        break;
    case LS_PICKLE_CALL_FROMBUFFER:
        status = set_array(machine, &result, item(machine, &values[1], 2), item(machine, &values[1], 1),
                           item(machine, &values[1], 0));
        break;
    default:
        status =
            ls_pickle_bad(machine, "the pickle calls what CIFAR's files do not call; nothing was executed");
    }
    machine->depth -= 2;
    return status == LS_OK ? ls_pickle_push(machine, &result) : status;
}

/* object, state -> object */
ls_status_t ls_pickle_build(ls_pickle_machine_t *machine)
{
    ls_pickle_value_t *values = NULL;
    ls_status_t        status = top(machine, 2, &values);

    if (status != LS_OK) {
        return status;
    }
    if (values[0].kind == LS_PICKLE_ARRAY) { /* (version, shape, dtype, is_fortran, bytes) */
        status = set_array(machine, &values[0], item(machine, &values[1], 1), item(machine, &values[1], 2),
                           item(machine, &values[1], 4));
    } else if (values[0].kind != LS_PICKLE_DTYPE_UINT8 && values[0].kind != LS_PICKLE_DTYPE_OTHER) {
        status =
            ls_pickle_bad(machine, "the pickle builds what CIFAR's files do not build; nothing was executed");
    }
    machine->depth--;
    return status;
}
