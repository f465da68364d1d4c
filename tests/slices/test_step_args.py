# SPDX-License-Identifier: Apache-2.0
"""LOCKSTEP_STEP_ARGS=cut: which calls of a step are cut, seen from the rows that its traces get.  That the numbers stay those of
one process is tests/scripts/loops/arrays.py's."""
import json

import pytest
from jobs import ROOT, Mpi, run_ranks

pytest.importorskip("tensorflow")

SCRIPT = """
import functools
import json
import keras
import numpy as np
import tensorflow as tf

weights = tf.Variable(np.ones((4, 1)))
rows_seen = {}

def made(name, returned, **options):
    @tf.function(**options)
    def step(x, y, more=None):
        rows_seen.setdefault(name, []).append(x.shape[0])
        with tf.GradientTape() as tape:
            errors = x @ weights - y
            loss = tf.reduce_mean(errors ** 2)
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
        return returned(loss, errors)
    step.__name__ = name
    return step

def call(step, x=np.ones((7, 4)), y=np.ones((7, 1)), times=3, **more):
    for _ in range(times):
        result = step(x, y, **more)
    return result

loss, errors = call(made("plain", lambda loss, errors: (loss, errors)))
assert errors.shape == (7, 1), errors.shape
call(made("nothing", lambda loss, errors: None))
call(made("counts", lambda loss, errors: tf.reduce_sum(tf.cast(errors > 0, tf.int32))))
call(made("other_rows", lambda loss, errors: loss), more=np.ones(3))
call(made("also_rows", lambda loss, errors: loss), more={"list": [np.ones(7)], "number": 3, "empty": None})
call(made("variable", lambda loss, errors: loss), more=tf.Variable(np.ones(3)))
fixed = call(made("fixed_size", lambda loss, errors: tf.ones(7) * tf.cast(loss, tf.float32)))
assert fixed.shape == (7,), fixed.shape
signature = [tf.TensorSpec((7, 4), tf.float64), tf.TensorSpec((7, 1), tf.float64)]
call(made("signature", lambda loss, errors: loss, input_signature=signature))

class Table:
    def __array__(self, dtype=None, copy=None):
        return np.ones((7, 1))

def ragged(loss, errors):
    return tf.RaggedTensor.from_row_lengths(errors[:, 0], tf.ones(tf.shape(errors)[0], tf.int64))

call(made("keras_variable", lambda loss, errors: loss), more=keras.Variable(np.ones(3)))
call(made("sparse", lambda loss, errors: loss), more=tf.sparse.from_dense(np.ones((7, 2))))
call(made("ragged", ragged))
call(made("table", lambda loss, errors: loss), y=Table())
partial = functools.partial(made("partial", lambda loss, errors: (loss, errors)).python_function)
call(tf.function(partial))

@tf.function
def predict(x):
    rows_seen.setdefault("predict", []).append(x.shape[0])
    return x @ weights
for _ in range(3):
    assert predict(np.ones((7, 4))).shape == (7, 1)

step = made("loop", lambda loss, errors: loss)
for x, y in tf.data.Dataset.from_tensor_slices((np.ones((21, 4)), np.ones((21, 1)))).batch(7):
    step(x, y)

print("rows", json.dumps({name: sorted(set(rows)) for name, rows in rows_seen.items()}))
"""

CUT = ("plain", "nothing", "also_rows", "variable", "fixed_size", "loop", "keras_variable", "sparse", "partial")
WHOLE = ("counts", "other_rows", "signature", "predict", "ragged", "table")


def rows_seen(tmp_path, **env):
    """Rows of the batches of 7 that rank 0's traces got, by function; it has 4 of them where a call is cut."""
    if not Mpi("openmpi").folder.is_dir():
        pytest.skip("the library is not built with openmpi")
    (tmp_path / "train.py").write_text(SCRIPT)
    env = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'site'}", "TF_CPP_MIN_LOG_LEVEL": "3",
           "LOCKSTEP_LIB": Mpi("openmpi").folder / "lib", **env}
    job = run_ranks(Mpi("openmpi"), 2, ROOT / ".venv" / "bin" / "python", ["train.py"], env=env, cwd=tmp_path, timeout=180)
    assert job.code == 0, str(job)
    return json.loads(job.stdout.split("rows ", 1)[1]), job


def test_arrays_are_cut_where_they_can_be_put_together(tmp_path):
    rows, job = rows_seen(tmp_path, LOCKSTEP_STEP_ARGS="cut")
    assert {name: rows[name] for name in CUT} == dict.fromkeys(CUT, [4, 7]), str(job)
    assert {name: rows[name] for name in WHOLE} == dict.fromkeys(WHOLE, [7]), str(job)
    assert "counts() returns what cannot be put together" in job.stderr, str(job)


def test_arrays_stay_whole_unless_asked_for(tmp_path):
    rows, job = rows_seen(tmp_path)
    assert {name for name, seen in rows.items() if seen != [7]} == {"loop"}, str(job)
    assert job.stderr.count("LOCKSTEP_STEP_ARGS=cut") == 1, str(job)
