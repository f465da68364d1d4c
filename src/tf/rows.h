/* SPDX-License-Identifier: Apache-2.0 */
/* The operator LockstepReadRows: rows of an open data set (lockstep_data.h) as tensors, without Python. */
#ifndef LS_TF_ROWS_H
#define LS_TF_ROWS_H

#include "tf/tf_api.h"

/* Register operator and kernel.  A TensorFlow that lacks what it needs goes without; Python then reads by
 * itself. */
void ls_rows_register(TF_Status *status);

#endif
