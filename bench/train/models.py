# SPDX-License-Identifier: Apache-2.0
"""The networks that are timed: one that computes much per weight, one in between, one that is mostly weights."""
import keras
import numpy as np
from keras import layers


def _residual(x, filters, stride):
    shortcut = x if stride == 1 and x.shape[-1] == filters else layers.Conv2D(filters, 1, strides=stride)(x)
    for step in (stride, 1):
        x = layers.Conv2D(filters, 3, strides=step, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    return layers.Add()([x, shortcut])


def _resnet():
    """20 layers on 32 x 32 pictures, 0.27 M weights."""
    inputs = layers.Input((32, 32, 3))
    x = layers.Conv2D(16, 3, padding="same")(inputs)
    for filters, stride in ((16, 1), (16, 1), (16, 1), (32, 2), (32, 1), (32, 1), (64, 2), (64, 1), (64, 1)):
        x = _residual(x, filters, stride)
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def _mnist():
    """The convolutional network of many tutorials, 1.2 M weights."""
    return keras.Sequential([
        layers.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"), layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(), layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dense(10)])


def _alexnet():
    """Few convolutions, large dense layers: 26 M weights."""
    return keras.Sequential([
        layers.Input((64, 64, 3)), layers.Conv2D(48, 5, strides=2, activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(128, 3, activation="relu"), layers.MaxPooling2D(), layers.Conv2D(192, 3, activation="relu"),
        layers.Flatten(), layers.Dense(4096, activation="relu"), layers.Dense(2048, activation="relu"), layers.Dense(10)])


MODELS = {"resnet": _resnet, "mnist": _mnist, "alexnet": _alexnet}


def build(name, samples):
    """The model, and random samples of its shape."""
    model = MODELS[name]()
    generator = np.random.default_rng(0)
    x = generator.random((samples, *model.input_shape[1:]), dtype=np.float32)
    return model, x, generator.integers(0, 10, samples)
