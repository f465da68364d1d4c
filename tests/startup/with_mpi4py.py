# SPDX-License-Identifier: Apache-2.0
"""A script that talks to the other ranks by itself, and trains."""
import sys

if sys.argv[1] == "first":
    from mpi4py import MPI
    import tensorflow as tf
else:
    import tensorflow as tf
    from mpi4py import MPI

comm = MPI.COMM_WORLD
weight = tf.Variable([1.0])
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(weight * (comm.rank + 1.0))
gradient = tape.gradient(loss, weight)
total = comm.allreduce(comm.rank + 1)
sys.stdout.write(f"mpi4py {comm.rank} of {comm.size}, sum {total}, gradient {gradient.numpy()[0]}\n")
