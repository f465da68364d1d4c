# SPDX-License-Identifier: Apache-2.0
"""Runs of wandb: one for each that the script has."""
import os

import tensorflow as tf
import wandb

for project in ("one", "two"):
    folder = wandb.init(project)
    assert tf.io.gfile.exists(folder)
print(sorted(os.listdir("wandb")) if os.path.exists("wandb") else "in another folder")
