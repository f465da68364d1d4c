/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading data sets: rows of named fields, from any of the formats that this build knows.
 *
 *     ls_data_h data;
 *     ls_data_open("train-images-idx3-ubyte.gz", NULL, &data);
 *     const ls_data_info_t *info = ls_data_info(data);          60000 rows; field 0: "data", uint8, 28 x 28
 *     ls_data_column_t column = { .field = 0, .data = memory };
 *     ls_data_read(data, 0, 100, &column, 1);                   rows 0 to 99
 *     ls_data_close(data);
 *
 * Needs no MPI, no TensorFlow and no ls_start().  A function that fails returns a status, and ls_last_error()
 * names the file, the record or row, the byte offset and the reason.
 *
 * Threads: ls_data_read may be called by several threads at once; the others by one at a time.
 * Memory: a reader keeps a fixed buffer, and for some formats an index; rows go straight to the caller's
 * memory.
 */
#ifndef LOCKSTEP_DATA_H
#define LOCKSTEP_DATA_H

#include <stddef.h>

#include "lockstep.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Type, name, bytes of an element (0: rows differ in length). */
#define LS_DATA_TYPE_LIST(X)         \
    X(LS_DATA_BOOL, "bool", 1)       \
    X(LS_DATA_INT8, "int8", 1)       \
    X(LS_DATA_INT16, "int16", 2)     \
    X(LS_DATA_INT32, "int32", 4)     \
    X(LS_DATA_INT64, "int64", 8)     \
    X(LS_DATA_UINT8, "uint8", 1)     \
    X(LS_DATA_UINT16, "uint16", 2)   \
    X(LS_DATA_UINT32, "uint32", 4)   \
    X(LS_DATA_UINT64, "uint64", 8)   \
    X(LS_DATA_FLOAT16, "float16", 2) \
    X(LS_DATA_FLOAT32, "float32", 4) \
    X(LS_DATA_FLOAT64, "float64", 8) \
    X(LS_DATA_BYTES, "bytes", 0)

typedef enum ls_data_type {
    LS_DATA_AUTO = -1, /* in options only: found out from the data */
#define LS_DATA_TYPE_ENUM(_type, _name, _size) _type,
    LS_DATA_TYPE_LIST(LS_DATA_TYPE_ENUM)
#undef LS_DATA_TYPE_ENUM
        LS_DATA_TYPE_COUNT
} ls_data_type_t;

LS_API const char *ls_data_type_name(ls_data_type_t type); /* "float32"; "?" for a value out of range */
LS_API size_t      ls_data_type_size(ls_data_type_t type);

#define LS_DATA_MAX_DIMS 8

/* One field.  Elements are in the byte order of this machine, rows in C order without gaps. */
typedef struct ls_data_field {
    const char    *name;
    ls_data_type_t type;
    unsigned       num_dims;                /* of a row; 0: a number, or LS_DATA_BYTES */
    uint64_t       shape[LS_DATA_MAX_DIMS]; /* of a row */
    uint64_t       row_bytes;               /* 0 for LS_DATA_BYTES */
    uint64_t       num_rows;                /* of the whole data set, whatever the rank */
} ls_data_field_t;

typedef struct ls_data_info {
    const char            *format; /* name in the table of formats: "idx" */
    unsigned               num_fields;
    const ls_data_field_t *fields;
    /* Rows that cost little when they are read together, as a chunk of HDF5: a shuffle should keep runs of so
     * many together.  1: any row costs the same. */
    uint64_t chunk_rows;
} ls_data_info_t;

/*
 * Called now and then during long work; `done` of `total` bytes or rows.  Anything but 0 stops the work,
 * which then fails with LS_ERR_STOPPED.
 */
typedef int (*ls_data_progress_fn)(void *arg, const char *path, uint64_t done, uint64_t total);

/*
 * Gives every rank the `bytes` at `mine` of all ranks, in rank order, at `all`.  Collective: returns when all
 * ranks have called it.  Anything but LS_OK ends the reading.
 */
typedef ls_status_t (*ls_data_allgather_fn)(void *arg, const void *mine, size_t bytes, void *all);

/*
 * Which rank this is.  With `allgather` all ranks open the same data together: they share the work (each
 * looks for the rows in its own bytes of a text), and fail together.  Without it each rank does all by
 * itself.
 */
typedef struct ls_data_part {
    unsigned             rank;
    unsigned             size; /* 0 stands for 1 */
    ls_data_allgather_fn allgather;
    void                *arg; /* of allgather */
} ls_data_part_t;

/*
 * For a caller that will read all of this rank's block: a reader that has to pass over the whole file to find
 * its rows (text tables) gives them to the caller in that pass, and saves a second one.  It is free not to;
 * see ls_data_ahead_rows().
 */
struct ls_data_column;
typedef struct ls_data_ahead {
    /*
     * Sets columns[i].data to memory for `rows` rows in all of each of the fields that are not LS_DATA_BYTES.
     * Called again when there are more rows than were expected: those that are there must be kept.
     */
    ls_status_t (*room)(void *arg, const ls_data_field_t *fields, unsigned num_fields, uint64_t rows,
                        struct ls_data_column *columns);
    /* The columns of LS_DATA_BYTES hold rows [first, first + count) of those that are given, until this
     * returns. */
    ls_status_t (*texts)(void *arg, uint64_t first, uint64_t count, struct ls_data_column *columns);
    void *arg;
} ls_data_ahead_t;

typedef enum ls_data_header { LS_DATA_HEADER_AUTO, LS_DATA_HEADER_YES, LS_DATA_HEADER_NO } ls_data_header_t;

/* Zero-initialised options are the usual ones.  Text is copied. */
typedef struct ls_data_options {
    const char        *format;  /* NULL: found out from the name and the first bytes */
    const char *const *columns; /* fields wanted, by name or number, in this order; NULL: all */
    unsigned           num_columns;
    int                skip_checksums; /* do not verify CRCs of records */
    ls_data_part_t     part;

    ls_data_progress_fn progress;
    void               *progress_arg;

    const ls_data_ahead_t *ahead; /* NULL: rows are read with ls_data_read() only; used while opening */

    /* Text tables only. */
    char             delimiter; /* 0: found out: one of , ; tab blank | */
    char             quote;     /* 0: '"' */
    ls_data_header_t header;
    const ls_data_type_t
            *types; /* one for each of `columns`, or of all fields where columns is NULL; NULL: found out */
    unsigned num_types;
    const char *const
            *missing; /* texts that stand for a missing value; NULL: "", NA, N/A, nan, NaN, null, NULL */
    unsigned num_missing;
} ls_data_options_t;

typedef struct ls_data *ls_data_h;

/*
 * `path` is a file, a folder or a pattern (*, ?, [...]); the files of a folder or pattern, in the order of
 * their names, are one after another in the data set, and must agree in their fields.  `options` may be NULL.
 */
LS_API ls_status_t ls_data_open(const char *path, const ls_data_options_t *options, ls_data_h *data_p);
LS_API ls_status_t ls_data_open_files(const char *const *paths, unsigned num_paths,
                                      const ls_data_options_t *options, ls_data_h *data_p);
LS_API void        ls_data_close(ls_data_h data); /* NULL is allowed */

/* Valid until ls_data_close(). */
LS_API const ls_data_info_t *ls_data_info(ls_data_h data);

/* The rows that options->ahead was given, [*first_p, *first_p + returned number): about those of this rank's
 * block. 0: none, or what was given does not count. */
LS_API uint64_t ls_data_ahead_rows(ls_data_h data, uint64_t *first_p);

/* The rows of a part: contiguous, the first (num_rows mod size) ranks have one more. */
LS_API void ls_data_block(uint64_t num_rows, unsigned size, unsigned rank, uint64_t *first_p,
                          uint64_t *count_p);

/* Memory for the `length` bytes of row `row` of a read (0 is its first); NULL: there is none. */
typedef void *(*ls_data_place_fn)(void *arg, uint64_t row, size_t length);

/*
 * Where the rows of a field go.  Fixed length: `data` has room for count * row_bytes.  LS_DATA_BYTES: the
 * library puts the bytes of all rows at `data`, row i at [offsets[i], offsets[i + 1]); start with zeros, the
 * memory may be used again for the next read, and goes back with ls_data_column_clear().  Or, where `place`
 * is set, each row goes to the memory that place(place_arg, row, length) gives for it, rows in their order.
 */
typedef struct ls_data_column {
    unsigned  field;
    void     *data;
    uint64_t *offsets;
    /* LS_DATA_BYTES only, kept by the library: */
    uint64_t num_rows;
    size_t   data_room, offsets_room; /* allocated bytes */

    ls_data_place_fn place; /* LS_DATA_BYTES only; NULL: none */
    void            *place_arg;
} ls_data_column_t;

LS_API void ls_data_column_clear(ls_data_column_t *column); /* LS_DATA_BYTES only */

/*
 * The rows of an LS_DATA_BYTES column as objects of a language whose texts are objects: `objects[i]` becomes
 * what make(bytes, length) returns for row i (NULL: it could not, and LS_ERR_NO_MEMORY is returned).  A short
 * row that was seen lately becomes the same object once more, after keep(object).  What was at objects[i]
 * before is given to drop(), unless it is NULL.
 */
typedef struct ls_data_objects {
    void *(*make)(const char *bytes, ptrdiff_t length);
    void (*keep)(void *object);
    void (*drop)(void *object);
} ls_data_objects_t;

LS_API ls_status_t ls_data_column_objects(const ls_data_column_t *column, const ls_data_objects_t *functions,
                                          void **objects);

/* Rows [first, first + count), any rows of the data set, of each of the columns.  On failure their content is
 * undefined. */
LS_API ls_status_t ls_data_read(ls_data_h data, uint64_t first, uint64_t count, ls_data_column_t *columns,
                                unsigned num_columns);

/* The rows whose numbers are given, in the order given. */
LS_API ls_status_t ls_data_read_at(ls_data_h data, const uint64_t *rows, uint64_t count,
                                   ls_data_column_t *columns, unsigned num_columns);

/*
 * All rows of a field without a copy, read-only, valid until ls_data_close(); LS_ERR_UNSUPPORTED where the
 * format or this file has it in another form.  A file that is cut short while it is mapped ends the process
 * when the lost part is touched: use it for files that nobody changes.
 */
LS_API ls_status_t ls_data_map(ls_data_h data, unsigned field, const void **rows_p);

/* The table of formats: name, what it is, and the library it lacks in this build (NULL: none).  0 past the
 * end. */
LS_API int ls_data_format(unsigned index, const char **name_p, const char **title_p,
                          const char **missing_library_p);

#ifdef __cplusplus
}
#endif

#endif
