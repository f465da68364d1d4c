/* SPDX-License-Identifier: Apache-2.0 */
#include "data/formats.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "data/file.h"

#define LIST_ROOM 512

extern const ls_reader_ops_t ls_reader_npy, ls_reader_npz, ls_reader_cifar, ls_reader_idx, ls_reader_tfrecord;
extern const ls_reader_ops_t ls_reader_hdf5, ls_reader_netcdf, ls_reader_csv;

/* Those that are recognised by unmistakable bytes come first. */
const ls_reader_ops_t *const ls_formats[] = {
    &ls_reader_npy, &ls_reader_npz,      &ls_reader_hdf5,  &ls_reader_netcdf,
    &ls_reader_idx, &ls_reader_tfrecord, &ls_reader_cifar, &ls_reader_csv,    NULL,
};

int ls_data_format(unsigned index, const char **name_p, const char **title_p, const char **missing_library_p)
{
    if (index + 1 >= sizeof(ls_formats) / sizeof(ls_formats[0])) {
        return 0;
    }
    *name_p            = ls_formats[index]->name;
    *title_p           = ls_formats[index]->title;
    *missing_library_p = ls_formats[index]->missing_library;
    return 1;
}

static const char *list_names(char list[LIST_ROOM])
{
    size_t used = 0;

    for (unsigned i = 0; ls_formats[i] != NULL && used < LIST_ROOM; i++) {
        used +=
            (size_t)snprintf(list + used, LIST_ROOM - used, "%s%s", i > 0 ? ", " : "", ls_formats[i]->name);
    }
    return list;
}

static ls_status_t find_by_name(const char *path, const char *name, const ls_reader_ops_t **ops_p)
{
    char list[LIST_ROOM] = "";

    for (unsigned i = 0; ls_formats[i] != NULL; i++) {
        if (strcasecmp(ls_formats[i]->name, name) == 0) {
            *ops_p = ls_formats[i];
            return LS_OK;
        }
    }
    return ls_error_set(LS_ERR_INVALID, "%s: there is no format '%s'; there are %s", path, name,
                        list_names(list));
}

static ls_status_t find_by_content(const char *path, const ls_reader_ops_t **ops_p)
{
    unsigned char    bytes[LS_READER_HEAD_BYTES] = {0};
    ls_reader_head_t head                        = {.path = path, .bytes = bytes};
    const char      *slash                       = strrchr(path, '/');
    char             list[LIST_ROOM]             = "";
    ls_file_t        file;
    ls_status_t      status = ls_file_open(path, &file);

    if (status != LS_OK) {
        return status;
    }
    head.name       = slash != NULL ? slash + 1 : path;
    head.file_bytes = file.bytes;
    head.num_bytes  = file.bytes < sizeof(bytes) ? (size_t)file.bytes : sizeof(bytes);
    status          = ls_file_read(&file, 0, head.num_bytes, bytes);
    ls_file_close(&file);
    if (status != LS_OK) {
        return status;
    }
    if (head.file_bytes == 0) {
        return ls_file_error(path, "", LS_FILE_NOWHERE, 0, "the file is empty");
    }
    for (unsigned i = 0; ls_formats[i] != NULL; i++) {
        if (ls_formats[i]->recognise(&head)) {
            *ops_p = ls_formats[i];
            return LS_OK;
        }
    }
    return ls_file_error(path, "", LS_FILE_NOWHERE, 0,
                         "it is of no known format (it begins with %02x %02x %02x %02x); known are %s",
                         bytes[0], bytes[1], bytes[2], bytes[3], list_names(list));
}

ls_status_t ls_formats_find(const char *path, const char *name, const ls_reader_ops_t **ops_p)
{
    const ls_reader_ops_t *ops = NULL;
    const ls_status_t status   = name != NULL ? find_by_name(path, name, &ops) : find_by_content(path, &ops);

    if (status != LS_OK) {
        return status;
    }
    if (ops->missing_library != NULL) {
        return ls_error_set(
            LS_ERR_UNSUPPORTED,
            "%s: %s cannot be read: this build lacks the library %s; install it and build Lockstep again",
            path, ops->title, ops->missing_library);
    }
    *ops_p = ops;
    return LS_OK;
}
