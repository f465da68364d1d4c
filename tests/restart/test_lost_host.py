# SPDX-License-Identifier: Apache-2.0
"""A host whose cable is cut: the job is started again on the hosts that are left, and goes on."""
import json

import numpy as np
import pytest
from commands import start, wait_until
from fleet import make_hosts, remove_hosts
from jobs import job_processes, kill_job
from test_restart import SCRIPT, content, environment, is_script, run

LIMIT = 240
PLAIN = {"PLAIN": "1"}


@pytest.fixture
def hosts(request):
    made = make_hosts(request.param)
    yield made
    remove_hosts(made)


def assert_equal_to_rounding(found, expected):
    assert found.keys() == expected.keys()
    for name in expected.keys() - {"numbers"}:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-3, atol=1e-5, err_msg=name)
    histories = [json.loads(str(one["numbers"]))["history"] for one in (found, expected)]
    for mine, other in zip(*histories):
        assert mine.keys() == other.keys()
        for name in mine:
            np.testing.assert_allclose(mine[name], other[name], rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("mpi, hosts", [("openmpi", 2), pytest.param("mpich", 2, marks=pytest.mark.long),
                                        pytest.param("openmpi", 3, marks=pytest.mark.long)], indirect=True)
def test_a_lost_host_is_left_out_and_the_job_goes_on(mpi, hosts, tmp_path):
    one = tmp_path / "one"
    one.mkdir()
    expected = run(mpi, one, ranks=1, **PLAIN)
    assert expected.code == 0, str(expected)
    process, job_id = start(mpi, "run", "--agent", hosts.agent, "-H", hosts.slots(1), "--no-progress", "--restarts", 1,
                            "--state", "state", "--snapshot-every", "0.2", SCRIPT, "out.npz", env=environment(PACE_S="0.2", **PLAIN),
                            cwd=tmp_path, before=hosts.enter)
    try:
        # log.csv has a row: the second epoch has begun
        assert wait_until(lambda: (tmp_path / "log.csv").exists() and (tmp_path / "log.csv").stat().st_size > 60, LIMIT)
        assert wait_until(lambda: list((tmp_path / "state").glob("snapshot-*.manifest")))
        hosts.cut(2)
        _, err = process.communicate(timeout=LIMIT)
        assert process.returncode == 0, err
        assert f"lost host2; starting again with {'1 rank' if hosts.number == 2 else '2 ranks'} from epoch" in err, err
        assert "goes on from snapshot" in err, err
        # MPI's daemon on the lost host may stay: nobody can reach it.  No rank does.
        assert wait_until(lambda: not any(map(is_script, job_processes(job_id)))), f"ranks stayed behind\n{err}"
    finally:
        kill_job(job_id)
        process.kill()
    assert_equal_to_rounding(content(tmp_path / "out.npz"), content(one / "out.npz"))
