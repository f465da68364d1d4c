/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's turn and its guests (src/engine/guest.c, waiting.c, src/base/bell.c), for the model checker spin.
 *
 * An engine that sleeps on its bell, givers that hand in buckets and take the engine's turn where they find it free, and a
 * peer whose message each bucket needs, and who rings softly.  Every interleaving of their single steps is tried.  To show: one at a time has the turn, each bucket is done once, and nobody sleeps for ever.  The sleep has no
 * limit here, and the guest's patience any.
 *
 * Each of these breaks it, and the test wants spin to find out:
 *   -DNO_LAST_LOOK    the guest does not look again after it has listened in the engine's place, nor rings
 *   -DNO_LISTEN       the guest does not put back what it hushed
 *   -DIDLE_AT_WORK    the engine sleeps as if idle, though a bucket is begun
 *   -DSOFT_GIVER      a giver who finds the turn taken rings softly
 *   -DNO_LOCK         the guest does not look whether the turn is free
 */
#define GIVERS  2
#define EACH    1 /* bucket of a giver */
#define BUCKETS (GIVERS * EACH)

mtype = { AWAKE, IDLE, WAITING };

byte inbox;    /* handed in, not taken */
byte begun;    /* taken; lock: turn */
byte finished; /* lock: turn */
byte sent;     /* the peer's messages */
bit  turn;     /* the lock */
byte inside;   /* how many have it */
bit  stop;

byte  rings;
mtype state = AWAKE;
bit   in_futex;

#define is_active (begun > finished)

inline wake()
{
    in_futex = 0
}

inline ring()
{
    rings++;
    if
    :: state != AWAKE -> wake()
    :: else
    fi
}

inline ring_softly()
{
    rings++;
    if
    :: state == WAITING -> wake()
    :: else
    fi
}

/* Take what was handed in, then finish what has its message. */
inline look()
{
    moved = 0;
    if
    :: inbox > 0 -> atomic { begun = begun + inbox; inbox = 0 }; moved = 1
    :: else
    fi;
    if
    :: is_active && sent > finished -> finished++; moved = 1
    :: else
    fi
}

inline listen()
{
    if
#ifndef IDLE_AT_WORK
    :: is_active -> state = WAITING
    :: else -> state = IDLE
#else
    :: state = IDLE
#endif
    fi
}

proctype engine()
{
    byte key;
    bit  moved;

    atomic { turn == 0 -> turn = 1; inside++ };
    do
    :: stop && finished == BUCKETS -> break
    :: else ->
        assert(inside == 1);
        look();
        if
        :: moved
        :: else ->
            listen();
            key = rings;
            look();
            if
            :: moved || stop -> state = AWAKE
            :: else ->
                atomic { turn = 0; inside-- };
                atomic {
                    if
                    :: rings == key -> in_futex = 1
                    :: else
                    fi
                };
                in_futex == 0;
                state = AWAKE;
                atomic { turn == 0 -> turn = 1; inside++ };
                state = AWAKE /* a guest may have listened meanwhile */
            fi
        fi
    od;
    atomic { turn = 0; inside-- }
}

/* guest.c: visit() */
inline visit()
{
    was_idle = !is_active;
    look_begun = begun;
    atomic { begun = begun + inbox; inbox = 0 };
    if
    :: was_idle && is_active ->
        before = state;
        state = AWAKE; /* ls_bell_hush() */
        do
        :: is_active -> look()
        :: break
        od;
        if
        :: before != AWAKE ->
#ifndef NO_LISTEN
            listen();
#endif
#ifndef NO_LAST_LOOK
            look()
#endif
        :: else
        fi
    :: else
    fi;
    assert(inside == 1);
    needs_engine = (is_active && begun != look_begun) || stop /* which the last look has found */
#ifdef NO_LAST_LOOK
    ; needs_engine = 0
#endif
}

proctype giver()
{
    byte  number = 0, look_begun;
    bit   moved, was_idle, has_turn, needs_engine;
    mtype before;

    do
    :: number == EACH -> break
    :: else ->
        inbox++;
        has_turn = 0;
#ifdef NO_LOCK
        atomic { turn = 1; inside++; has_turn = 1 };
#else
        atomic {
            if
            :: turn == 0 -> turn = 1; inside++; has_turn = 1
            :: else
            fi
        };
#endif
        needs_engine = 1;
        if
        :: has_turn -> visit(); atomic { turn = 0; inside-- }
        :: else
        fi;
        if
#ifdef SOFT_GIVER
        :: needs_engine -> ring_softly()
#else
        :: needs_engine -> ring()
#endif
        :: else
        fi;
        number++
    od
}

proctype stopper()
{
    finished == BUCKETS;
    stop = 1;
    ring()
}

proctype peer()
{
    do
    :: sent == BUCKETS -> break
    :: else -> sent++; ring_softly()
    od
}

init
{
    atomic { run engine(); run giver(); run giver(); run peer(); run stopper() }
}
