/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of pickle.c: what instructions do to the stack. */
#ifndef LS_DATA_PICKLE_INT_H
#define LS_DATA_PICKLE_INT_H

#include <stdbool.h>

#include "data/pickle.h"

#define LS_PICKLE_NAME_ROOM  32
#define LS_PICKLE_STACK_ROOM 4096
#define LS_PICKLE_ITEMS_ROOM 256 /* of all tuples */

typedef enum ls_pickle_kind {
    LS_PICKLE_NONE, /* None, True, False, and what does not matter */
    LS_PICKLE_MARK,
    LS_PICKLE_NUMBER,
    LS_PICKLE_TEXT,
    LS_PICKLE_LIST,
    LS_PICKLE_DICT,
    LS_PICKLE_TUPLE,
    LS_PICKLE_CALL_RECONSTRUCT, /* names that may be called, to no other effect than these values */
    LS_PICKLE_CALL_FROMBUFFER,
    LS_PICKLE_CALL_DTYPE,
    LS_PICKLE_CLASS_NDARRAY,
    LS_PICKLE_DTYPE_UINT8,
    LS_PICKLE_DTYPE_OTHER,
    LS_PICKLE_ARRAY
} ls_pickle_kind_t;

typedef struct ls_pickle_value {
    ls_pickle_kind_t kind;
    uint64_t         number;  /* NUMBER; TEXT: length; LIST: which; TUPLE: how many items; ARRAY: rows */
    uint64_t         offset;  /* TEXT, ARRAY: in the file (0: not known yet); TUPLE: first item */
    uint64_t         columns; /* ARRAY */
    char             name[LS_PICKLE_NAME_ROOM]; /* TEXT that is shorter */
} ls_pickle_value_t;

typedef struct ls_pickle_machine {
    struct ls_pickle_input *input;
    uint64_t                num_instructions;
    ls_pickle_value_t       stack[LS_PICKLE_STACK_ROOM];
    unsigned                depth;
    ls_pickle_value_t       items[LS_PICKLE_ITEMS_ROOM];
    unsigned                num_items;
    ls_pickle_value_t      *memo;
    uint64_t                num_memo, memo_room;
    uint64_t                lists_room[LS_PICKLE_MAX_LISTS]; /* allocated values */
    ls_pickle_t             pickle;
} ls_pickle_machine_t;

ls_status_t ls_pickle_bad(ls_pickle_machine_t *machine, const char *reason); /* pickle.c */

/* pickle_machine.c */
ls_status_t ls_pickle_push(ls_pickle_machine_t *machine, const ls_pickle_value_t *value);
ls_status_t ls_pickle_remember(ls_pickle_machine_t *machine, uint64_t index);
ls_status_t ls_pickle_recall(ls_pickle_machine_t *machine, uint64_t index);
ls_status_t ls_pickle_new_list(ls_pickle_machine_t *machine);
ls_status_t ls_pickle_tuple(ls_pickle_machine_t *machine, unsigned count);
ls_status_t ls_pickle_tuple_from_mark(ls_pickle_machine_t *machine);
ls_status_t ls_pickle_name(ls_pickle_machine_t *machine, const char *module, const char *name);
ls_status_t ls_pickle_name_from_stack(ls_pickle_machine_t *machine);
ls_status_t ls_pickle_append(ls_pickle_machine_t *machine, bool from_mark);
ls_status_t ls_pickle_set(ls_pickle_machine_t *machine, bool from_mark);
ls_status_t ls_pickle_call(ls_pickle_machine_t *machine);
ls_status_t ls_pickle_build(ls_pickle_machine_t *machine);

#endif
