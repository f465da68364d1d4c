# SPDX-License-Identifier: Apache-2.0
"""A rank, and the children it makes in every way."""
import multiprocessing
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import whoami  # noqa: E402


def answer(queue):
    queue.put(f"{whoami.standing()}, {'awake' if whoami.is_awake() else 'asleep'}")


def ask(method):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=answer, args=(queue,))
    child.start()
    text = queue.get(timeout=60)
    child.join(60)
    return text


if __name__ == "__main__":
    import keras  # noqa: F401  before TensorFlow, which it imports
    import tensorflow
    first = tensorflow.GradientTape.gradient
    sys.modules.pop("tensorflow")
    import tensorflow  # noqa: F811
    assert tensorflow.GradientTape.gradient is first, "attached twice"

    lines = [f"parent: {whoami.standing()}", f"os.fork: {whoami.ask_fork()}", f"fork: {ask('fork')}", f"spawn: {ask('spawn')}"]
    code = "import sys; sys.path.insert(0, sys.argv[1]); import whoami; print(whoami.is_awake())"
    said = subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent)], text=True, capture_output=True, timeout=60)
    lines.append(f"subprocess: {said.stdout.strip()}")
    total = tensorflow.Variable([float(len(lines))]) + 1  # the rank itself goes on
    lines.append(f"sum: {total.numpy()}")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
