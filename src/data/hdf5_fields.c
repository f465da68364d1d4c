/* SPDX-License-Identifier: Apache-2.0 */
#include "data/hdf5_fields.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define MAX_CACHE_BYTES ((size_t)64 * 1024 * 1024)
#define CACHE_SLOTS     12421 /* a prime, about a hundred times the chunks that fit, as libhdf5 advises */

/* The walk over the objects of a file. */
typedef struct visit {
    const ls_hdf5_api_t     *api;
    hid_t                    file;
    const char              *path;
    const ls_data_options_t *options;
    ls_hdf5_fields_t        *fields;
    ls_status_t              status;
} visit_t;

static bool is_wanted(const ls_data_options_t *options, const char *name)
{
    for (unsigned i = 0; options->columns != NULL && i < options->num_columns; i++) {
        if (strcmp(options->columns[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- types -------------------------------------------------------------------------------------- */

/* h5py writes bool as an enumeration FALSE, TRUE of int8. */
static bool is_bool(const ls_hdf5_api_t *api, hid_t type)
{
    bool found = false;

    if (api->H5Tget_class(type) != H5T_ENUM || api->H5Tget_size(type) != 1 ||
        api->H5Tget_nmembers(type) != 2) {
        return false;
    }
    for (unsigned i = 0; i < 2; i++) {
        char *name = api->H5Tget_member_name(type, i);

        found |= (name != NULL && strcmp(name, "TRUE") == 0);
        api->H5free_memory(name);
    }
    return found;
}

/* By its size in bytes. */
static ls_data_type_t whole_type(size_t size, bool has_sign)
{
    switch (size) {
    case 1:
        return has_sign ? LS_DATA_INT8 : LS_DATA_UINT8;
    case 2:
        return has_sign ? LS_DATA_INT16 : LS_DATA_UINT16;
    case 4:
        return has_sign ? LS_DATA_INT32 : LS_DATA_UINT32;
    case 8:
        return has_sign ? LS_DATA_INT64 : LS_DATA_UINT64;
    default:
        return LS_DATA_AUTO;
    }
}

static ls_data_type_t real_type(size_t size)
{
    switch (size) {
    case 2:
        return LS_DATA_FLOAT16;
    case 4:
        return LS_DATA_FLOAT32;
    case 8:
        return LS_DATA_FLOAT64;
    default:
        return LS_DATA_AUTO;
    }
}

/* LS_DATA_AUTO: none that is known here. */
static ls_data_type_t type_of(const ls_hdf5_api_t *api, hid_t type)
{
    if (is_bool(api, type)) {
        return LS_DATA_BOOL;
    }
    switch (api->H5Tget_class(type)) {
    case H5T_INTEGER:
        return whole_type(api->H5Tget_size(type), api->H5Tget_sign(type) == H5T_SGN_2);
    case H5T_FLOAT:
        return real_type(api->H5Tget_size(type));
    default:
        return LS_DATA_AUTO;
    }
}

static hid_t memory_type_of(const ls_hdf5_api_t *api, ls_data_type_t type)
{
    const hid_t types[LS_DATA_TYPE_COUNT] = {
        [LS_DATA_BOOL] = api->native_int8,       [LS_DATA_INT8] = api->native_int8,
        [LS_DATA_INT16] = api->native_int16,     [LS_DATA_INT32] = api->native_int32,
        [LS_DATA_INT64] = api->native_int64,     [LS_DATA_UINT8] = api->native_uint8,
        [LS_DATA_UINT16] = api->native_uint16,   [LS_DATA_UINT32] = api->native_uint32,
        [LS_DATA_UINT64] = api->native_uint64,   [LS_DATA_FLOAT16] = api->native_float16,
        [LS_DATA_FLOAT32] = api->native_float32, [LS_DATA_FLOAT64] = api->native_float64,
    };

    return types[type];
}

/* ---- one dataset -------------------------------------------------------------------------------- */

static const char *describe_shape(const ls_hdf5_api_t *api, hid_t space, ls_data_type_t type,
                                  ls_hdf5_field_t *field)
{
    hsize_t   dims[H5S_MAX_RANK];
    uint64_t  shape[LS_DATA_MAX_DIMS + 1];
    const int num_dims = api->H5Sget_simple_extent_ndims(space);

    if (api->H5Sget_simple_extent_type(space) != H5S_SIMPLE || num_dims < 1) {
        return "it has no dimension, so no rows";
    }
    if (num_dims > LS_DATA_MAX_DIMS + 1) {
        return "it has more than 9 dimensions";
    }
    api->H5Sget_simple_extent_dims(space, dims, NULL);
    for (int i = 0; i < num_dims; i++) {
        shape[i] = dims[i];
    }
    return ls_array_describe(&field->array, type, shape, (unsigned)num_dims)
               ? NULL
               : "its size is larger than any file";
}

/* Chunked: rows are cheap in bands of a chunk's height, and a band should stay in libhdf5's cache. */
static void describe_chunks(const ls_hdf5_api_t *api, hid_t create_list, ls_hdf5_field_t *field,
                            size_t *band_bytes_p)
{
    hsize_t                chunk[H5S_MAX_RANK];
    const ls_data_field_t *shape = &field->array.field;
    const int              num   = api->H5Pget_chunk(create_list, H5S_MAX_RANK, chunk);
    double                 band  = (double)ls_data_type_size(shape->type);

    if (num != (int)shape->num_dims + 1) {
        return;
    }
    field->chunk_rows = chunk[0] > 0 ? chunk[0] : 1;
    band *= (double)field->chunk_rows;
    for (unsigned i = 0; i < shape->num_dims; i++) { /* whole chunks, also at the edge */
        const uint64_t one = chunk[i + 1] > 0 ? chunk[i + 1] : 1;

        band *= (double)((shape->shape[i] + one - 1) / one) * (double)one;
    }
    *band_bytes_p = band < (double)MAX_CACHE_BYTES ? (size_t)band : 0;
}

static void describe_layout(const ls_hdf5_api_t *api, hid_t file_type, ls_hdf5_field_t *field,
                            size_t *band_bytes_p)
{
    const hid_t create_list = api->H5Dget_create_plist(field->dataset);

    field->chunk_rows = 1;
    *band_bytes_p     = 0;
    if (create_list < 0) {
        return;
    }
    const H5D_layout_t layout = api->H5Pget_layout(create_list);
    const bool         is_same =
        api->H5Tequal(file_type, field->memory_type) > 0 || field->array.field.type == LS_DATA_BOOL;

    if (layout == H5D_CHUNKED) {
        describe_chunks(api, create_list, field, band_bytes_p);
    }
    if (layout == H5D_CONTIGUOUS && is_same && api->H5Pget_external_count(create_list) == 0 &&
        api->H5Pget_nfilters(create_list) == 0) {
        const haddr_t offset = api->H5Dget_offset(field->dataset);

        field->is_plain     = (offset != HADDR_UNDEF); /* undefined: never written, all fill value */
        field->array.offset = offset;
    }
    api->H5Pclose(create_list);
}

/* Opens it again with room for a band of chunks. */
static void enlarge_cache(const ls_hdf5_api_t *api, hid_t file, const char *name, size_t bytes,
                          hid_t *dataset)
{
    const hid_t access = api->H5Pcreate(api->dataset_access);

    if (access >= 0 && api->H5Pset_chunk_cache(access, CACHE_SLOTS, bytes, 1.0) >= 0) {
        const hid_t again = api->H5Dopen2(file, name, access);

        if (again >= 0) {
            api->H5Dclose(*dataset);
            *dataset = again;
        }
    }
    if (access >= 0) {
        api->H5Pclose(access);
    }
}

/* NULL, or why it is no field. */
static const char *describe(const visit_t *visit, const char *name, ls_hdf5_field_t *field)
{
    const ls_hdf5_api_t *api       = visit->api;
    const hid_t          file_type = api->H5Dget_type(field->dataset);
    const hid_t          space     = api->H5Dget_space(field->dataset);
    const ls_data_type_t type      = file_type >= 0 ? type_of(api, file_type) : LS_DATA_AUTO;
    const char          *reason    = "its elements are no numbers of a type that is known here";
    size_t               band      = 0;

    if (type != LS_DATA_AUTO && space >= 0) {
        reason = describe_shape(api, space, type, field);
    }
    if (reason == NULL) {
        field->memory_type = memory_type_of(api, type);
        field->is_scale =
            api->H5Aexists(field->dataset, "REFERENCE_LIST") > 0 ||
            (api->H5Aexists(field->dataset, "CLASS") > 0 && api->H5Aexists(field->dataset, "NAME") > 0);
        describe_layout(api, file_type, field, &band);
        if (band > 0) {
            enlarge_cache(api, visit->file, name, band, &field->dataset);
        }
    }
    if (file_type >= 0) {
        api->H5Tclose(file_type);
    }
    if (space >= 0) {
        api->H5Sclose(space);
    }
    return reason;
}

/* ---- all of them -------------------------------------------------------------------------------- */

static ls_status_t keep(ls_hdf5_fields_t *fields, const char *name, const ls_hdf5_field_t *field)
{
    char       *copy   = NULL;
    ls_status_t status = LS_OK;

    if (fields->num == fields->room) {
        const unsigned room = fields->room * 2 + 8;

        status       = ls_mem_resize((void **)&fields->list, fields->room * sizeof(*fields->list),
                                     room * sizeof(*fields->list), "datasets of an HDF5 file");
        fields->room = status == LS_OK ? room : fields->room;
    }
    if (status == LS_OK) {
        status = ls_mem_strdup(name, "name of a dataset", &copy);
    }
    if (status == LS_OK) {
        fields->list[fields->num]                  = *field;
        fields->list[fields->num].array.field.name = copy;
        fields->num++;
    }
    return status;
}

static void look_at_dataset(visit_t *visit, const char *name)
{
    ls_hdf5_field_t field = {.dataset = visit->api->H5Dopen2(visit->file, name, H5P_DEFAULT)};
    const char     *reason;

    if (field.dataset < 0) {
        char reason_text[LS_HDF5_REASON_ROOM];

        ls_hdf5_api_reason(reason_text);
        visit->status = ls_file_error(visit->path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE,
                                      "dataset '%s' cannot be opened: %s", name, reason_text);
        return;
    }
    reason = describe(visit, name, &field);
    if (reason == NULL) {
        visit->status = keep(visit->fields, name, &field);
    } else if (is_wanted(visit->options, name)) {
        visit->status = ls_file_error(visit->path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE,
                                      "dataset '%s' cannot be read: %s", name, reason);
    }
    if (reason != NULL || visit->status != LS_OK) {
        visit->api->H5Dclose(field.dataset);
    }
}

static herr_t look_at_object(hid_t object, const char *name, const H5O_info_t *info, void *arg)
{
    visit_t *visit = arg;

    (void)object;
    if (info->type == H5O_TYPE_DATASET) {
        look_at_dataset(visit, name);
    }
    return visit->status == LS_OK ? 0 : -1;
}

/* Dimension scales that nobody asked for go, unless nothing else would be left. */
static void drop_scales(const visit_t *visit)
{
    ls_hdf5_fields_t *fields   = visit->fields;
    unsigned          num_data = 0, kept = 0;

    for (unsigned i = 0; i < fields->num; i++) {
        num_data += !fields->list[i].is_scale;
    }
    for (unsigned i = 0; i < fields->num; i++) {
        ls_hdf5_field_t *field = &fields->list[i];

        if (field->is_scale && num_data > 0 && !is_wanted(visit->options, field->array.field.name)) {
            visit->api->H5Dclose(field->dataset);
            ls_mem_free((void *)(uintptr_t)field->array.field.name);
        } else {
            fields->list[kept++] = *field;
        }
    }
    fields->num = kept;
}

void ls_hdf5_fields_clear(const ls_hdf5_api_t *api, ls_hdf5_fields_t *fields)
{
    for (unsigned i = 0; i < fields->num; i++) {
        api->H5Dclose(fields->list[i].dataset);
        ls_mem_free((void *)(uintptr_t)fields->list[i].array.field.name);
    }
    ls_mem_free(fields->list);
    *fields = (ls_hdf5_fields_t){0};
}

ls_status_t ls_hdf5_fields_find(const ls_hdf5_api_t *api, hid_t file, const char *path,
                                const ls_data_options_t *options, ls_hdf5_fields_t *fields_p)
{
    ls_hdf5_fields_t fields = {0};
    visit_t          visit  = {.api = api, .file = file, .path = path, .options = options, .fields = &fields};
    const herr_t     walked = api->H5Ovisit1(file, H5_INDEX_NAME, H5_ITER_INC, look_at_object, &visit);

    if (visit.status == LS_OK && walked < 0) {
        char reason[LS_HDF5_REASON_ROOM];

        ls_hdf5_api_reason(reason);
        visit.status = ls_file_error(path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE,
                                     "its groups cannot be listed: %s", reason);
    }
    if (visit.status == LS_OK) {
        drop_scales(&visit);
    }
    if (visit.status == LS_OK && fields.num == 0) {
        visit.status = ls_file_error(path, "", LS_FILE_NOWHERE, LS_FILE_NOWHERE,
                                     "it holds no dataset of numbers with rows");
    }
    if (visit.status != LS_OK) {
        ls_hdf5_fields_clear(api, &fields);
        return visit.status;
    }
    *fields_p = fields;
    return LS_OK;
}
