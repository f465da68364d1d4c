# SPDX-License-Identifier: Apache-2.0
"""Two networks and two optimizers in one training step, noise drawn beforehand."""
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(11)
samples = np.random.default_rng(1).normal(loc=2, size=(210, 4)).astype("float32")
noise = np.random.default_rng(2).normal(size=(210, 3)).astype("float32")


class Gan(keras.Model):
    def __init__(self):
        super().__init__()
        self.generator = keras.Sequential([keras.Input((3,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(4)])
        self.discriminator = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(1)])
        self.d_loss, self.g_loss = keras.metrics.Mean(name="d_loss"), keras.metrics.Mean(name="g_loss")

    def compile(self, d_optimizer, g_optimizer):
        super().compile()
        self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer
        self.loss_fn = keras.losses.BinaryCrossentropy(from_logits=True)

    @property
    def metrics(self):
        return [self.d_loss, self.g_loss]

    def train_step(self, data):
        real, seed = data
        with tf.GradientTape() as tape:
            fake = self.generator(seed)
            logits = self.discriminator(tf.concat([real, fake], axis=0))
            labels = tf.concat([tf.ones_like(real[:, :1]), tf.zeros_like(real[:, :1])], axis=0)
            d_loss = self.loss_fn(labels, logits)
        grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
        self.d_optimizer.apply_gradients(zip(grads, self.discriminator.trainable_weights))
        with tf.GradientTape() as tape:
            logits = self.discriminator(self.generator(seed))
            g_loss = self.loss_fn(tf.ones_like(logits), logits)
        grads = tape.gradient(g_loss, self.generator.trainable_weights)
        self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights))
        self.d_loss.update_state(d_loss)
        self.g_loss.update_state(g_loss)
        return {"d_loss": self.d_loss.result(), "g_loss": self.g_loss.result()}


gan = Gan()
gan.compile(keras.optimizers.Adam(0.01), keras.optimizers.RMSprop(0.005))
history = gan.fit(tf.data.Dataset.from_tensor_slices((samples, noise)).shuffle(210, seed=5).batch(32), epochs=3, verbose=2)
print({name: [round(float(value), 6) for value in values] for name, values in history.history.items()})
np.savez("networks.npz", *gan.generator.get_weights(), *gan.discriminator.get_weights())
