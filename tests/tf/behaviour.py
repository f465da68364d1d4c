# SPDX-License-Identifier: Apache-2.0
"""Order, overlap, errors, memory: what the operators do besides computing."""
import sys
import threading
import time

import lockstep
import numpy as np
import tensorflow as tf
from harness import RANK, SIZE, equal, raises, run_checks

NUM_STEPS = 300
MAX_GROWTH_MIB = 8


def late(x, seconds):
    """x, later; in a graph."""
    def wait(value):
        time.sleep(seconds)
        return value
    return tf.ensure_shape(tf.numpy_function(wait, [x], x.dtype), x.shape)


def check_order_does_not_matter():
    """Rank r makes, and gets ready, the tensors in another order than the others."""
    order = np.roll(range(4), RANK).tolist()

    @tf.function
    def run(x):
        results = {}
        for place, i in enumerate(order):
            results[i] = lockstep.allreduce(late(x, 0.02 * place) * i, f"order/{i}", "sum")
        return [results[i] for i in range(4)]
    for _ in range(3):
        for i, result in enumerate(run(tf.constant([1.0]))):
            equal(result, [i * SIZE])


def check_order_of_threads_does_not_matter():
    results = {}

    def work(i):
        results[i] = lockstep.allreduce(tf.constant([float(i)]), f"thread/{i}", "sum")
    threads = [threading.Thread(target=work, args=(i,)) for i in np.roll(range(4), RANK).tolist()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(4):
        equal(results[i], [i * SIZE])


def check_two_are_in_flight():
    """Rank 0 is late, so the others have handed in both, if one does not wait for the other: test_tf.py looks at the
    trace.  The first runs are for TensorFlow to get ready."""
    run = tf.function(lambda x: [lockstep.allreduce(x * 2, f"overlap/{i}") for i in range(2)])
    for i in range(4):
        time.sleep(1.0 if i == 3 and RANK == 0 else 0)
        run(tf.ones([1000]))


def check_mismatch_is_an_error_that_says_what_each_had():
    if SIZE == 1:
        return
    mine = 2 if RANK == 0 else 3

    def reduce(x):
        return lockstep.allreduce(x, "mismatch")
    for run in (reduce, tf.function(reduce)):
        with raises(tf.errors.InvalidArgumentError, "lockstep:", "'mismatch'", "[2]", "[3]"):
            run(tf.zeros([mine]))
        equal(lockstep.allreduce(tf.ones([1]), "after", "sum"), [SIZE])  # the job goes on
    with raises(tf.errors.InvalidArgumentError, "'mismatch2'"):
        lockstep.allreduce_group([tf.zeros([1]), tf.zeros([mine])], ["fine", "mismatch2"])


def resident_mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2 ** 20


def check_many_steps_do_not_leak():
    x = tf.ones([64 * 1024])  # 256 KiB: one that is lost per step would be 75 MiB

    def step(x):
        a = lockstep.allreduce(x + 1.0, "leak/a")
        b, c = lockstep.allreduce_group([x * 2.0, x[:10]], ["leak/b", "leak/c"])
        d = lockstep.allgather(x[:1000], "leak/d")
        return tf.reduce_sum(a) + tf.reduce_sum(b) + tf.reduce_sum(c) + tf.reduce_sum(d)
    for run in (tf.function(step), step):
        for _ in range(NUM_STEPS // 3):
            run(x)
        before = resident_mib()
        for _ in range(NUM_STEPS):
            run(x)
        growth = resident_mib() - before
        assert growth < MAX_GROWTH_MIB, f"{growth:.1f} MiB more after {NUM_STEPS} steps"


def check_errors_do_not_leak_or_hang():
    for _ in range(50):
        with raises(tf.errors.InvalidArgumentError, "bool has no mean"):
            lockstep.allreduce(tf.constant([True]), "refused")


def check_after_stop_operators_say_so():
    function = tf.function(lambda x: lockstep.allreduce(x, "stopped"))
    function(tf.ones([1]))
    lockstep.stop()
    with raises(tf.errors.OpError, "'stopped'", "not started"):
        function(tf.ones([1]))


if len(sys.argv) > 1:  # "die": rank 1 goes away while the others wait for it
    lockstep.allreduce(tf.ones([1]), "last")
    if RANK == 1:
        raise RuntimeError("rank 1 has had enough")
    with raises(tf.errors.InternalError, "rank 1"):
        tf.function(lambda x: lockstep.allreduce(x, "alone"))(tf.ones([1]))
    print(f"rank {RANK}: saw the loss", flush=True)
else:
    run_checks(globals())
