# SPDX-License-Identifier: Apache-2.0
"""The same networks under tf.distribute's MultiWorkerMirroredStrategy: a hand-written loop over gRPC, as its guide has
it, since Keras 3's fit refuses that strategy.  TF_CONFIG says which worker this is."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import loop  # noqa: E402
import models  # noqa: E402
import tensorflow as tf  # noqa: E402

args = loop.arguments(__doc__)

options = tf.distribute.experimental.CommunicationOptions(
    implementation=tf.distribute.experimental.CommunicationImplementation.RING)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
with strategy.scope():
    keras.utils.set_random_seed(7)
    model, x, y = models.build(args.model, args.batch * 4)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(args.batch, drop_remainder=True).repeat()
batches = iter(strategy.experimental_distribute_dataset(data))


def replica_step(inputs, labels):
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(inputs, training=True))
        loss = tf.nn.compute_average_loss(losses, global_batch_size=args.batch)
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    gradients = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients, options)
    for variable, gradient in zip(model.trainable_variables, gradients):
        variable.value.assign_sub(0.01 * gradient)
    return loss


@tf.function
def step(iterator):
    return strategy.run(replica_step, args=next(iterator))


loop.time_steps(lambda: step(batches), args)
