# SPDX-License-Identifier: Apache-2.0
"""lockstep verify: it agrees where runs agree, and names step and variable where they do not."""
import importlib.util
import sys

import pytest
from commands import lockstep
from jobs import ROOT

sys.path.insert(0, str(ROOT / "python"))
from lockstep import progress, record  # noqa: E402
from lockstep.cli.compare import Comparison, Yardstick, compare_losses, compare_weights, relative  # noqa: E402

numpy = pytest.importorskip("numpy")

# Least squares by gradient descent, each rank on its rows; the records are made as a front end makes them.
SCRIPT = """
import ctypes, os, sys
import numpy
from lockstep import record
mode = sys.argv[1] if len(sys.argv) > 1 else "same"
rows, targets = numpy.random.default_rng(1).normal(size=(8, 3)), numpy.arange(8.0)
size, rank, engine = 1, 0, None
if os.environ.get("OMPI_COMM_WORLD_SIZE") or os.environ.get("PMI_SIZE"):
    from lockstep.cli.engine import Engine
    engine = Engine()
    size, rank = engine.size, engine.rank
def total(values, name):
    buffer = (ctypes.c_float * len(values))(*values)
    if engine is not None:
        engine.allreduce(name, buffer, len(values))
    return numpy.array(buffer[:])
weights, bias = numpy.zeros(3), 0.5
for step in range(20):
    own = slice(rank * 8 // size, (rank + 1) * 8 // size)
    if mode == "wrong" and step >= 5 and size > 1:
        own = slice(0, 8 // size)
    error = rows[own] @ weights + bias - targets[own]
    gradient = total([*(rows[own].T @ error / 8), (error ** 2).sum() / 8], "gradient")
    if record.record_loss(step, gradient[3]):
        break
    weights = weights - 0.1 * gradient[:3]
    if record.is_nudged():
        weights = record.nudged(weights)
if mode == "drift" and rank == 1:
    bias += 1e-6
record.record_weights({"dense/kernel": weights, "dense/bias": numpy.float32(bias)})
if engine is not None:
    engine.stop()
if mode == "fail" and size > 1:
    sys.exit("this run fails")
"""

# Rounding grows: after 30 steps a last bit has become percents.  From step 10 on, "wrong" adds what is much too large for it.
CHAOS = """
import os, sys
import numpy
from lockstep import record
is_rank = bool(os.environ.get("OMPI_COMM_WORLD_SIZE") or os.environ.get("PMI_SIZE"))
value = numpy.array([0.3], numpy.float32)
for step in range(30):
    if record.record_loss(step, value[0]):
        break
    value = (numpy.float32(3.9) * value * (1 - value)).astype(numpy.float32)
    if is_rank and step == 0:
        value = numpy.nextafter(value, numpy.float32(1))
    if is_rank and step == 9 and sys.argv[1] == "wrong":
        value *= numpy.float32(1.01)
    if record.is_nudged():
        value = record.nudged(value)
record.record_weights({"dense/kernel": value})
"""

# An ordinary script with a mistake: from step 8 on its data depend on which process it is.
KERAS = """
import os
import keras
import numpy as np
keras.utils.set_random_seed(3)
rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK") or "0")
x = np.random.default_rng(0).normal(size=(64, 8)).astype("float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
model.fit(x, x.sum(axis=1), batch_size=16, epochs=2, verbose=0)
model.fit(x + rank, x.sum(axis=1), batch_size=16, epochs=1, verbose=0)
"""

# Losses that the front ends see: of a train_step with a name of its own, and of loops; 5 steps of 5, 5, 5, 5, 1 rows.
TRAINING = """
import sys
import keras
import tensorflow as tf
keras.utils.set_random_seed(1)
class Model(keras.Model):
    def train_step(self, data):
        return {"total_loss": train(self, *data)}
def train(model, x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    model.optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss
inputs = keras.Input((3,))
model = Model(inputs, keras.layers.Dense(1)(inputs))
model.compile("sgd")
x = tf.random.normal((21, 3))
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(5)
if sys.argv[1] == "fit":
    model.fit(data, verbose=0)
else:
    step = tf.function(train) if sys.argv[1] == "function" else train
    for x, y in data:
        step(model, x, y)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def verify(mpi, script, *words):
    return lockstep(mpi, "verify", "-n", 2, "--oversubscribe", *words[:-1], script, words[-1])


def test_rounding_that_grows_is_told_from_a_mistake(mpi, tmp_path):
    (tmp_path / "chaos.py").write_text(CHAOS)
    good, bad = verify(mpi, tmp_path / "chaos.py", "good"), verify(mpi, tmp_path / "chaos.py", "wrong")
    assert good.code == 0 and "agree within rounding" in good.out, str(good)
    assert "rounding  changes the losses of this script by up to" in good.out
    assert bad.code == 1 and "the losses part at step 10" in bad.out, str(bad)


def settings_for_tensorflow(mpi):
    import promise
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("needs TensorFlow")
    if mpi.name != "openmpi":
        pytest.skip("once is enough: nothing of it knows MPI")
    return promise.SETTINGS


def test_data_that_depend_on_the_rank_are_caught_with_step_and_variable(mpi, tmp_path):
    settings = {**settings_for_tensorflow(mpi), "LOCKSTEP_STATUS_DIR": tmp_path / "status"}
    (tmp_path / "train.py").write_text(KERAS)
    (tmp_path / "status").mkdir()
    result = lockstep(mpi, "verify", "-n", 2, "--oversubscribe", "--keep", tmp_path / "kept", tmp_path / "train.py",
                      env=settings, cwd=tmp_path, timeout=240)
    assert result.code == 1 and "12 steps compared" in result.out, str(result)
    assert "DIFFERS   the losses part at step 8:" in result.out, "eight steps agree, the ninth does not\n" + str(result)
    assert "differ between one process and the ranks; most of all '" in result.out
    assert (tmp_path / "kept" / "many" / "rank-1.npz").exists(), "the ranks were not compared with each other"
    # On the way: Keras's fit tells those who watch how many steps there are.
    seen = progress.read_all(tmp_path / "status")
    assert [(status.rank, status.step, status.num_steps) for status in seen] == [(0, 12, 12), (1, 12, 12)]


@pytest.mark.long
@pytest.mark.parametrize("number", [2, 4])
def test_the_script_of_the_demo_agrees_although_its_rounding_grows(mpi, tmp_path, number):
    result = lockstep(mpi, "verify", "-n", number, "--oversubscribe", "--plot", tmp_path / "losses.svg",
                      ROOT / "examples" / "digits.py", env=settings_for_tensorflow(mpi), cwd=tmp_path, timeout=600)
    assert result.code == 0 and "agree within rounding" in result.out, str(result)
    assert b"<svg" in (tmp_path / "losses.svg").read_bytes()


def test_runs_that_agree_are_said_to(mpi, script):
    result = verify(mpi, script, "same")
    assert result.code == 0, str(result)
    assert "losses    20 steps compared" in result.out and "weights   2 variables compared" in result.out
    assert "1 process and 2 ranks agree" in result.out


def test_a_run_that_differs_is_caught_with_step_and_variable(mpi, script):
    result = verify(mpi, script, "wrong")
    assert result.code == 1, str(result)
    assert "the losses part at step 5" in result.out
    assert "most of all 'dense/kernel'" in result.out and "do NOT agree" in result.out


def test_ranks_whose_weights_differ_are_caught(mpi, script):
    result = verify(mpi, script, "drift")
    assert result.code == 1, str(result)
    assert "differ between rank 0 and rank 1; most of all 'dense/bias'" in result.out


def test_both_runs_end_after_the_steps_asked_for(mpi, script):
    result = verify(mpi, script, "--steps", 7, "same")
    assert result.code == 0, str(result)
    assert "losses    7 steps compared" in result.out


def test_both_curves_are_drawn(mpi, script, tmp_path):
    pytest.importorskip("matplotlib")
    result = verify(mpi, script, "--plot", tmp_path / "losses.png", "same")
    assert result.code == 0, str(result)
    assert (tmp_path / "losses.png").read_bytes().startswith(b"\x89PNG")


def test_records_can_be_kept(mpi, script, tmp_path):
    assert verify(mpi, script, "--keep", tmp_path / "kept", "same").code == 0
    assert sorted(path.name for path in (tmp_path / "kept" / "many").iterdir()) == [
        "rank-0.losses", "rank-0.npz", "rank-1.losses", "rank-1.npz"]


@pytest.mark.parametrize("text, complaint", [
    ("print('nothing')", "the run with one process recorded no loss"),
    ("import sys; print('sad'); sys.exit(4)", "the run with one process failed with code 4"),
])
def test_a_script_that_gives_nothing_to_compare_is_one_sentence(mpi, tmp_path, text, complaint):
    (tmp_path / "empty.py").write_text(text)
    result = lockstep(mpi, "verify", "-n", 2, "--oversubscribe", tmp_path / "empty.py")
    assert result.code == 2, str(result)
    assert complaint in result.err


def test_ranks_that_fail_are_shown(mpi, script):
    result = verify(mpi, script, "fail")
    assert result.code == 2, str(result)
    assert "the run with 2 ranks failed with code 1" in result.err and "this run fails" in result.err


@pytest.mark.long
@pytest.mark.parametrize("how", ["fit", "loop", "function"])
def test_losses_of_the_batch_are_seen_in_training(mpi, tmp_path, how):
    (tmp_path / "train.py").write_text(TRAINING)
    result = lockstep(mpi, "verify", "-n", 2, "--oversubscribe", "--keep", tmp_path / "kept", tmp_path / "train.py", how,
                      timeout=200, env={"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'site'}"})
    assert result.code == 0, str(result)
    assert "losses    5 steps compared" in result.out
    assert sorted(path.name for path in (tmp_path / "kept" / "many").iterdir()) == [
        "rank-0.losses", "rank-0.npz", "rank-1.losses", "rank-1.npz"]


def test_the_first_loss_beyond_the_tolerance_is_found():
    result = Comparison()
    compare_losses([(0, 1.0), (1, 2.0), (2, 4.0)], [(0, 1.0), (1, 2.001), (2, 5.0)], 1e-4, result)
    assert (result.first_step, result.loss_step, result.num_steps) == (1, 2, 3)


def test_a_difference_is_measured_with_the_yardstick_of_its_step():
    yardstick = Yardstick(losses={0: 0.0, 1: 1e-5, 2: 1e-2}, weights={"a": 1e-3})
    good, early = Comparison(), Comparison()
    compare_losses([(0, 1.0), (1, 1.0), (2, 1.0)], [(0, 1.0), (1, 1.00005), (2, 1.05)], 1e-6, good, yardstick)
    compare_losses([(0, 1.0), (1, 1.0), (2, 1.0)], [(0, 1.0), (1, 1.05), (2, 1.05)], 1e-6, early, yardstick)
    assert good.complaints == [] and early.first_step == 1
    compare_weights({"a": numpy.array([1.0])}, {"a": numpy.array([1.005])}, 1e-6, good, yardstick=yardstick)
    assert good.complaints == []
    compare_weights({"b": numpy.array([1.0])}, {"b": numpy.array([1.005])}, 1e-6, good, yardstick=yardstick)
    assert "most of all 'b'" in good.complaints[0]


def test_the_first_loss_cannot_be_explained_by_rounding():
    result = Comparison()
    compare_losses([(0, 1.0)], [(0, 1.001)], 1e-5, result)
    assert result.complaints and not result.may_be_rounding


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_nudge_is_one_bit_or_two(dtype):
    values = numpy.linspace(-3, 3, 101, dtype=dtype)
    ratio = numpy.abs(record.nudged(values)[values != 0] / values[values != 0] - 1)
    assert record.nudged(values).dtype == values.dtype
    assert 0 < ratio.max() <= 2 * numpy.finfo(dtype).eps


@pytest.mark.parametrize("first, second, expected", [
    (float("nan"), float("nan"), 0.0), (float("inf"), float("inf"), 0.0), (float("nan"), 1.0, float("inf")),
    (0.0, 0.0, 0.0), (1.0, 1.5, 0.5)])
def test_values_that_are_no_numbers_compare(first, second, expected):
    assert relative(first, second, 1.0) == expected


@pytest.mark.parametrize("one, many, complaint", [
    ({"a": [1.0]}, {"b": [1.0]}, "do not have the same variables: a, b"),
    ({"a": [1.0, 2.0]}, {"a": [1.0]}, "'a', by inf"),
    ({"a": [1.0, float("nan")]}, {"a": [1.0, 2.0]}, "'a', by inf"),
    ({"a": [1, 2], "b": [1.0]}, {"a": [1, 3], "b": [1.0]}, "1 of 2 variables differ"),
])
def test_weights_that_differ_are_named(one, many, complaint):
    result = Comparison()
    compare_weights({name: numpy.array(value) for name, value in one.items()},
                    {name: numpy.array(value) for name, value in many.items()}, 1e-4, result)
    assert any(complaint in each for each in result.complaints), result.complaints
