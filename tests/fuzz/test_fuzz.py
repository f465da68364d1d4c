# SPDX-License-Identifier: Apache-2.0
"""Malformed messages, by libFuzzer with ASan and UBSan: a few seconds each, minutes among the long tests."""
import shutil
import subprocess

import pytest
from jobs import ROOT

SOURCES = {
    "fuzz_pulse": ["src/base/siphash.c", "src/transport/pulse_message.c"],
    "fuzz_schedule": ["src/base/*.c", "src/device/dtype.c", "src/algo/*.c", "src/schedule/*.c"],
}
# What the coordinator and a rank really say, so that the fuzzer need not guess the format: kind, then the fields.
SEEDS = {
    "fuzz_pulse": [b"LSP1" + bytes([0]) + bytes(34) + b"\x01\x00w"],
    "fuzz_schedule": [b"\0\x07\x0a\0" + b"\x04" + bytes(8) + b"\0",
                      b"\1\0\x01\0\x0c" + b"\0\x09\0\x09" + bytes(8),
                      b"\0\x02\x0e\0\x05" + bytes(13)],
}


def build(name, folder):
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed")
    program = folder / name
    sources = [str(path) for pattern in SOURCES[name] for path in sorted(ROOT.glob(pattern))]
    command = ["clang", "-g", "-O1", "-std=gnu11", "-D_GNU_SOURCE", '-DLOCKSTEP_VERSION="fuzz"',
               "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=undefined", f"-I{ROOT}/src",
               f"-I{ROOT}/include", "-o", str(program), str(ROOT / "tests/fuzz" / f"{name}.c"), *sources, "-lpthread", "-lm"]
    result = subprocess.run(command, text=True, capture_output=True, timeout=120, check=False)
    if "libclang_rt.fuzzer" in result.stderr:
        pytest.skip("this clang has no libFuzzer")
    assert result.returncode == 0, result.stderr
    return program


def fuzz(name, seconds, folder):
    program = build(name, folder)
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(SEEDS[name]):
        (corpus / str(number)).write_bytes(seed)
    result = subprocess.run([str(program), f"-max_total_time={seconds}", "-max_len=2048", "-timeout=10", str(corpus)],
                            cwd=folder, text=True, capture_output=True, timeout=seconds + 60, check=False)
    assert result.returncode == 0, result.stderr[-5000:]


@pytest.mark.parametrize("name", SOURCES)
def test_malformed_messages_do_no_harm(name, tmp_path):
    fuzz(name, 5, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", SOURCES)
def test_malformed_messages_do_no_harm_for_minutes(name, tmp_path):
    fuzz(name, 240, tmp_path)
