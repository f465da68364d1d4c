# SPDX-License-Identifier: Apache-2.0
"""lockstep bench: the program of bench/ from the command, its numbers as JSON and as a picture."""
import importlib.util
import json
import sys

import pytest
from commands import lockstep
from jobs import ROOT


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
    (["nothing"], 2, "invalid choice: 'nothing'"), (["train", "--ways", "one,walk"], 1, "there is no way walk"),
    (["train", "--case", "mnist"], 1, "'mnist' is no case: write MODEL:BATCH"), (["--from", "x", "-n", "1"], 2, "x"),
    (["--plot", "/no/folder/times.png", "-n", "1", "--to", "64", "--iterations", "5"], 2, "cannot be written"),
])
def test_bad_input_is_said(mpi, words, code, complaint):
    result = lockstep(mpi, "bench", *words)
    assert result.code == code, str(result)
    assert complaint in result.err and "Traceback" not in result.err


TABLE = [{"model": "mnist", "batch": 128, "ms": {"one": 50.0, "copies": 52.0, "ranks": 55.0, "peer": 70.0, "alone": 50.5,
                                                 "whole": 110.0, "cores": 60.0}}]


@pytest.fixture
def train_run():
    """bench/train/run.py as a module."""
    spec = importlib.util.spec_from_file_location("train_run", ROOT / "bench" / "train" / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_speed_ups_are_those_at_the_same_global_batch(train_run, capsys):
    train_run.print_same_batch(TABLE)
    *_, head, row = capsys.readouterr().out.splitlines()
    assert head.split("  ")[-1].strip() == "tf.distribute" and "Horovod" not in head
    assert row.split() == ["mnist", "256", "110.00", "1.00", "x", "60.00", "1.83", "x", "55.00", "2.00", "x", "70.00", "1.57", "x"]


def test_a_peer_that_is_not_installed_is_said_and_left_out(train_run, monkeypatch, capsys):
    monkeypatch.setattr(train_run.importlib.util, "find_spec", lambda name: None)
    assert train_run.chosen_ways("ranks,horovod") == ["ranks"]
    assert capsys.readouterr().out == "horovod: not installed\n"


@pytest.mark.parametrize("ways, panels", [(("one", "ranks"), 1), (("whole", "ranks", "peer"), 2), (("one",), 1)])
def test_training_is_drawn_with_the_ways_there_are(tmp_path, ways, panels):
    pytest.importorskip("matplotlib")
    sys.path.insert(0, str(ROOT / "python"))
    from lockstep.cli import plot
    table = [{**row, "ms": {way: row["ms"][way] for way in ways}} for row in TABLE]
    plot.draw_training(table, tmp_path / "steps.svg")
    assert (tmp_path / "steps.svg").read_text().count('id="axes_') == panels


@pytest.mark.long
def test_training_is_measured_each_way_and_drawn(mpi, tmp_path):
    import promise
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("needs TensorFlow")
    if mpi.name != "openmpi":
        pytest.skip("once is enough: the ways are the same")
    result = lockstep(mpi, "bench", "train", "--case", "mnist:32", "--ways", "one,ranks,whole", "--rounds", 1, "--steps", 20,
                      "--json", tmp_path / "steps.json", "--plot", tmp_path / "steps.svg", env=promise.SETTINGS, timeout=240)
    assert result.code == 0, str(result)
    (row,) = json.loads((tmp_path / "steps.json").read_text())
    assert row["model"] == "mnist" and set(row["ms"]) == {"one", "ranks", "whole"} and all(ms > 0 for ms in row["ms"].values())
    assert b"<svg" in (tmp_path / "steps.svg").read_bytes()
