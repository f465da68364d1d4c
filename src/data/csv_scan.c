/* SPDX-License-Identifier: Apache-2.0 */
#include "data/csv_scan.h"

const ls_csv_scan_ops_t *ls_csv_scan_get(void)
{
    static const ls_csv_scan_ops_t *(*const paths[])(void) = {ls_csv_scan_avx512_get, ls_csv_scan_avx2_get,
                                                              ls_csv_scan_c_get};
    const ls_csv_scan_ops_t *ops                           = NULL;

    for (unsigned i = 0; ops == NULL; i++) { /* "c" is always there */
        ops = paths[i]();
    }
    return ops;
}
