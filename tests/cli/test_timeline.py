# SPDX-License-Identifier: Apache-2.0
"""lockstep timeline: the ranks' traces in one file, and a report that a browser shows."""
import json
import shutil
import subprocess
import sys

import pytest
from commands import lockstep
from jobs import ROOT, run_ranks

sys.path.insert(0, str(ROOT / "python"))
from lockstep.trace.files import read_folder  # noqa: E402
from lockstep.trace.steps import find_steps, largest_tensors, shares_of  # noqa: E402

SCREEN = (1000, 1200)


def event(rank, row, name, begin, end, num_bytes=100):
    return {"ph": "X", "pid": rank, "tid": row, "ts": float(begin), "dur": float(end - begin), "name": name,
            "args": {"bytes": num_bytes}}


def write(folder, rank, host, events, end="\n]\n"):
    head = {"ph": "M", "pid": rank, "name": "process_name", "args": {"name": host}}
    (folder / f"rank-{rank}.json").write_text("[\n" + ",\n".join(json.dumps(each) for each in [head, *events]) + end)


def training(rank, num_steps=5, late=0.0, clock=0.0):
    """Steps of 100 us: two tensors handed in at 0 and 40 (+ late), each a bucket; all are back at 60 (+ late)."""
    events = []
    for step in range(num_steps):
        at = clock + 100 * step
        events += [event(rank, "bucket", "b", at + 10, at + 30), event(rank, "request", "b", at, at + 55),
                   event(rank, "bucket", "a", at + 45, at + 60), event(rank, "request", "a", at + 40 + late, at + 60, 900)]
    return events


def test_the_parts_of_a_step_are_told_apart(tmp_path):
    write(tmp_path, 0, "x", training(0))
    write(tmp_path, 1, "x", training(1, late=10.0))
    steps = find_steps(read_folder(tmp_path))
    assert len(steps) == 4  # the last has no end
    first, second = steps[0].ranks[0], steps[0].ranks[1]
    assert (first.length, first.exposed, first.hidden, first.compute) == (100, 20, 20, 80)
    assert (first.late, first.transfer) == (10, 10)
    assert (second.exposed, second.late, second.transfer) == (10, 0, 10)
    assert steps[0].slowest == 1


def test_clocks_of_other_hosts_are_brought_together(tmp_path):
    write(tmp_path, 0, "x", training(0))
    write(tmp_path, 1, "y", training(1, clock=1e6))
    traces = read_folder(tmp_path)
    assert [trace.spans[0].begin for trace in traces] == [0, 0]


def test_tensors_given_one_at_a_time_are_all_exposed(tmp_path):
    events = [each for step in range(4) for each in (
        event(0, "request", "a", 100 * step, 100 * step + 20), event(0, "request", "b", 100 * step + 30, 100 * step + 45))]
    write(tmp_path, 0, "x", events)
    step = find_steps(read_folder(tmp_path))[0].ranks[0]
    assert (step.exposed, step.hidden) == (35, 0)


def test_what_comes_once_is_no_step_and_a_pause_is_left_out_of_the_shares(tmp_path):
    events = [event(0, "request", "weights", -50, -10, 10**6), *training(0, 10)]
    for each in events:
        if each["ts"] >= 500:
            each["ts"] += 5000
    write(tmp_path, 0, "x", events)
    traces = read_folder(tmp_path)
    steps = find_steps(traces)
    assert len(steps) == 9 and steps[4].ranks[0].length == 5100
    assert shares_of(steps)["exposed"] == pytest.approx(20)
    assert largest_tensors(traces)[0].name == "weights"


def test_a_trace_that_is_cut_short_is_read_as_far_as_it_goes(tmp_path, mpi):
    write(tmp_path, 0, "x", training(0), end=',\n{"ph":"X","pid":0,"ti')
    result = lockstep(mpi, "timeline", tmp_path)
    assert result.code == 0, str(result)
    assert "rank 0's trace is cut short" in result.out


@pytest.mark.parametrize("files, complaint", [
    (None, "there is no folder"), ({}, "holds no traces"), ({"rank-0.json": "[\n]\n"}, "are empty"),
    ({"rank-0.json": "[\nnonsense\n{}\n]\n"}, "rank-0.json:2 is no event"),
    ({"rank-0.json": '[\n{"ph":"X","tid":"request"}\n]\n'}, "has an event without 'name'"),
])
def test_bad_input_is_one_sentence(mpi, tmp_path, files, complaint):
    folder = tmp_path / "trace"
    if files is not None:
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
    result = lockstep(mpi, "timeline", folder)
    assert result.code == 2, str(result)
    assert complaint in result.err and "Traceback" not in result.err


@pytest.fixture
def traced(mpi, tmp_path):
    """Traces of a real job: 5 steps of 6 tensors on 2 ranks."""
    folder = tmp_path / "trace"
    job = run_ranks(mpi, 2, "examples/step", env={"LOCKSTEP_TRACE": folder})
    assert job.code == 0, str(job)
    return folder


def test_traces_of_a_job_become_one_file_and_a_report(mpi, traced, tmp_path):
    result = lockstep(mpi, "timeline", traced, "-o", tmp_path / "out", "--title", "a <job>")
    assert result.code == 0, str(result)
    assert "4 steps of" in result.out
    events = json.loads((tmp_path / "out" / "timeline.json").read_text())["traceEvents"]
    assert {each["pid"] for each in events} == {0, 1}
    assert all(isinstance(each.get("tid", 0), int) for each in events)
    begun = [each["id"] for each in events if each["ph"] == "b"]
    assert sorted(begun) == sorted(each["id"] for each in events if each["ph"] == "e")
    assert len(begun) == 2 * 5 * 6
    report = (tmp_path / "out" / "report.html").read_text()
    assert "a &lt;job&gt;" in report and "layer 5" in report
    assert "http" not in report, "the report must need nothing else"


def test_a_browser_shows_the_report(mpi, traced, tmp_path):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs a browser (Debian: chromium)")
    image = pytest.importorskip("PIL.Image", reason="needs Pillow")
    assert lockstep(mpi, "timeline", traced).code == 0
    shot = tmp_path / "shot.png"
    subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile",
                    f"--window-size={SCREEN[0]},{SCREEN[1]}", f"--screenshot={shot}", f"file://{traced}/report.html"],
                   check=True, timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pixels = image.open(shot).convert("RGB")
    colours = {colour for _, colour in pixels.getcolors(1 << 24)}
    from lockstep.trace.report import COLOURS
    for name in ("compute", "transfer", "hidden"):
        wanted = tuple(int(COLOURS[name][at:at + 2], 16) for at in (1, 3, 5))
        assert wanted in colours, f"nothing is drawn in the colour of {name}"
