# SPDX-License-Identifier: Apache-2.0
"""Stands in for wandb, whose runs a process of its own writes."""
import os
import subprocess
import sys

WRITE = """
import os, sys
folder, mode = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
with open(os.path.join(folder, f"run-{len(os.listdir(folder))}"), "x") as file:
    file.write(mode)
"""


def init(project, dir=".", mode="online"):
    folder = os.path.join(dir, "wandb")
    subprocess.run([sys.executable, "-S", "-c", WRITE, folder, mode], check=True)
    return folder
