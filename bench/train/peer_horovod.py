# SPDX-License-Identifier: Apache-2.0
"""The same networks under Horovod: a hand-written loop as its documentation has it for TensorFlow 2.  Each process has its
share of the batch.  Horovod's launcher says which process this is."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# horovodrun does not bind, so that the other ways would have it easier: one core each, before any thread is made.
LOCAL_RANKS = ("HOROVOD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
local_rank = next(int(os.environ[name]) for name in LOCAL_RANKS if name in os.environ)
os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[local_rank]})

import horovod.tensorflow as hvd  # noqa: E402
import keras  # noqa: E402
import loop  # noqa: E402
import models  # noqa: E402
import tensorflow as tf  # noqa: E402

args = loop.arguments(__doc__)

hvd.init()
keras.utils.set_random_seed(7)
model, x, y = models.build(args.model, args.batch * 4)
variables = [variable.value for variable in model.trainable_variables]
own = args.batch // hvd.size()
data = tf.data.Dataset.from_tensor_slices((x, y)).shard(hvd.size(), hvd.rank()).batch(own, drop_remainder=True).repeat()
batches = iter(data)


@tf.function
def step(iterator):
    inputs, labels = next(iterator)
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(inputs, training=True))
        loss = tf.reduce_mean(losses)
    tape = hvd.DistributedGradientTape(tape)
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(0.01 * gradient)
    return loss


hvd.broadcast_variables([variable.value for variable in model.variables], root_rank=0)
loop.time_steps(lambda: step(batches), args)
