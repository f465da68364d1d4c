/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mailbox and bell (src/transport/mailbox_ring.c, stage.h, src/base/bell.c), for the model checker spin.
 *
 * Some senders, each with its own ring in the memory of one receiver, which sleeps on its bell when there is nothing
 * to do.  Every interleaving of their single steps is tried.  To show: each message arrives once, in order and with
 * the bytes that were written; a stage is not written again before it was read; nobody sleeps for ever.  The sleep has
 * no limit here, while the engine's has one: the bell must not need it.  Soft rings are in guest.pml.
 *
 * One line of Promela is one access to shared memory.  Steps happen in one order for all (sequential consistency): what
 * the code asks of the memory is in its release/acquire pairs and, for the bell, sequentially consistent operations.
 *
 * Each of these breaks it, and the test wants spin to find out:
 *   -DNO_SECOND_LOOK   the receiver does not look for work between listen and sleep
 *   -DWEAK_RING        the ringer looks at the bell's state before the others see the message (as without sequential consistency)
 *   -DNO_KERNEL_CHECK  the futex does not compare the word again
 *   -DEARLY_SEQUENCE   the sequence number is stored before the descriptor
 *   -DEARLY_RELEASE    the stage is released before it was read
 *   -DNO_FULL_CHECK    the sender does not see that the ring is full
 */
#define SENDERS  2
#define MESSAGES 4 /* so that stages and entries come round */
#define RING     2 /* entries; 256 in the code */
#define STAGES   3 /* of each sender: more than the ring holds */

byte sequence[SENDERS * RING];
byte descriptor[SENDERS * RING]; /* which stage */
byte consumed[SENDERS];
byte pending[SENDERS * STAGES];
byte bytes[SENDERS * STAGES]; /* the message's number stands for its bytes */

byte rings;
bit  sleeping;
bit  in_futex; /* the kernel has put the receiver to sleep */

/* ls_bell_ring() */
inline ring_bell()
{
    rings++;
#ifndef WEAK_RING
    saw_sleeping = sleeping;
#endif
    if
    :: saw_sleeping -> in_futex = 0 /* FUTEX_WAKE */
    :: else
    fi
}

proctype sender(byte me)
{
    byte number = 1, sent = 0, known_consumed = 0, stage, slot;
    bit  saw_sleeping;

    do
    :: number > MESSAGES -> break
    :: else ->
        stage = me * STAGES + number % STAGES;
        pending[stage] == 0; /* a stage that all have released */
        bytes[stage] = number;
        pending[stage] = 1;
        /* ring_put(); a full ring is tried again, without a bell */
#ifndef NO_FULL_CHECK
        do
        :: sent - known_consumed < RING -> break
        :: else -> known_consumed = consumed[me]
        od;
#endif
        slot = me * RING + sent % RING;
        sent++;
#ifdef WEAK_RING
        saw_sleeping = sleeping;
#endif
#ifdef EARLY_SEQUENCE
        sequence[slot] = sent;
        descriptor[slot] = stage;
#else
        descriptor[slot] = stage;
        sequence[slot] = sent;
#endif
        ring_bell();
        number++
    od
}

/* A turn of the engine: take in what each sender has sent, use it, release it. */
inline turn()
{
    moved = 0;
    from = 0;
    do
    :: from == SENDERS -> break
    :: else ->
        do
        :: sequence[from * RING + received[from] % RING] == received[from] + 1 ->
            stage = descriptor[from * RING + received[from] % RING];
            received[from]++;
            consumed[from] = received[from];
            assert(stage / STAGES == from);
#ifdef EARLY_RELEASE
            pending[stage] = 0;
            assert(bytes[stage] == received[from]);
#else
            assert(bytes[stage] == received[from]);
            assert(pending[stage] == 1);
            pending[stage] = 0;
#endif
            num_received++;
            moved = 1
        :: else -> break
        od;
        from++
    od
}

proctype receiver()
{
    byte received[SENDERS];
    byte num_received = 0, from, stage, key;
    bit  moved;

    do
    :: num_received == SENDERS * MESSAGES -> break
    :: else ->
        turn();
        if
        :: moved || num_received == SENDERS * MESSAGES
        :: else ->
            sleeping = 1; /* ls_bell_listen() */
            key = rings;
#ifndef NO_SECOND_LOOK
            turn();
#endif
            if
            :: moved
            :: else -> /* ls_bell_sleep() */
                if
                :: rings == key ->
#ifdef NO_KERNEL_CHECK
                    in_futex = 1;
#else
                    atomic {
                        if
                        :: rings == key -> in_futex = 1
                        :: else
                        fi
                    };
#endif
                    in_futex == 0
                :: else
                fi
            fi;
            sleeping = 0
        fi
    od
}

init
{
    byte i = 0;

    atomic {
        run receiver();
        do
        :: i == SENDERS -> break
        :: else -> run sender(i); i++
        od
    }
}
