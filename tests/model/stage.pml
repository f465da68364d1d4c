/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage with several readers (ls_mailbox_release() in src/transport/mailbox_ring.c), for the model checker spin.
 *
 * The owner writes, counts the readers in `pending`, publishes to all, and writes again when the count is 0.  A reader that
 * finds 1 is the last one and stores 0 without a locked instruction; else it subtracts.  To show: no reader ever
 * sees bytes of another round, and the owner never waits for ever.
 *
 *   -DPLAIN_STORE   every reader loads and stores: a release gets lost, and spin must find out
 *   -DLATE_COUNT    the count is set after the first reader can see the message: the same
 */
#define READERS 3
#define ROUNDS  2

byte pending;
byte bytes;
byte published[READERS];

proctype owner()
{
    byte round = 1, i;

    do
    :: round > ROUNDS -> break
    :: else ->
        bytes = round;
#ifndef LATE_COUNT
        pending = READERS;
#endif
        i = 0;
        do
        :: i == READERS -> break
        :: else -> published[i] = round; i++
        od;
#ifdef LATE_COUNT
        pending = READERS;
#endif
        pending == 0; /* looks for a stage that is free */
        round++
    od
}

proctype reader(byte me)
{
    byte round = 1, before;

    do
    :: round > ROUNDS -> break
    :: else ->
        published[me] == round;
        assert(bytes == round);
#ifdef PLAIN_STORE
        before = pending;
        pending = before - 1;
#else
        before = pending;
        if
        :: before == 1 -> pending = 0
        :: else -> pending--
        fi;
#endif
        round++
    od
}

init
{
    byte i = 0;

    atomic {
        run owner();
        do
        :: i == READERS -> break
        :: else -> run reader(i); i++
        od
    }
}
