/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libhdf5 that we use.  The library is not linked but opened when the first HDF5 file is:
 * programs that read none neither need nor load it, and its names stay apart from those of another libhdf5 in
 * the process (the one in h5py's wheel).
 *
 * libhdf5 keeps state of its own for the whole process and may be built without locks: every call is between
 * ls_hdf5_api_begin() and ls_hdf5_api_end().
 */
#ifndef LS_DATA_HDF5_API_H
#define LS_DATA_HDF5_API_H

/* Newer versions keep these names of 1.10. */
#define H5_USE_110_API
#include <hdf5.h>
#include <stdint.h>

#include "lockstep.h"

/* Constants such as H5F_ACC_RDONLY would call the library by name. */
#undef H5CHECK
#undef H5OPEN
#define H5CHECK
#define H5OPEN

#define LS_HDF5_FUNCTIONS(X)      \
    X(H5open)                     \
    X(H5Aexists)                  \
    X(H5Dclose)                   \
    X(H5Dget_create_plist)        \
    X(H5Dget_offset)              \
    X(H5Dget_space)               \
    X(H5Dget_type)                \
    X(H5Dopen2)                   \
    X(H5Dread)                    \
    X(H5Eclear2)                  \
    X(H5Eget_auto2)               \
    X(H5Eset_auto2)               \
    X(H5Ewalk2)                   \
    X(H5Fclose)                   \
    X(H5Fopen)                    \
    X(H5Ovisit1)                  \
    X(H5Pclose)                   \
    X(H5Pcreate)                  \
    X(H5Pget_chunk)               \
    X(H5Pget_external_count)      \
    X(H5Pget_layout)              \
    X(H5Pget_nfilters)            \
    X(H5Pset_chunk_cache)         \
    X(H5Sclose)                   \
    X(H5Screate_simple)           \
    X(H5Sget_simple_extent_dims)  \
    X(H5Sget_simple_extent_ndims) \
    X(H5Sget_simple_extent_type)  \
    X(H5Sselect_hyperslab)        \
    X(H5Tclose)                   \
    X(H5Tcopy)                    \
    X(H5Tequal)                   \
    X(H5Tget_class)               \
    X(H5Tget_nmembers)            \
    X(H5Tget_member_name)         \
    X(H5Tget_sign)                \
    X(H5Tget_size)                \
    X(H5Tset_ebias)               \
    X(H5Tset_fields)              \
    X(H5Tset_size)                \
    X(H5free_memory)

/* Our field, libhdf5's variable. */
#define LS_HDF5_IDS(X)                     \
    X(native_int8, H5T_NATIVE_SCHAR_g)     \
    X(native_int16, H5T_NATIVE_SHORT_g)    \
    X(native_int32, H5T_NATIVE_INT_g)      \
    X(native_int64, H5T_NATIVE_LONG_g)     \
    X(native_uint8, H5T_NATIVE_UCHAR_g)    \
    X(native_uint16, H5T_NATIVE_USHORT_g)  \
    X(native_uint32, H5T_NATIVE_UINT_g)    \
    X(native_uint64, H5T_NATIVE_ULONG_g)   \
    X(native_float32, H5T_NATIVE_FLOAT_g)  \
    X(native_float64, H5T_NATIVE_DOUBLE_g) \
    X(dataset_access, H5P_CLS_DATASET_ACCESS_ID_g)

typedef struct ls_hdf5_api {
#define LS_HDF5_FIELD(_name) __typeof__(&_name) _name;
    LS_HDF5_FUNCTIONS(LS_HDF5_FIELD)
#undef LS_HDF5_FIELD
#define LS_HDF5_FIELD(_name, _symbol) hid_t _name;
    LS_HDF5_IDS(LS_HDF5_FIELD)
#undef LS_HDF5_FIELD
    hid_t native_float16; /* made by us: older versions have none */
} ls_hdf5_api_t;

/* Takes the lock, and loads the library the first time; LS_ERR_UNSUPPORTED where it is not there: then no
 * end. */
ls_status_t ls_hdf5_api_begin(const ls_hdf5_api_t **api_p);
void        ls_hdf5_api_end(void);

/* Between the two: why libhdf5's last call failed. */
#define LS_HDF5_REASON_ROOM 512
void ls_hdf5_api_reason(char reason[LS_HDF5_REASON_ROOM]);

#endif
