/* SPDX-License-Identifier: Apache-2.0 */
#include "tf/tstring.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_MOST 22 /* bytes that fit in the string itself */
#define ALIGNMENT  16
#define FREED_ONCE ((size_t)31 << 20) /* the largest that counts is 32 MiB with its head */

enum { KIND_SMALL, KIND_LARGE }; /* in the two lowest bits of the first byte; the length is above */

typedef union tstring {
    struct {
        uint8_t length_and_kind;
        char    bytes[SMALL_MOST + 1];
    } small;
    struct {
        uint64_t length_and_kind;
        uint64_t room;  /* without the zero at the end */
        char    *bytes; /* goes back with free() */
    } large;
} tstring_t;

_Static_assert(sizeof(tstring_t) == LS_TSTRING_BYTES, "as TensorFlow has it");

typedef void (*string_copy_fn)(void *string, const char *bytes, size_t count);
typedef void (*string_dealloc_fn)(void *string);

void *ls_tstring_room(void *string, size_t length)
{
    tstring_t *const to = string;

    if (length <= SMALL_MOST) {
        to->small.length_and_kind = (uint8_t)(length << 2 | KIND_SMALL);
        to->small.bytes[length]   = '\0';
        return to->small.bytes;
    }
    const size_t room  = (length + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    char *const  bytes = malloc(room);

    if (bytes == NULL) {
        return NULL;
    }
    bytes[length]             = '\0';
    to->large.length_and_kind = length << 2 | KIND_LARGE;
    to->large.room            = room - 1;
    to->large.bytes           = bytes;
    return bytes;
}

/* As if the program had freed an array of that size once, as most that train have: from then on the C
 * library's malloc gives free memory back to the system only where there is twice as much of it, and a batch
 * of strings no longer gets each of its pages anew, which takes longer than reading it. */
void ls_tstring_keep_memory(void)
{
    void *volatile array = malloc(FREED_ONCE);

    free(array);
}

static bool is_same(const tstring_t *ours, const tstring_t *theirs, const char *text, size_t length)
{
    if (length <= SMALL_MOST) {
        return memcmp(ours, theirs, length + 2) == 0;
    }
    return ours->large.length_and_kind == theirs->large.length_and_kind &&
           ours->large.room == theirs->large.room && memcmp(theirs->large.bytes, text, length + 1) == 0;
}

static bool is_form_of(string_copy_fn copy, string_dealloc_fn dealloc)
{
    static const char text[]   = "bytes of which all lengths are copied, in the string itself and elsewhere";
    bool              is_known = true;

    for (size_t length = 0; length < sizeof(text) && is_known; length++) {
        tstring_t ours, theirs;
        char      cut[sizeof(text) + 1] = "";

        memcpy(cut, text, length);
        memset(&ours, 0, sizeof(ours));
        memset(&theirs, 0, sizeof(theirs));
        copy(&theirs, cut, length);
        void *const room = ls_tstring_room(&ours, length);

        if (room == NULL) {
            return false;
        }
        memcpy(room, cut, length);
        is_known = is_same(&ours, &theirs, cut, length);
        if (is_known) { /* each by the other's hand */
            dealloc(&ours);
            free(length > SMALL_MOST ? theirs.large.bytes : NULL);
        }
    }
    return is_known;
}

bool ls_tstring_is_known(void)
{
    void             *library      = dlopen("libtensorflow_cc.so.2", RTLD_NOLOAD | RTLD_NOW);
    void             *copying      = library != NULL ? dlsym(library, "TF_StringCopy") : NULL;
    void             *deallocating = library != NULL ? dlsym(library, "TF_StringDealloc") : NULL;
    string_copy_fn    copy;
    string_dealloc_fn dealloc;

    if (copying == NULL || deallocating == NULL) {
        return false;
    }
    memcpy(&copy, &copying, sizeof(copy)); /* C has no cast from an object to a function */
    memcpy(&dealloc, &deallocating, sizeof(dealloc));
    return is_form_of(copy, dealloc);
}
