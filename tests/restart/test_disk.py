# SPDX-License-Identifier: Apache-2.0
"""Full and read-only disks: what was there before stays, there is one error, all ranks go on or end alike.

The disk is a small tmpfs, which needs root."""
import multiprocessing
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from jobs import ROOT

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli"), str(ROOT / "python")]
from commands import lockstep  # noqa: E402


@pytest.fixture
def disk(tmp_path):
    """A disk of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def folder(monkeypatch, mpi):
    monkeypatch.setenv("LOCKSTEP_LIB", str(mpi.folder / "lib"))
    from lockstep.restart import folder as module
    return module


def arrays(number, size):
    text = np.frombuffer(b'{"version": 1, "fit": %d}' % number, np.uint8)
    return [text, np.full(size, number, np.uint8)]


def test_a_full_disk_leaves_the_snapshots_that_were_there(disk, folder):
    from lockstep.native import LockstepError
    folder.write(disk, "snapshot-000001", arrays(1, 100_000))
    with pytest.raises(LockstepError, match="snapshot-000002.part: byte .*No space left on device"):
        folder.write(disk, "snapshot-000002", arrays(2, 200_000))
    assert sorted(path.name for path in disk.iterdir()) == ["snapshot-000001.data", "snapshot-000001.manifest"]
    with folder.newest(disk) as found:
        assert found.meta["fit"] == 1 and found.part(1) == bytes([1]) * 100_000
    folder.write(disk, "snapshot-000002", arrays(2, 100_000))  # there is room for this one
    with folder.newest(disk) as found:
        assert found.meta["fit"] == 2


def test_a_disk_that_became_read_only_leaves_the_snapshots_that_were_there(disk, folder):
    from lockstep.native import LockstepError
    folder.write(disk, "snapshot-000001", arrays(1, 1000))
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with pytest.raises(LockstepError, match="Read-only file system"):
        folder.write(disk, "snapshot-000002", arrays(2, 1000))
    with folder.newest(disk) as found:
        assert found.meta["fit"] == 1


def test_a_damaged_snapshot_is_said_and_the_one_before_is_taken(tmp_path, folder):
    for number in (1, 2):
        folder.write(tmp_path, f"snapshot-00000{number}", arrays(number, 1000))
    path = tmp_path / "snapshot-000002.data"
    path.write_bytes(path.read_bytes()[:-64])
    said = []
    with folder.newest(tmp_path, said.append) as found:
        assert found.meta["fit"] == 1
    assert len(said) == 1 and "snapshot-000002.data" in said[0]


def test_what_is_no_snapshot_is_not_read(tmp_path, folder):
    from lockstep.native import LockstepError
    folder.write(tmp_path, "snapshot-000001", [np.frombuffer(b"[1, 2]", np.uint8)])
    folder.write(tmp_path, "snapshot-000002", [np.frombuffer(b"\x80\x04}", np.uint8)])
    for name in ("snapshot-000001", "snapshot-000002"):
        with pytest.raises(LockstepError, match="no snapshot of this version"):
            folder.Snapshot(tmp_path, name)
    assert folder.newest(tmp_path) is None


def save_for_ever(path, first):
    from lockstep.effects.whole import replaced
    for number in range(first, 1 << 30):
        with replaced(path) as unfinished, open(unfinished, "wb") as file:
            np.savez(file, number=number, weights=np.full(200_000, number))


def test_killed_while_saving_the_model_file_is_the_last_or_the_one_before(tmp_path):
    path, last, changes = tmp_path / "model.keras", 0, 0
    save = multiprocessing.get_context("fork").Process
    with path.open("wb") as file:
        np.savez(file, number=0, weights=np.zeros(200_000, int))
    for _ in range(50):
        process = save(target=save_for_ever, args=(path, last + 1))
        process.start()
        time.sleep(random.uniform(0, 0.04))
        process.kill()
        process.join()
        with np.load(path) as data:
            assert (data["weights"] == data["number"]).all() and data["number"] >= last
            changes += data["number"] > last
            last = int(data["number"])
    assert changes > 0, "nothing was saved: nothing was tested"


SAVER = """
import os, subprocess, sys
import keras, numpy as np
keras.utils.set_random_seed(1)
small = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4)])
small.compile("sgd", "mse")
small.save("disk/model.keras")
before = open("disk/model.keras", "rb").read()
large = keras.Sequential([keras.Input((300,)), keras.layers.Dense(300)])
try:
    large.save("disk/model.keras")
except Exception as error:
    print("error", type(error).__name__, flush=True)
    os.write(2, b"raised\\n")
assert open("disk/model.keras", "rb").read() == before, "the old file is damaged"
subprocess.call("head -c 300000 /dev/zero > disk/filler2", shell=True, stderr=subprocess.DEVNULL)
history = small.fit(np.ones((64, 4), "float32"), np.ones((64, 4), "float32"), batch_size=4, epochs=4, verbose=0)
print("trained", len(history.history["loss"]), "files", sorted(os.listdir("disk")), flush=True)
"""


def test_training_and_saving_on_a_full_disk(mpi, disk, tmp_path):
    """Snapshots do not fit: one error, training goes on.  A model does not fit: an error on every rank, the old one stays."""
    (tmp_path / "train.py").write_text(SAVER)
    (disk / "state").mkdir()
    filler = disk / "filler"
    filler.write_bytes(bytes(150_000))
    result = lockstep(mpi, "run", "-n", 2, "--oversubscribe", "--no-progress", "--state", "disk/state", "--snapshot-every", "0.01",
                      "--output", "all", "train.py", cwd=tmp_path, timeout=100,
                      env={"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests/site'}", "TF_CPP_MIN_LOG_LEVEL": "3",
                           "LOCKSTEP_FLIGHT_DIR": "off"})
    assert result.code == 0, str(result)
    assert result.err.count("raised") == 2 and "trained 4" in result.out, str(result)
    assert "unfinished" not in result.out, str(result)
    assert result.err.count("error: no snapshot was written") == 1 and "No space left" in result.err, str(result)
