# SPDX-License-Identifier: Apache-2.0
"""Replaces a function of another package by one that may call the original."""
import functools

from lockstep import world


def wrap(owner, name):
    """Decorator: `function(original, *args)` takes the place of owner.name while this process is a rank.

    Wrapping what is wrapped already by the same function does nothing, so attaching twice is harmless."""
    def decorate(function):
        original = getattr(owner, name)
        if getattr(original, "_lockstep", None) == function.__qualname__:
            return function

        @functools.wraps(original)
        def hooked(*args, **kwargs):
            if not world.on():
                return original(*args, **kwargs)
            return function(original, *args, **kwargs)

        hooked._lockstep = function.__qualname__
        setattr(owner, name, hooked)
        return function

    return decorate
