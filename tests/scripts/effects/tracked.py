# SPDX-License-Identifier: Apache-2.0
"""Runs of wandb: one for each that the script has."""
import tensorflow as tf
import wandb

for project in ("one", "two"):
    folder = wandb.init(project)
    assert tf.io.gfile.exists(folder)
