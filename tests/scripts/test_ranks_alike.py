# SPDX-License-Identifier: Apache-2.0
"""What the ranks of one job do: the same numbers where they must agree, others where they must differ, one traceback."""
import os
import stat
import textwrap

import pytest
from jobs import ROOT, Mpi, run_ranks

PYTHON = ROOT / ".venv" / "bin" / "python"
TIME_LIMIT = 180

AGREE = """
    import os, random
    import numpy as np
    import keras
    import tensorflow as tf
    print(random.random(), np.random.rand(), np.random.default_rng().random(), np.random.RandomState().rand())
    print(np.random.SeedSequence().entropy, hash("a word"), list({"one", "two", "three", "four"}))
    random.seed(), np.random.seed()
    print(random.random(), np.random.rand(3), np.random.permutation(10))
    print(tf.random.normal([3]).numpy(), tf.random.uniform([]).numpy(), tf.random.shuffle(tf.range(8)).numpy())
    data = tf.data.Dataset.range(12).shuffle(12)
    print([list(map(int, data)) for _ in range(2)])
    print(list(map(float, tf.data.Dataset.range(4).map(lambda i: tf.random.uniform([])))))
    draw = tf.function(lambda: tf.random.normal([3]))
    print(draw().numpy(), draw().numpy(), tf.random.Generator.from_non_deterministic_state().normal([2]).numpy())
    print(keras.random.normal([2]).numpy(), keras.initializers.GlorotUniform()((2, 2)).numpy().tolist())
    for name in ("c", "a", "b"):
        open(name, "w").close()
    print(os.listdir("."))
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dropout(0.5), keras.layers.Dense(2)])
    model.compile("adam", "mse")
    x = np.random.rand(40, 4)
    print(model.fit(x, x[:, :2], batch_size=8, epochs=2, verbose=0).history, model.get_weights()[0].tolist())
    model.save("model.keras")
    print(random.random(), keras.layers.Dense(1).name)
"""

MASKS = """
    import sys
    import numpy as np
    import keras
    import tensorflow as tf
    keras.utils.set_random_seed(1)
    class Show(keras.layers.Layer):
        def call(self, inputs):
            tf.numpy_function(lambda rows: print("mask", rows.tolist()), [inputs], [])  # tf.print would show all rows
            return inputs
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dropout(0.5), Show(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((16, 8)), np.ones((16, 1)), batch_size=16, verbose=0)
"""

DRAWS = """
    import sys
    import numpy as np
    import tensorflow as tf
    tf.random.set_seed(1)
    generator = tf.random.Generator.from_seed(2)
    weights = tf.Variable(tf.zeros([4]))
    data = tf.data.Dataset.from_tensor_slices(np.ones((14, 4), "float32")).batch(7)
    for epoch in range(2):  # 7 rows: 4 and 3; the first batch of all is whole
        for batch in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(batch @ weights[:, None])
            weights.assign_sub(tape.gradient(loss, weights))
            rows = len(batch)
            for name, drawn in (("categorical", tf.random.categorical(batch, 20)), ("gamma", tf.random.gamma([], batch)),
                                ("poisson", tf.random.poisson([], 9 * batch)), ("generated", generator.normal([rows, 4])),
                                ("binomial", generator.binomial([rows, 4], 50.0, 0.5)),
                                ("stateless", tf.random.stateless_categorical(batch, 20, [1, 2])),
                                ("stateless gamma", tf.random.stateless_gamma([rows, 4], [1, 2], 1.0))):
                if epoch > 0:
                    print("noise", name, drawn[0].numpy().tolist())
            generator.normal([3])  # as many as the rows of one rank
            print("agreed", generator.uniform([]).numpy(), generator.state.numpy().tolist())
"""

LATE_FOLDER = """
    import os, time
    import tensorflow as tf
    import lockstep
    time.sleep(1 if lockstep.is_root() else 0)
    os.mkdir("new")
    os.chdir("new")
    print(os.path.basename(os.getcwd()))
"""

SEEDS = """
    import os, random
    import numpy as np
    import keras
    import tensorflow as tf
    seed = os.getpid() if os.environ["SEED_FROM"] == "process" else 5
    random.seed(5)
    np.random.seed(seed)
    tf.random.set_seed(7)
    x = np.random.default_rng(seed).normal(size=(40, 4))
    np.random.default_rng([1, [2, 3]]), random.seed(10**5000)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, x[:, :1], batch_size=10, verbose=0)
"""


@pytest.fixture
def job(tmp_path):
    """Runs a script with 2 ranks; returns the job, and what each rank printed."""
    if not Mpi("openmpi").folder.is_dir():
        pytest.skip("the library is not built with openmpi")

    def run(script, n=2, **env):
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(script))
        env = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'site'}", "TF_CPP_MIN_LOG_LEVEL": "3",
               "LOCKSTEP_LIB": ROOT / "build" / "openmpi" / "lib", "LOCKSTEP_STALL_ABORT_S": "60",
               "LOCKSTEP_LOG_DIR": "rank-logs", "LOCKSTEP_SUMMARY": "off", **env}
        work = tmp_path / "work"
        work.mkdir()
        result = run_ranks(Mpi("openmpi"), n, PYTHON, [path], env=env, cwd=work, timeout=TIME_LIMIT)
        logs = [work / "rank-logs" / f"rank-{rank}.log" for rank in range(1, n)]
        return result, [log.read_text() if log.exists() else "" for log in logs], work / "rank-logs"

    return run


@pytest.mark.parametrize("seed_from", ["process", "script"])
def test_seeds_that_differ_are_told(job, seed_from):
    result, _, _ = job(SEEDS, n=3, SEED_FROM=seed_from)
    assert result.code == 0, str(result)
    told = [line for line in result.stderr.splitlines() if "was given other seeds on ranks 1, 2 than on rank 0" in line]
    expected = ["numpy.random.seed", "numpy.random.default_rng"] if seed_from == "process" else []
    assert [line.split()[2] for line in told] == expected, result.stderr


def test_a_folder_that_rank_0_is_about_to_make_is_waited_for(job):
    result, logs, _ = job(LATE_FOLDER)
    assert result.code == 0, str(result)
    assert result.stdout == "new\n" and "new" in logs[0], str(result)


def test_unseeded_numbers_agree(job):
    result, logs, _ = job(AGREE, n=3)
    assert result.code == 0, str(result)
    assert result.stdout.count("\n") > 10, result.stdout
    for log in logs:
        assert log == result.stdout


def test_dropout_differs_between_slices(job):
    result, logs, _ = job(MASKS)
    assert result.code == 0, str(result)
    assert "mask" in result.stdout and "mask" in logs[0]
    assert result.stdout != logs[0]


def test_every_distribution_differs_between_slices_and_generators_go_on_together(job):
    result, logs, _ = job(DRAWS)
    assert result.code == 0, str(result)
    pairs = list(zip(result.stdout.splitlines(), logs[0].splitlines()))
    assert len(pairs) == 4 + 2 * 7, str(result)
    for mine, other in pairs:
        assert (mine == other) == mine.startswith("agreed"), (mine, other)


def test_an_error_on_all_ranks_is_shown_once(job):
    result, logs, folder = job("""
        import sys
        import tensorflow as tf
        print("to be seen")
        print("on rank 0 only", file=sys.stderr)
        {}["not there"]
    """)
    assert result.code != 0
    assert result.stderr.count("Traceback") == 1 and result.stderr.count("KeyError: 'not there'") == 1, result.stderr
    assert "lockstep: rank" in result.stderr
    assert result.stdout.count("to be seen") == 1 and result.stderr.count("on rank 0 only") == 1
    assert "to be seen" in logs[0] and "on rank 0 only" in logs[0]
    for path in [folder, *folder.iterdir()]:
        assert not stat.S_IMODE(os.stat(path).st_mode) & 0o007, path


def test_an_error_of_one_rank_is_shown_with_its_number(job):
    result, logs, _ = job("""
        import os
        import tensorflow as tf
        if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
            raise ValueError("rank one has a problem")
        tf.Variable(tf.zeros(3))
    """)
    assert result.code != 0
    assert "lockstep: rank 1 on" in result.stderr
    assert result.stderr.count("ValueError: rank one has a problem") == 1, result.stderr
    assert "ValueError: rank one has a problem" in logs[0]


def test_the_folder_is_clean_after_the_job(job):
    result, _, folder = job("""
        import tensorflow as tf
        open("file", "w").write("x")
        print(open("file").read())
    """)
    assert result.code == 0, str(result)
    assert [path.name for path in folder.iterdir()] == ["rank-1.log"]
