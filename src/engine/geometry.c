/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/geometry.h"

#include "base/mem.h"

#define BLOCK_ALIGN 16U

ls_status_t ls_geometry_init(ls_geometry_t *geometry, uint32_t num_blocks)
{
    void             *mem;
    const ls_status_t status = ls_mem_alloc(3 * (size_t)num_blocks * sizeof(uint64_t), "geometry", &mem);

    if (status != LS_OK) {
        return status;
    }
    *geometry = (ls_geometry_t){
        .num_blocks = num_blocks,
        .counts     = mem,
        .input_at   = (uint64_t *)mem + num_blocks,
        .output_at  = (uint64_t *)mem + 2 * (size_t)num_blocks,
        .step       = 1,
        .num_chunks = 1,
    };
    return LS_OK;
}

void ls_geometry_clear(ls_geometry_t *geometry)
{
    ls_mem_free(geometry->counts);
    *geometry = (ls_geometry_t){0};
}

static uint64_t align_up(uint64_t count)
{
    return (count == 0) ? BLOCK_ALIGN : (count + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
}

void ls_geometry_set_even(ls_geometry_t *geometry, uint64_t count)
{
    const uint64_t blocks = geometry->num_blocks;
    const uint64_t each   = (count + blocks - 1) / blocks;
    const uint64_t size   = align_up(each);
    uint64_t       at     = 0;

    for (uint32_t block = 0; block < blocks; block++) {
        geometry->counts[block]    = (count - at < size) ? count - at : size;
        geometry->input_at[block]  = at;
        geometry->output_at[block] = at;
        at += geometry->counts[block];
    }
}

void ls_geometry_set_chunks(ls_geometry_t *geometry, uint64_t step, bool is_shared)
{
    uint64_t longest = 0;

    for (uint32_t block = 0; block < geometry->num_blocks; block++) {
        longest = (geometry->counts[block] > longest) ? geometry->counts[block] : longest;
    }
    step                 = align_up(step);
    geometry->num_chunks = (longest == 0) ? 1 : (uint32_t)((longest + step - 1) / step);
    geometry->step       = is_shared ? align_up((longest + geometry->num_chunks - 1) / geometry->num_chunks) : step;
}

ls_range_t ls_geometry_range(const ls_geometry_t *geometry, uint32_t chunk, uint32_t block)
{
    const uint64_t begin = (uint64_t)chunk * geometry->step;
    const uint64_t count = geometry->counts[block];
    ls_range_t     range = {0};

    if (begin < count) {
        range.count     = (count - begin < geometry->step) ? count - begin : geometry->step;
        range.input_at  = geometry->input_at[block] + begin;
        range.output_at = geometry->output_at[block] + begin;
    }
    return range;
}

uint64_t ls_geometry_count(const ls_geometry_t *geometry, uint32_t chunk, uint32_t block, uint32_t num_blocks)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < num_blocks; i++) {
        count += ls_geometry_range(geometry, chunk, block + i).count;
    }
    return count;
}
