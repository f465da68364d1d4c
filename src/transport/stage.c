/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stages come in classes of size.  Each class goes round in a circle: the stage sent longest ago is used
 * next, and a class is given new stages until the circle is several times as long as a second-level cache.
 *
 * Why not the one used last, which is still in our cache?  Because it is in the receiver's cache too, and
 * each line must be taken from there before it can be written again.  Two cores of a Zen 4, 64 KiB
 * written by one and added up by the other, by length of the circle:
 *
 *     circle           64 KiB    512 KiB    1 MiB    2 MiB    4 MiB    8 MiB   32 MiB
 *     write, GB/s           7          7       13       35       36       30       14
 *     read,  GB/s          27         31       28       28       28       24       26
 *
 * The oldest is almost always back.  If it is not, all that were sent are looked through, and only when that
 * finds nothing does the pool grow.
 *
 * A stage that came back as an answer is the exception: its owner was the last to read it, so nobody else has its
 * lines, and it is used again before any other.  The circle then never grows longer than what is under way.
 */
#include "transport/stage.h"

#include <unistd.h>

#include "base/error.h"

#define GROW_BYTES (8 * LS_MIB)
#define MAX_BYTES  ((size_t)1 << 46) /* more is not memory but a mistake */

/* Length of a circle in second-level caches, and its limits; the cache's size where the system does not tell. */
#define CIRCLE_CACHES    2
#define CIRCLE_LEAST     LS_MIB
#define CIRCLE_MOST      (8 * LS_MIB)
#define CACHE_IF_UNKNOWN LS_MIB

enum { CLASS_LARGE = 8, NUM_CLASSES };

/* Every power of two where it matters: what a class has more than is used makes its circle shorter than it looks. */
static const size_t class_room[NUM_CLASSES] = {
    [0] = 4 * LS_KIB,   [1] = 16 * LS_KIB,  [2] = 32 * LS_KIB,  [3] = 64 * LS_KIB,
    [4] = 128 * LS_KIB, [5] = 256 * LS_KIB, [6] = 512 * LS_KIB, [7] = LS_MIB,
    [CLASS_LARGE] = 0, /* each as large as it was asked for, in whole MiB */
};

typedef struct stage_class {
    ls_stage_t  *free; /* made or given back, and not sent */
    ls_stage_t **sent; /* a ring; room for every stage of the class, so that sending allocates nothing */
    size_t       sent_room, sent_first, num_sent;
    size_t       num_stages, bytes;
    bool         is_answered; /* some came back as answers */
} stage_class_t;

typedef struct stage_region {
    void    *heap; /* to be freed; NULL: the mailbox's memory */
    uint32_t segment;
    uint64_t offset;
    char    *at; /* not yet cut into stages */
    size_t   left;
} stage_region_t;

typedef struct stage_owned {
    ls_stage_t          stage; /* first: what the users see */
    struct stage_owned *next;
} stage_owned_t;

struct ls_stage_pool {
    ls_mailbox_h    mailbox;
    stage_class_t   classes[NUM_CLASSES];
    stage_region_t *regions;
    size_t          num_regions, regions_room;
    stage_owned_t  *all;
    size_t          bytes;
    size_t          circle_bytes; /* of each class */
};

static unsigned class_of(size_t bytes)
{
    unsigned index = 0;

    while (index < CLASS_LARGE && bytes > class_room[index]) {
        index++;
    }
    return index;
}

static bool is_back(const ls_stage_t *stage)
{
    /* Acquire: the readers' last look at the data comes before what is written to it next. */
    return atomic_load_explicit(&stage->head->pending, memory_order_acquire) == 0;
}

/* ---- free and sent -------------------------------------------------------------------------- */

static void push_free(stage_class_t *class, ls_stage_t *stage)
{
    stage->next_free = class->free;
    class->free      = stage;
}

static ls_stage_t **sent_at(stage_class_t *class, size_t index)
{
    return &class->sent[(class->sent_first + index) & (class->sent_room - 1)];
}

/* The one sent longest ago goes to the free ones if it is back. */
static void take_back_oldest(stage_class_t *class)
{
    if (class->num_sent > 0 && is_back(*sent_at(class, 0))) {
        push_free(class, *sent_at(class, 0));
        class->sent_first = (class->sent_first + 1) & (class->sent_room - 1);
        class->num_sent--;
    }
}

static void look_through(stage_class_t *class)
{
    size_t kept = 0;

    for (size_t i = 0; i < class->num_sent; i++) {
        ls_stage_t *stage = *sent_at(class, i);

        if (is_back(stage)) {
            push_free(class, stage);
        } else {
            *sent_at(class, kept++) = stage;
        }
    }
    class->num_sent = kept;
}

static bool fits(const ls_stage_t *stage, size_t bytes)
{
    return stage->room >= bytes && stage->room / 2 <= bytes;
}

static bool is_back_warm(const ls_stage_t *stage)
{
    return stage->head->is_warm && is_back(stage);
}

/* The one sent last or the one sent longest ago, if it came back as an answer. */
static ls_stage_t *pop_warm(stage_class_t *class, bool is_large, size_t bytes)
{
    ls_stage_t *newest, *oldest;

    if (class->num_sent == 0) {
        return NULL;
    }
    oldest = *sent_at(class, 0);
    if (!class->is_answered && !is_back_warm(oldest)) {
        return NULL; /* without a look at the newest, whose head its readers are using */
    }
    class->is_answered = true;
    newest             = *sent_at(class, class->num_sent - 1);
    if (is_back_warm(newest) && (!is_large || fits(newest, bytes))) {
        class->num_sent--;
        return newest;
    }
    if (is_back_warm(oldest) && (!is_large || fits(oldest, bytes))) {
        class->sent_first = (class->sent_first + 1) & (class->sent_room - 1);
        class->num_sent--;
        return oldest;
    }
    return NULL;
}

static ls_stage_t *pop_free(stage_class_t *class)
{
    ls_stage_t *stage = class->free;

    if (stage != NULL) {
        class->free = stage->next_free;
    }
    return stage;
}

/* The first that is large enough and not more than twice as large. */
static ls_stage_t *pop_free_large(stage_class_t *class, size_t bytes)
{
    for (ls_stage_t **link = &class->free; *link != NULL; link = &(*link)->next_free) {
        ls_stage_t *stage = *link;

        if (fits(stage, bytes)) {
            *link = stage->next_free;
            return stage;
        }
    }
    return NULL;
}

static ls_stage_t *pop_any(stage_class_t *class, bool is_large, size_t bytes)
{
    return is_large ? pop_free_large(class, bytes) : pop_free(class);
}

static ls_stage_t *find_back(stage_class_t *class, bool is_large, size_t bytes)
{
    ls_stage_t *stage;

    take_back_oldest(class);
    stage = pop_any(class, is_large, bytes);
    if (stage == NULL && class->num_sent > 0) {
        look_through(class);
        stage = pop_any(class, is_large, bytes);
    }
    return stage;
}

/* ---- making new ones ------------------------------------------------------------------------ */

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static ls_status_t add_region(ls_stage_pool_h pool, const stage_region_t *region)
{
    if (pool->num_regions == pool->regions_room) {
        const size_t      old_size = pool->regions_room * sizeof(*region);
        const size_t      room     = 2 * pool->regions_room + 4;
        void             *mem      = pool->regions;
        const ls_status_t status   = ls_mem_resize(&mem, old_size, room * sizeof(*region), "stage regions");

        if (status != LS_OK) {
            return status;
        }
        pool->regions      = mem;
        pool->regions_room = room;
    }
    pool->regions[pool->num_regions++] = *region;
    pool->bytes += region->left;
    return LS_OK;
}

/* By a quarter at least, so that the number of segments stays small. */
static ls_status_t grow(ls_stage_pool_h pool, size_t need)
{
    const size_t   bytes  = max_size(need, max_size(GROW_BYTES, pool->bytes / 4));
    stage_region_t region = {.left = bytes};
    ls_status_t    status;
    void          *address;

    if (pool->mailbox != NULL) {
        status = ls_mailbox_grow(pool->mailbox, bytes, &region.segment, &address);
    } else {
        status      = ls_mem_alloc(bytes, "stages", &address);
        region.heap = address;
    }
    if (status != LS_OK) {
        return status;
    }
    region.at = address;
    status    = add_region(pool, &region);
    if (status != LS_OK && pool->mailbox == NULL) {
        ls_mem_free(address);
    }
    return status;
}

static stage_region_t *find_region(ls_stage_pool_h pool, size_t need)
{
    for (size_t i = pool->num_regions; i > 0; i--) {
        if (pool->regions[i - 1].left >= need) {
            return &pool->regions[i - 1];
        }
    }
    return NULL;
}

static ls_status_t reserve_sent(stage_class_t *class)
{
    const size_t room = (class->sent_room == 0) ? 8 : 2 * class->sent_room;
    ls_status_t  status;
    void        *larger;

    if (class->num_stages < class->sent_room) {
        return LS_OK;
    }
    status = ls_mem_alloc(room * sizeof(*class->sent), "stages sent", &larger);
    if (status != LS_OK) {
        return status;
    }
    for (size_t i = 0; i < class->num_sent; i++) {
        ((ls_stage_t **)larger)[i] = *sent_at(class, i);
    }
    ls_mem_free(class->sent);
    class->sent       = larger;
    class->sent_room  = room;
    class->sent_first = 0;
    return LS_OK;
}

static size_t circle_bytes(void)
{
    const long   cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    const size_t bytes = CIRCLE_CACHES * (cache > 0 ? (size_t)cache : CACHE_IF_UNKNOWN);

    return bytes < CIRCLE_LEAST ? CIRCLE_LEAST : bytes > CIRCLE_MOST ? CIRCLE_MOST : bytes;
}

/* Room that one stage of this size takes. */
static size_t stage_need(size_t room)
{
    return LS_STAGE_HEAD_BYTES + ((room + LS_STAGE_TRAILER + LS_CACHE_LINE - 1) & ~((size_t)LS_CACHE_LINE - 1));
}

static ls_status_t make_stage(ls_stage_pool_h pool, stage_class_t *class, size_t room,
                              ls_stage_t **stage_p)
{
    const size_t    need = stage_need(room);
    stage_region_t *region;
    stage_owned_t  *owned;
    ls_status_t     status;
    void           *mem;

    status = reserve_sent(class);
    if (status == LS_OK && find_region(pool, need) == NULL) {
        status = grow(pool, need);
    }
    if (status == LS_OK) {
        status = ls_mem_alloc(sizeof(*owned), "stage", &mem);
    }
    if (status != LS_OK) {
        return status;
    }
    region = find_region(pool, need);
    owned  = mem;

    owned->stage.data    = region->at + LS_STAGE_HEAD_BYTES;
    owned->stage.room    = room;
    owned->stage.head    = ls_stage_head_of(owned->stage.data);
    owned->stage.segment = region->segment;
    owned->stage.offset  = region->offset + LS_STAGE_HEAD_BYTES;
    owned->next          = pool->all;
    pool->all            = owned;
    atomic_init(&owned->stage.head->pending, 0);
    region->at += need;
    region->offset += need;
    region->left -= need;
    class->num_stages++;
    class->bytes += need;
    *stage_p = &owned->stage;
    return LS_OK;
}

/* ---- the pool ------------------------------------------------------------------------------- */

ls_status_t ls_stage_pool_create(ls_mailbox_h mailbox, ls_stage_pool_h *pool_p)
{
    stage_region_t  first = {0};
    ls_stage_pool_h pool;
    ls_status_t     status;
    void           *mem, *address;

    status = ls_mem_alloc(sizeof(*pool), "stage pool", &mem);
    if (status != LS_OK) {
        return status;
    }
    pool               = mem;
    pool->mailbox      = mailbox;
    pool->circle_bytes = circle_bytes();
    if (mailbox != NULL) {
        ls_mailbox_first_stages(mailbox, &first.segment, &first.offset, &address, &first.left);
        first.at = address;
        status   = add_region(pool, &first);
    }
    if (status != LS_OK) {
        ls_mem_free(pool);
        return status;
    }
    *pool_p = pool;
    return LS_OK;
}

void ls_stage_pool_destroy(ls_stage_pool_h pool)
{
    if (pool == NULL) {
        return;
    }
    while (pool->all != NULL) {
        stage_owned_t *owned = pool->all;

        pool->all = owned->next;
        ls_mem_free(owned);
    }
    for (unsigned i = 0; i < NUM_CLASSES; i++) {
        ls_mem_free(pool->classes[i].sent);
    }
    for (size_t i = 0; i < pool->num_regions; i++) {
        ls_mem_free(pool->regions[i].heap);
    }
    ls_mem_free(pool->regions);
    ls_mem_free(pool);
}

/* Make a new stage rather than use an old one again?  Not if the memory would have to grow for it. */
static bool may_lengthen(ls_stage_pool_h pool, const stage_class_t *class, size_t room)
{
    return class->bytes < pool->circle_bytes && find_region(pool, stage_need(room)) != NULL;
}

ls_status_t ls_stage_get(ls_stage_pool_h pool, size_t bytes, ls_stage_t **stage_p)
{
    const unsigned index    = class_of(bytes);
    const bool     is_large = (index == CLASS_LARGE);
    const size_t   room     = is_large ? (bytes + LS_MIB - 1) & ~(LS_MIB - 1) : class_room[index];
    stage_class_t *class    = &pool->classes[index];
    ls_stage_t    *stage;

    if (bytes > MAX_BYTES) {
        return ls_error_set(LS_ERR_NO_MEMORY, "no stage of %zu bytes", bytes);
    }
    stage = pop_warm(class, is_large, bytes);
    if (stage == NULL) {
        stage = may_lengthen(pool, class, room) ? pop_any(class, is_large, bytes) : find_back(class, is_large, bytes);
    }
    if (stage == NULL) {
        return make_stage(pool, class, room, stage_p);
    }
    *stage_p = stage;
    return LS_OK;
}

void ls_stage_put(ls_stage_pool_h pool, ls_stage_t *stage)
{
    push_free(&pool->classes[class_of(stage->room)], stage);
}

void ls_stage_sent(ls_stage_pool_h pool, ls_stage_t *stage)
{
    stage_class_t *class = &pool->classes[class_of(stage->room)];

    stage->head->is_warm             = false;
    *sent_at(class, class->num_sent) = stage;
    class->num_sent++;
}

size_t ls_stage_bytes_out(ls_stage_pool_h pool)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < NUM_CLASSES; i++) {
        for (size_t j = 0; j < pool->classes[i].num_sent; j++) {
            const ls_stage_t *stage = *sent_at(&pool->classes[i], j);

            bytes += is_back(stage) ? 0 : stage->room;
        }
    }
    return bytes;
}

void ls_stage_pool_size(ls_stage_pool_h pool, size_t *bytes_p, size_t *num_stages_p)
{
    *bytes_p      = pool->bytes;
    *num_stages_p = 0;
    for (unsigned i = 0; i < NUM_CLASSES; i++) {
        *num_stages_p += pool->classes[i].num_stages;
    }
}
