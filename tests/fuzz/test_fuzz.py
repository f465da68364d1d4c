# SPDX-License-Identifier: Apache-2.0
"""libFuzzer on each parser, of files and of messages: from good and bad ones as a corpus, for seconds here and for an hour
in the long tests."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import datafiles
import numpy as np
import pytest
from badfiles import netcdf_cases
from jobs import ROOT

sys.path.insert(0, str(ROOT / "tests" / "badfiles"))

from cases import CASES  # noqa: E402

FOLDER = Path(__file__).resolve().parent
HARNESSES = sorted(path.stem for path in FOLDER.glob("fuzz_*.c"))
SHORT_SECONDS, LONG_SECONDS = 3, 3600
MOST_BYTES = 20_000

pytestmark = pytest.mark.skipif(shutil.which("clang") is None, reason="clang, which has libFuzzer, is not installed")

SMALL = np.arange(2 * 5 * 3, dtype=np.uint8).reshape(2, 5, 3)


# What the coordinator and a rank really say, so that the fuzzer need not guess the format: kind, then the fields.
MESSAGES = (("pulse", b"LSP1" + bytes([0]) + bytes(34) + b"\x01\x00w"),
            ("schedule", b"\0\x07\x0a\0" + b"\x04" + bytes(8) + b"\0"),
            ("schedule", b"\1\0\x01\0\x0c" + b"\0\x09\0\x09" + bytes(8)),
            ("schedule", b"\0\x02\x0e\0\x05" + bytes(13)))

# The beginning of a manifest, and its data: the harness puts the hashes right, and the last line behind.
SNAPSHOTS = ((b"lockstep-state 1\ndata 0\n", 0),
             (b"lockstep-state 1\ndata 0\npart 0 0 0000000000000000\n", 0),
             (b"lockstep-state 1\ndata 192\npart 0 65 0000000000000000\npart 128 12 0000000000000000\n", 192))


def seeds():
    """Small good files of each format, and good messages."""
    yield from MESSAGES
    for manifest, size in SNAPSHOTS:
        yield "state", len(manifest).to_bytes(2, "little") + manifest + bytes(size)
    pictures = np.zeros((2, 3072), np.uint8)
    text = (np.arange(3000) % 11).astype(np.uint8).reshape(30, 100)
    yield "idx", datafiles.idx(SMALL)
    yield "idx", datafiles.idx(SMALL.astype(np.float32))
    for level in (0, 1, 9):
        yield "idx", datafiles.gz(datafiles.idx(text), level)
    yield "npy", datafiles.npy(SMALL)
    yield "npy", datafiles.npy(SMALL.astype(">f8"), (2, 0))
    yield "npz", datafiles.npz(x=SMALL, y=np.arange(2))
    yield "npz", datafiles.npz(True, x=text)
    yield "tfrecord", datafiles.tfrecord([b"", b"one", b"two" * 100])
    yield "cifar", datafiles.cifar_pickle(pictures, [1, 2])
    yield "cifar", datafiles.cifar_pickle(pictures, fine=[1, 2], coarse=[3, 4], protocol=4)
    yield "cifar", datafiles.cifar_pickle(pictures, [1, 2], protocol=5)
    yield "cifar", datafiles.cifar_binary(pictures, np.array([1, 2]))
    yield "csv", b'a,b,c\r\n1,2.5,"x ""y"",\n"\r\n\r\n-3,1e-7,NA\n'
    yield "csv", b"1;2;3\n4;;6"
    yield "csv", b"\n".join(b"%d\t%.17g" % (i, i / 7) for i in range(200))
    for version in (1, 2, 5):
        yield "netcdf", netcdf_cases.good(version)
    for write, _, _ in netcdf_cases.CASES.values():
        yield "netcdf", write.content


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder for each harness; bad files go to all: a parser must bear what is not meant for it."""
    folder = tmp_path_factory.mktemp("corpus")
    for harness in HARNESSES:
        (folder / harness).mkdir()
        for number, (name, content) in enumerate(seeds()):
            if harness == f"fuzz_{name}":
                (folder / harness / f"good-{number}").write_bytes(content)
        for case in CASES:
            content = case.content() if case.content is not None else b""
            if len(content) <= MOST_BYTES:
                (folder / harness / f"bad-{case.name}").write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def built():
    result = subprocess.run([ROOT / "tools" / "build", "fuzz"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            timeout=900)
    assert result.returncode == 0, result.stdout
    return ROOT / "build" / "fuzz" / "fuzz"


def fuzz(built, corpus, harness, seconds, folder):
    found = folder / "found"
    found.mkdir()
    # By a shell of its own: a process begins with the largest size that its parent ever had, which here is that of pytest after
    # all tests before this one, and libFuzzer takes it for the harness's.
    command = ["sh", "-c", '"$0" "$@"; exit $?', built / harness, found, corpus / harness, f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=2048",
               f"-max_len={MOST_BYTES}", "-print_final_stats=1", f"-artifact_prefix={folder}/"]
    result = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            errors="replace", timeout=seconds + 120, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1"})
    assert result.returncode == 0, result.stdout[-6000:]
    assert "stat::number_of_executed_units" in result.stdout


@pytest.mark.parametrize("harness", HARNESSES)
def test_a_short_run_finds_nothing(built, corpus, harness, tmp_path):
    fuzz(built, corpus, harness, SHORT_SECONDS, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("harness", HARNESSES)
def test_an_hour_finds_nothing(built, corpus, harness, tmp_path):
    fuzz(built, corpus, harness, LONG_SECONDS // len(HARNESSES), tmp_path)
