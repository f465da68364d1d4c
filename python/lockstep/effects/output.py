# SPDX-License-Identifier: Apache-2.0
"""Rank 0 prints; what the others print goes to one file each in LOCKSTEP_LOG_DIR."""
import os
import sys

from lockstep import native, world


def attach():
    folder = native.setting("LOG_DIR")
    if world.is_root() or folder == "-":
        return
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"rank-{world.rank}.log")
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o640)
    sys.stdout.flush()
    os.dup2(log, 1)
    os.close(log)
