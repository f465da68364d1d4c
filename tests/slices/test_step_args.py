# SPDX-License-Identifier: Apache-2.0
"""Which calls of a step with arrays are cut, seen from the rows that its traces get.  That the numbers stay those of one process is
tests/scripts/loops/arrays.py's and returned.py's."""
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

one = made("one_row_first", lambda loss, errors: loss[None])
call(one, np.ones((1, 4)), np.ones((1, 1)), times=1)
assert call(one, np.ones((2, 4)), np.ones((2, 1))).shape == (1,)
half = made("half_first", lambda loss, errors: (loss, errors))
call(half, np.ones((4, 4)), np.ones((4, 1)), times=1)
assert call(half)[1].shape == (7, 1)

class Table:
    def __array__(self, dtype=None, copy=None):
        return np.ones((7, 1))

call(made("written_size", lambda loss, errors: tf.reduce_mean(errors + tf.zeros((7, 1), tf.float64))))
call(made("reshaped", lambda loss, errors: tf.reshape(errors, [7, -1])))
call(made("branch", lambda loss, errors: loss if errors.shape[0] == 7 else loss * 2))
seen = []
call(made("state", lambda loss, errors: seen.append(loss) or (loss if len(seen) < 2 else tf.exp(loss))))
flagged = made("flagged", lambda loss, errors: None)
for flag in (True, False) * 3:
    flagged(np.ones((7, 4)), np.ones((7, 1)), more=flag)
flipped = []
def flipping(loss, errors):
    return tf.reduce_max(errors) if flipped else loss
step = made("another_flag", flipping)
call(step, more=1.0)
flipped.append(1)
call(step, more=2.0)

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

CUT = ("plain", "nothing", "also_rows", "variable", "fixed_size", "loop", "keras_variable", "sparse", "partial", "half_first")
WHOLE = ("counts", "other_rows", "signature", "predict", "ragged", "table")


def run_script(tmp_path, script, **env):
    if not Mpi("openmpi").folder.is_dir():
        pytest.skip("the library is not built with openmpi")
    (tmp_path / "train.py").write_text(script)
    env = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'site'}", "TF_CPP_MIN_LOG_LEVEL": "3",
           "LOCKSTEP_LIB": Mpi("openmpi").folder / "lib", **env}
    return run_ranks(Mpi("openmpi"), 2, ROOT / ".venv" / "bin" / "python", ["train.py"], env=env, cwd=tmp_path, timeout=180)


def rows_seen(tmp_path, **env):
    """Rows of the batches of 7 that rank 0's traces got, by function; it has 4 of them where a call is cut."""
    job = run_script(tmp_path, SCRIPT, **env)
    assert job.code == 0, str(job)
    return json.loads(job.stdout.split("rows ", 1)[1]), job


def test_arrays_are_cut_where_they_can_be_put_together(tmp_path):
    rows, job = rows_seen(tmp_path, LOCKSTEP_STEP_ARGS="cut")
    assert {name: rows[name] for name in CUT} == dict.fromkeys(CUT, [4, 7]) | {"half_first": [2, 4, 7]}, str(job)
    assert {name: rows[name] for name in WHOLE} == dict.fromkeys(WHOLE, [7]), str(job)
    assert "counts() returns what cannot be put together" in job.stderr, str(job)


def test_arrays_are_cut_where_all_that_a_step_gives_is_known(tmp_path):
    rows, job = rows_seen(tmp_path)
    known = (*CUT, "counts", "flagged", "half_first", "another_flag", "other_rows")
    assert {name: rows[name] for name in known} == dict.fromkeys(known, [4, 7]) | {"half_first": [2, 4]}, str(job)
    unknown = ("signature", "predict", "ragged", "table")
    assert {name: rows[name] for name in unknown} == dict.fromkeys(unknown, [7]), str(job)
    assert "a number that is returned is not known to be a mean" in job.stderr, str(job)


def test_arrays_stay_whole_where_a_function_shows_something_else_for_slices(tmp_path):
    _, job = rows_seen(tmp_path)
    for said in ("written_size() cannot be traced for a part of the rows (ValueError: Dimensions must be equal",
                 "reshaped() cannot be traced for a part of the rows (ValueError: Dimension size must be evenly divisible",
                 "branch() does something else for a part of the rows",
                 "a number that is returned is neither a mean nor a sum over the rows of the batch (Exp)",
                 "a number that is returned is neither a mean nor a sum over the rows of the batch (Max)"):
        assert said in job.stderr, str(job)
    assert "not the numbers of one process" not in job.stderr, str(job)


def test_arrays_stay_whole_where_told_to(tmp_path):
    rows, job = rows_seen(tmp_path, LOCKSTEP_STEP_ARGS="whole")
    assert {name for name, seen in rows.items() if seen != [7]} == {"loop", "one_row_first", "half_first"}, str(job)


FAILING = """
import sys
import numpy as np
import tensorflow as tf

weights, left_out = tf.Variable(np.ones((4, 3))), 0

@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, x @ weights))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss

x, y = np.ones((24, 4)), np.arange(24) % 3
y[15] = 7  # of the second rank's rows of its batch, of 12 to 17
for batch in tf.data.Dataset.from_tensor_slices((x, y)).batch(6) if HOW == "data" else [(x[i:i + 6], y[i:i + 6]) for i in range(0, 24, 6)]:
    try:
        step(*batch)
    except tf.errors.InvalidArgumentError:
        left_out += 1
print("left out", left_out)
"""


@pytest.mark.parametrize("how", ["arrays", "data"])
def test_a_step_that_fails_for_the_rows_of_one_rank_ends_the_job(tmp_path, how):
    job = run_script(tmp_path, f"HOW = {how!r}" + FAILING)
    assert job.code != 0 and "left out" not in job.stdout, str(job)
    assert "step() has failed on rank 1 for its rows of the batch" in job.stderr, str(job)


def test_a_step_that_fails_on_whole_batches_is_left_out(tmp_path):
    job = run_script(tmp_path, "HOW = 'arrays'" + FAILING, LOCKSTEP_SHARD="off")
    assert job.code == 0 and "left out 1" in job.stdout, str(job)


LATE = """
import numpy as np
import tensorflow as tf

weights = tf.Variable(np.ones((4, 1)))

def made(loss_of):
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = loss_of(x)
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
        return loss
    return step

def squares(x):
    return tf.reduce_mean((x @ weights) ** 2)

def scaled(x):
    return squares(x) * (0.7 / FIGURE)

mean, late = made(squares), made(scaled)
for i, x in enumerate(tf.data.Dataset.from_tensor_slices(np.ones((24, 4))).batch(6)):
    mean(x)
    if i > 1:
        late(x)
"""


@pytest.mark.parametrize(("figure", "is_warned"), [("len(x)", True), ("6", False)])
def test_a_step_that_is_first_called_with_slices_is_warned_of_where_it_goes_by_their_number(tmp_path, figure, is_warned):
    job = run_script(tmp_path, LATE.replace("FIGURE", figure))
    assert job.code == 0 and ("not the numbers of one process" in job.stderr) == is_warned, str(job)
