/* SPDX-License-Identifier: Apache-2.0 */
#include "data/hdf5_magic.h"

#include <string.h>
#include <strings.h>

static bool has_ending(const char *name, const char *ending)
{
    const size_t length = strlen(name), ending_length = strlen(ending);

    return length > ending_length && strcasecmp(name + length - ending_length, ending) == 0;
}

/* The name too: the signature may come later in the file, after a block of the user's. */
bool ls_hdf5_magic_recognise(const ls_reader_head_t *head)
{
    static const unsigned char magic[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

    return (head->num_bytes >= sizeof(magic) && memcmp(head->bytes, magic, sizeof(magic)) == 0) ||
           has_ending(head->name, ".h5") || has_ending(head->name, ".hdf5");
}
