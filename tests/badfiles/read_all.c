/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads all rows of all fields of a file with the C API alone: read_all FORMAT RANKS RANK PATH
 * FORMAT "-" lets it be found out.  Prints the rows and a sum of their bytes; or the error, with exit code 1.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep_data.h"

#define ROWS_AT_ONCE 7 /* odd, so that reads end anywhere */

static int fail(void)
{
    fprintf(stderr, "%s\n", ls_last_error());
    return 1;
}

/* Reads a field row by row; the sum of its bytes makes sure that they are all touched. */
static ls_status_t read_field(ls_data_h data, unsigned field, uint64_t *sum_p)
{
    const ls_data_field_t *about  = &ls_data_info(data)->fields[field];
    ls_data_column_t       column = {.field = field};
    ls_status_t            status = LS_OK;
    unsigned char         *memory = NULL;

    if (about->type != LS_DATA_BYTES) {
        memory = malloc(about->row_bytes * ROWS_AT_ONCE + 1);
        if (memory == NULL) {
            return LS_ERR_NO_MEMORY;
        }
        column.data = memory;
    }
    for (uint64_t row = 0; row < about->num_rows && status == LS_OK; row += ROWS_AT_ONCE) {
        const uint64_t count = about->num_rows - row < ROWS_AT_ONCE ? about->num_rows - row : ROWS_AT_ONCE;
        uint64_t       bytes;

        status = ls_data_read(data, row, count, &column, 1);
        bytes  = about->type == LS_DATA_BYTES && status == LS_OK ? column.offsets[count]
                                                                 : count * about->row_bytes;
        for (uint64_t i = 0; i < bytes && status == LS_OK; i++) {
            *sum_p += ((const unsigned char *)column.data)[i];
        }
    }
    if (memory == NULL) {
        ls_data_column_clear(&column);
    }
    free(memory);
    return status;
}

int main(int argc, char **argv)
{
    ls_data_options_t options = {0};
    ls_data_h         data;
    uint64_t          sum = 0;

    if (argc != 5) {
        fprintf(stderr, "usage: read_all FORMAT|- RANKS RANK PATH\n");
        return 2;
    }
    options.format    = strcmp(argv[1], "-") == 0 ? NULL : argv[1];
    options.part.size = (unsigned)atoi(argv[2]);
    options.part.rank = (unsigned)atoi(argv[3]);
    if (ls_data_open(argv[4], &options, &data) != LS_OK) {
        return fail();
    }
    const ls_data_info_t *info = ls_data_info(data);

    for (unsigned field = 0; field < info->num_fields; field++) {
        if (read_field(data, field, &sum) != LS_OK) {
            fail();
            ls_data_close(data);
            return 1;
        }
        printf("%s %s %" PRIu64 " rows\n", info->fields[field].name,
               ls_data_type_name(info->fields[field].type), info->fields[field].num_rows);
    }
    printf("sum %" PRIu64 "\n", sum);
    ls_data_close(data);
    return 0;
}
