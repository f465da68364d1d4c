# SPDX-License-Identifier: Apache-2.0
"""A script that has its batch size written into the step ends with a word about slices."""
import pytest
from jobs import ROOT, Mpi, run_ranks

pytest.importorskip("tensorflow")

SCRIPT = """
import tensorflow as tf
weights = tf.Variable(tf.ones((3, 2)))
for rows in tf.data.Dataset.from_tensor_slices(tf.random.normal((48, 3))).batch(12):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            logits=rows @ weights, labels=tf.ones([12], tf.int32)))
    weights.assign_sub(tape.gradient(loss, weights))
print("done", float(tf.reduce_sum(weights)))
"""


def run(tmp_path, **env):
    if not Mpi("openmpi").folder.is_dir():
        pytest.skip("the library is not built with openmpi")
    (tmp_path / "train.py").write_text(SCRIPT)
    env = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'site'}", "TF_CPP_MIN_LOG_LEVEL": "3",
           "LOCKSTEP_LIB": Mpi("openmpi").folder / "lib", **env}
    return run_ranks(Mpi("openmpi"), 2, ROOT / ".venv" / "bin" / "python", ["train.py"], env=env, cwd=tmp_path, timeout=120)


@pytest.mark.long
def test_a_batch_size_in_the_step_is_explained(tmp_path):
    job = run(tmp_path)
    assert job.code != 0, str(job)
    assert job.stderr.count("this rank computes 6 of the 12 rows of a batch") == 1, str(job)


@pytest.mark.long
def test_whole_batches_are_the_way_out(tmp_path):
    job = run(tmp_path, LOCKSTEP_SHARD="off")
    assert job.code == 0 and "done" in job.stdout, str(job)
