/* SPDX-License-Identifier: Apache-2.0 */
/* Control messages with ranks as threads. */
#include "net_ranks.h"

/* ---- control -------------------------------------------------------------------------------- */

static void body_control(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    static const size_t sizes[] = {0, 5, 1048577, 262128, 262129, 1, 0};
    const size_t        num     = sizeof(sizes) / sizeof(sizes[0]);
    uint32_t            got[MAX_RANKS] = {0};
    char               *data           = malloc(2 * LS_MIB);

    for (size_t i = 0; i < num; i++) {
        for (uint32_t peer = 0; peer < num_ranks; peer++) {
            memset(data, (int)(rank * 16 + i), sizes[i]);
            CHECK_EQ_INT(ls_net_send_control(net, peer, data, sizes[i]), LS_OK);
        }
    }
    CHECK(ls_net_needs_polling(net)); /* the one to itself */
    for (size_t n = 0; n < num * num_ranks; n++) {
        ls_message_t         message = wait_control(net);
        const unsigned char *bytes   = message.data;
        const uint32_t       index   = got[message.from]++;

        CHECK(index < num);
        CHECK_EQ_INT(message.bytes, sizes[index]);
        if (message.bytes > 0) {
            CHECK_EQ_INT(bytes[0], message.from * 16 + index);
            CHECK(memcmp(bytes, bytes + 1, message.bytes - 1) == 0);
        }
        ls_net_release(net, &message);
    }
    free(data);
}

static void test_control_messages_of_any_size_come_in_order(void)
{
    run_ranks(1, body_control);
    run_ranks(2, body_control);
    run_ranks(4, body_control);
}

/* A part that does not follow what came before is an error of progress(), not a crash. */
static void body_bad_control(ls_net_h net, unsigned rank, unsigned num_ranks)
{
    const uint64_t words[2] = {100, 7};
    const uint32_t to = 1, zero = 0;
    ls_message_t   message;
    ls_status_t    status = LS_OK;
    bool           moved;

    (void)num_ranks;
    if (rank == 0) {
        ls_stage_t *stage;

        CHECK_EQ_INT(ls_net_stage(net, sizeof(words), &stage), LS_OK);
        memcpy(stage->data, words, sizeof(words));
        ls_net_post(net, &(ls_send_t){.stage = stage, .bytes = sizeof(words), .is_control = true}, &to, &zero, 1);
        return;
    }
    while (status == LS_OK) {
        CHECK(!ls_net_poll_control(net, &message));
        status = ls_net_progress(net, &moved);
    }
    CHECK_EQ_INT(status, LS_ERR_INTERNAL);
    CHECK_STR(ls_last_error(), "control message from rank 0 is malformed");
    net->control_status = LS_OK; /* for the barrier */
}

static void test_malformed_control_part_is_an_error(void)
{
    run_ranks(2, body_bad_control);
}

int main(void)
{
    RUN(test_control_messages_of_any_size_come_in_order);
    RUN(test_malformed_control_part_is_an_error);
    return check_report();
}
