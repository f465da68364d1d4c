# SPDX-License-Identifier: Apache-2.0
"""The shared-memory synchronisation in every interleaving: spin checks the models, and finds what is broken on purpose."""
import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent


def check(model, define, folder):
    """Returns how many errors spin finds, and what it printed."""
    if shutil.which("spin") is None:
        pytest.skip("spin is not installed (Debian package spin)")
    flags = [f"-D{define}"] if define else []
    for command in (["spin", "-a", *flags, str(FOLDER / model)],
                    ["cc", "-O2", "-w", "-DSAFETY", "-o", "pan", "pan.c"],
                    ["./pan", "-m1000000"]):
        result = subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=120, check=False)
        assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    errors = re.search(r"errors: (\d+)", result.stdout)
    assert errors and "max search depth too small" not in result.stdout, result.stdout
    return int(errors[1]), result.stdout


@pytest.mark.parametrize("model", ["guest.pml", "mailbox.pml", "stage.pml"])
def test_no_interleaving_breaks_it(model, tmp_path):
    errors, output = check(model, None, tmp_path)
    assert errors == 0, output
    assert set(re.findall(r"\((\d+) of \d+ states\)", output)) == {"0"}, f"parts of the model were never reached\n{output}"


@pytest.mark.parametrize("model, define", [
    ("guest.pml", "NO_LAST_LOOK"),
    ("guest.pml", "NO_LISTEN"),
    ("guest.pml", "IDLE_AT_WORK"),
    ("guest.pml", "SOFT_GIVER"),
    ("guest.pml", "NO_LOCK"),
    ("mailbox.pml", "NO_SECOND_LOOK"),
    ("mailbox.pml", "WEAK_RING"),
    ("mailbox.pml", "NO_KERNEL_CHECK"),
    ("mailbox.pml", "EARLY_SEQUENCE"),
    ("mailbox.pml", "EARLY_RELEASE"),
    ("mailbox.pml", "NO_FULL_CHECK"),
    ("stage.pml", "PLAIN_STORE"),
    ("stage.pml", "LATE_COUNT"),
    ("stage.pml", "ANSWER_AMONG_READERS"),
])
def test_what_is_broken_is_found(model, define, tmp_path):
    errors, output = check(model, define, tmp_path)
    assert errors > 0, output
