/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage with several readers (ls_mailbox_release() in src/transport/mailbox_ring.c), for the model checker spin.
 *
 * The owner writes, counts the readers in `pending`, publishes to all, and writes again when the count is 0.  A reader that
 * finds 1 is the last one and stores 0 without a locked instruction; else it subtracts.  To show: no reader ever
 * sees bytes of another round, and the owner never waits for ever.
 *
 * In each round one of the readers may, when it finds itself alone, write over the bytes and give them back (ls_mailbox_answer());
 * the owner then is the last to release.  To show besides: nobody else looks at the bytes meanwhile.
 *
 *   -DPLAIN_STORE   every reader loads and stores: a release gets lost, and spin must find out
 *   -DANSWER_AMONG_READERS   a reader answers without looking whether it is alone: the same
 *   -DLATE_COUNT    the count is set after the first reader can see the message: the same
 */
#define READERS 3
#define ROUNDS  2
#define OVER    100 /* what a reader writes over a round's bytes: more than any round */

byte pending;
byte bytes;
byte published[READERS];
byte answered; /* round whose bytes are given back */

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
        if
        :: pending == 0 /* looks for a stage that is free */
        :: answered == round ->
            assert(bytes == round + OVER);
            assert(pending == 1);
            pending = 0
        fi;
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
#ifdef ANSWER_AMONG_READERS
        if
        :: answered < round -> bytes = round + OVER; answered = round; goto next
        :: true
        fi;
#else
        if
        :: pending == 1 -> bytes = round + OVER; answered = round; goto next
        :: true
        fi;
#endif
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
next:
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
