/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures inside the schedule: on the wire, and what follows from one. */
#ifndef LS_SCHEDULE_SIGNATURE_H
#define LS_SCHEDULE_SIGNATURE_H

#include "base/blob.h"
#include "schedule/schedule.h"

/* Fewest bytes that a signature takes on the wire. */
#define LS_SIGNATURE_MIN_WIRE 35

void ls_signature_put(const ls_signature_t *signature, ls_blob_t *blob);
/* False if it is cut short or a value is out of range. */
bool ls_signature_get(ls_blob_reader_t *reader, ls_signature_t *signature_p);

/* Ranks may give different amounts: count and shape[0] are not compared. */
bool ls_signature_has_free_count(const ls_signature_t *signature);

/* May a and b be in one bucket, as far as their kind goes? */
bool     ls_signature_can_fuse(const ls_signature_t *a, const ls_signature_t *b);
uint64_t ls_signature_bytes(const ls_signature_t *signature);

/* The agreed signature as one run sees it: free counts are those of the own item, or 0. */
void ls_signature_fill_count(const ls_schedule_item_t *item, ls_signature_t *signature);

#endif
