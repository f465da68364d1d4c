/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce inside a function that XLA has compiled. */
#ifndef LS_TF_XLA_H
#define LS_TF_XLA_H

/* Make the target known to XLA; lockstep_tf_xla_problem() says whether that went well. */
void ls_xla_register(void);

#endif
