# SPDX-License-Identifier: Apache-2.0
"""wandb, whose runs a process of its own writes and sends: the script's is rank 0's.  The others have one that is sent nowhere, in
their own folder, so that the script finds there what it would find alone (its summary, its configuration).

Seam: wandb.init."""
import os

from lockstep import hooks, world
from lockstep.effects import files, overlay


def attach():
    if world.size > 1 and not world.is_root():
        files.after_import("wandb", _hook)


def _hook(wandb):
    @hooks.wrap(wandb, "init")
    def init(original, *args, **kwargs):
        if (kwargs.get("mode") or os.environ.get("WANDB_MODE")) != "disabled":
            folder = overlay.shadow("/wandb")
            os.makedirs(folder, exist_ok=True)
            kwargs.update(mode="offline", dir=folder)
        return original(*args, **kwargs)
