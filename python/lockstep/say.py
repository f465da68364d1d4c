# SPDX-License-Identifier: Apache-2.0
"""What the user should know, from rank 0, once."""
import sys

from lockstep import world

_said = set()


def once(text):
    """One line on standard error, the first time it is said."""
    if world.is_root() and text not in _said:
        _said.add(text)
        print(f"lockstep: {text}", file=sys.stderr, flush=True)
