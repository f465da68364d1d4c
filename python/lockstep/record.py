# SPDX-License-Identifier: Apache-2.0
"""What a run computed, for comparing it with another: the loss of each step, and the weights at the end.

A front end calls record_loss() after each step and record_weights() when training ends; without LOCKSTEP_RECORD=DIR
neither does anything.  Each process writes, in DIR:

  rank-N.losses   a line per step: its number, and the loss so that it reads back as the same number
  rank-N.npz      the variables v0, v1, ... and `names`, in the order in which they were given

`lockstep verify` reads both.  With LOCKSTEP_RECORD_NUDGE=on a front end puts its weights through nudged() after each
step: that run shows how far rounding alone takes the script."""
import os
from pathlib import Path

from lockstep import world
from lockstep.launch.rank import RANK_VARIABLES, number_of

_folder = os.environ.get("LOCKSTEP_RECORD", "")
_num_steps = int(os.environ.get("LOCKSTEP_RECORD_STEPS") or 0)
_is_nudged = os.environ.get("LOCKSTEP_RECORD_NUDGE", "off").lower() in ("1", "on", "yes", "true")
_generator = None
_losses = None


def is_on():
    """Does this run record?"""
    return bool(_folder)


def _path(ending):
    folder = Path(_folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"rank-{number_of(RANK_VARIABLES)}{ending}"


def record_loss(step, value):
    """Keeps the loss of a step, counted from 0.  True when enough steps are recorded (LOCKSTEP_RECORD_STEPS): the front
    end then records the weights and ends the run."""
    global _losses
    if not _folder:
        return False
    if _losses is None:
        with world.alone():  # no file of the script, which only rank 0 would write
            _losses = open(_path(".losses"), "w", buffering=1)
    _losses.write(f"{int(step)} {float(value)!r}\n")
    return 0 < _num_steps <= int(step) + 1


def is_nudged():
    """Does this run change its weights in their last bit after each step?"""
    return bool(_folder) and _is_nudged


def nudged(values):
    """An array of floating point numbers, each one step of its type further up or down: what rounding does, and no more."""
    import numpy
    global _generator
    if _generator is None:
        _generator = numpy.random.Generator(numpy.random.PCG64(1))  # its own: the script's random numbers stay
    signs = _generator.integers(0, 2, values.shape, dtype=numpy.int8) * 2 - 1
    with numpy.errstate(over="ignore"):
        return numpy.asarray(values * (1 + signs * numpy.finfo(values.dtype).eps), values.dtype)


def record_weights(variables):
    """Keeps the weights: a dict of names and arrays (or what numpy makes one of).  The last call counts."""
    if not _folder:
        return
    import numpy
    arrays = {f"v{number}": numpy.asarray(value) for number, value in enumerate(variables.values())}
    with world.alone():
        path = _path(".npz")
        unfinished = path.with_suffix(".part.npz")
        numpy.savez(unfinished, names=numpy.array(list(variables), dtype=str), **arrays)
        os.replace(unfinished, path)


def read_losses(path):
    """[(step, loss)] of a rank-N.losses; a line that was cut short is left out."""
    found = []
    for line in Path(path).read_text().splitlines():
        words = line.split()
        if len(words) == 2:
            found.append((int(words[0]), float(words[1])))
    return found


def read_weights(path):
    """The dict that record_weights() was given."""
    import numpy
    with numpy.load(path, allow_pickle=False) as data:
        return {str(name): data[f"v{number}"] for number, name in enumerate(data["names"])}
