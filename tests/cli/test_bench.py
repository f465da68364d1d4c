# SPDX-License-Identifier: Apache-2.0
"""lockstep bench: the program of bench/ from the command, its numbers as JSON and as a picture."""
import importlib.util
import json

import pytest
from commands import lockstep


@pytest.mark.parametrize("what", ["allreduce", "broadcast", "allgather"])
def test_numbers_are_printed_and_written(mpi, tmp_path, what):
    result = lockstep(mpi, "bench", what, "-n", 2, "--oversubscribe", "--from", 64, "--to", "4K", "--iterations", 5,
                      "--json", tmp_path / "numbers.json")
    assert result.code == 0, str(result)
    assert "# OK" in result.out
    report = json.loads((tmp_path / "numbers.json").read_text())
    assert report["header"]["ranks"] == "2"
    rows = report["tables"][0]["rows"]
    assert rows[-1]["size_bytes"] == 4096 and all(row["wrong"] == 0 and row["mpi_us"] > 0 for row in rows)


@pytest.mark.parametrize("ending, head", [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_picture_is_drawn(mpi, tmp_path, ending, head):
    pytest.importorskip("matplotlib")
    picture = tmp_path / f"times.{ending}"
    result = lockstep(mpi, "bench", "-n", 2, "--oversubscribe", "--from", "64", "--to", "4K", "--iterations", 5, "--plot",
                      picture)
    assert result.code == 0, str(result)
    assert picture.read_bytes().startswith(head)


@pytest.mark.parametrize("words, code, complaint", [
    (["nothing"], 2, "invalid choice: 'nothing'"), (["--from", "x", "-n", "1"], 2, "x"),
    (["--plot", "/no/folder/times.png", "-n", "1", "--to", "64", "--iterations", "5"], 2, "cannot be written"),
])
def test_bad_input_is_said(mpi, words, code, complaint):
    result = lockstep(mpi, "bench", *words)
    assert result.code == code, str(result)
    assert complaint in result.err and "Traceback" not in result.err


@pytest.mark.long
def test_training_is_measured_each_way_and_drawn(mpi, tmp_path):
    import promise
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("needs TensorFlow")
    if mpi.name != "openmpi":
        pytest.skip("once is enough: the ways are the same")
    result = lockstep(mpi, "bench", "train", "--case", "mnist:32", "--ways", "one,ranks", "--rounds", 1, "--steps", 20,
                      "--json", tmp_path / "steps.json", "--plot", tmp_path / "steps.svg", env=promise.SETTINGS, timeout=240)
    assert result.code == 0, str(result)
    (row,) = json.loads((tmp_path / "steps.json").read_text())
    assert row["model"] == "mnist" and set(row["ms"]) == {"one", "ranks"} and all(ms > 0 for ms in row["ms"].values())
    assert b"<svg" in (tmp_path / "steps.svg").read_bytes()
