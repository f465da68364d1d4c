/* SPDX-License-Identifier: Apache-2.0 */
/* Where the records of TFRecord files begin. */
#ifndef LS_DATA_TFRECORD_INDEX_H
#define LS_DATA_TFRECORD_INDEX_H

#include "data/file.h"
#include "lockstep_data.h"

#define LS_TFRECORD_HEAD 12 /* length in 8 bytes, its checksum in 4 */
#define LS_TFRECORD_TAIL 4  /* checksum of the data */

typedef struct ls_tfrecord_index {
    uint64_t *offsets; /* of each record in its file, file after file */
    uint64_t  count;
    uint64_t *starts; /* the first record of each file, and the end */
} ls_tfrecord_index_t;

/*
 * Looks at every record's length.  Ranks with part.allgather share the files' bytes among them: a rank that
 * begins in the middle finds the next record by the checksum of its length.
 */
ls_status_t ls_tfrecord_index_create(const ls_file_t *files, unsigned num_files,
                                     const ls_data_options_t *options, ls_tfrecord_index_t *index_p);
void        ls_tfrecord_index_clear(ls_tfrecord_index_t *index);

/* Is this the head of a record that begins at `offset`?  Its data has *length_p bytes. */
int ls_tfrecord_index_is_head(const unsigned char *head, uint64_t offset, uint64_t file_bytes,
                              uint64_t *length_p);

#endif
