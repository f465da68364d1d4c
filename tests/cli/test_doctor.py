# SPDX-License-Identifier: Apache-2.0
"""lockstep doctor: it sees what is wrong, and says what to do."""
import copy
import json
import sys

import pytest
from commands import lockstep
from jobs import ROOT

sys.path.insert(0, str(ROOT / "python"))
from lockstep.cli.findings import findings_of  # noqa: E402

MIB = 1 << 20


def rank(number, host, **changes):
    return {"rank": number, "host": host, "local_rank": 0, "num_nodes": 2, "lockstep": "0.1", "python": "3.11",
            "mpi": "MPICH 5", "tensorflow": "2.21", "cpus": [number], "cores": 1, "memory": 8192 * MIB,
            "memory_free": 8192 * MIB, "shm": 1024 * MIB, "shm_free": 1024 * MIB, "open_files": 4096,
            "forbidden_amx": False, "clock": 100.0, **changes}


GOOD = {"ranks": [rank(0, "a"), rank(1, "b"), rank(2, "b")], "loads": [{"seconds": 1.0}, {"seconds": 1.0}, {}],
        "job": {"ranks": 3, "small_s": 1e-5, "large_s": 1e-2, "large_bytes": 8 * MIB},
        "pairs": [{"from": 0, "to": 1, "small_s": 1e-5, "large_s": 1e-2, "large_bytes": 8 * MIB}]}


def changed(rank_changes=None, **changes):
    report = {**copy.deepcopy(GOOD), **changes}
    report["ranks"][2].update(rank_changes or {})
    return report


def test_a_good_job_has_only_good_findings():
    assert {finding.level for finding in findings_of(GOOD, 2)} == {"ok"}


SLOW = [{"from": 0, "to": 1, "small_s": 1e-3, "large_s": 1.0, "large_bytes": 8 * MIB}]
CASES = [
    (changed({"lockstep": "0.2"}), "FAIL", "Lockstep differs: 0.1 on a, b; 0.2 on b"),
    (changed({"tensorflow": "2.20"}), "FAIL", "TensorFlow differs"),
    (changed({"python": "3.12"}), "warn", "Python differs"),
    (changed({"shm_free": 8 * MIB}), "FAIL", "b: /dev/shm has 8 MiB free, 2 ranks need 32"),
    (changed({"cpus": [1]}), "warn", "b: 2 ranks share 1 processors"),
    (changed({"memory_free": 100 * MIB}), "warn", "b: 50 MiB of memory are free per rank"),
    (changed({"clock": 103.5}), "warn", "clocks of the hosts differ by 3.5 s (ahead: b)"),
    (changed(pairs=SLOW), "warn", "a to b: 1000 us, 0.01 GB/s: slower than 1 Gbit/s"),
    (changed(loads=[{"error": "no such file"}, {}, {}]), "FAIL", "operators does not load: no such file"),
]


@pytest.mark.parametrize("report, level, text", CASES, ids=[text for _, _, text in CASES])
def test_what_is_wrong_is_found_and_has_something_to_do(report, level, text):
    bad = [finding for finding in findings_of(report, 2) if finding.level != "ok"]
    assert len(bad) == 1, "\n".join(map(str, bad))
    assert bad[0].level == level and text in bad[0].text
    assert bad[0].todo


@pytest.mark.parametrize("needs, level", [(True, "FAIL"), (False, "warn")])
def test_a_missing_tensorflow_is_a_failure_only_where_it_is_wanted(needs, level):
    report = changed(loads=[{}, {}, {}])
    for each in report["ranks"]:
        each["tensorflow"] = None
    assert [finding.level for finding in findings_of(report, 2, needs) if "not installed" in finding.text] == [level]


def test_hosts_that_look_like_one_are_found():
    report = changed()
    for each in report["ranks"]:
        each["num_nodes"] = 1
    assert any(finding.level == "FAIL" and "1 nodes are seen where 2" in finding.text for finding in findings_of(report, 2))


def test_a_real_job_is_examined(mpi, tmp_path):
    result = lockstep(mpi, "doctor", "-n", 2, "--oversubscribe", "--no-tensorflow", "--json", tmp_path / "report.json")
    assert result.code == 0, str(result)
    assert "2 ranks on 1 node" in result.out and "all-reduce over 2 ranks" in result.out
    report = json.loads((tmp_path / "report.json").read_text())
    assert [each["rank"] for each in report["ranks"]] == [0, 1]
    assert [(pair["from"], pair["to"]) for pair in report["pairs"]] == [(0, 1)]


def test_a_job_that_does_not_run_is_a_finding_with_its_last_lines(mpi):
    result = lockstep(mpi, "doctor", "-n", 2, "--oversubscribe", "--no-tensorflow", env={"LOCKSTEP_TOPOLOGY": "3x3"})
    assert result.code == 1, str(result)
    assert "did not run" in result.out and "LOCKSTEP_TOPOLOGY=3x3" in result.out


def test_an_unreachable_host_is_a_finding(mpi):
    result = lockstep(mpi, "doctor", "-H", "no-such-host.invalid:2", timeout=60)
    assert result.code == 1
    assert "FAIL  host no-such-host.invalid" in result.out
