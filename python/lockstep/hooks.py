# SPDX-License-Identifier: Apache-2.0
"""Replaces a function of another package by one that may call the original."""
import functools
import sys
import types

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


def hand_on(owners):
    """Modules that took a function of these by name before it was wrapped (`from os import mkdir`) get the one in its place."""
    new = {}
    for function in [value for owner in owners for value in vars(owner).values() if hasattr(value, "_lockstep")]:
        original = function
        while hasattr(original, "_lockstep"):
            original = original.__wrapped__
            new[id(original)] = function
    for table in _tables_of_names():
        for name, value in list(table.items()):
            if id(value) in new:
                table[name] = new[id(value)]


def _tables_of_names():
    """Not those of posix and _io, where Python itself looks (tempfile: its files are each rank's own), nor Lockstep's own, which
    keeps originals to use them; not those of modules that load on first use: they have taken nothing yet."""
    tables = [vars(module) for name, module in list(sys.modules.items())
              if type(module) is types.ModuleType and name.partition(".")[0] not in ("posix", "_io", "lockstep")]
    numpy_openers = getattr(sys.modules.get("numpy.lib._datasource"), "_file_openers", None)  # of savetxt, by ending
    return [*tables, getattr(numpy_openers, "_file_openers", {})]


def ours(function):
    """Autograph, which rewrites what a tf.function calls, leaves our functions alone: attach() has told it.  One that took
    another's name has to say whose it is."""
    function.__module__ = __name__
    return function


def converted(function):
    """A function of the script that a function of ours calls in its place, as autograph would have called it."""
    from tensorflow.python.autograph.core import ag_ctx
    from tensorflow.python.autograph.impl import api
    return api.tf_convert(function, ag_ctx.control_status_ctx())


def attach():
    from tensorflow.python.autograph.core import config, config_lib
    config.CONVERSION_RULES = (config_lib.DoNotConvert("lockstep"), *config.CONVERSION_RULES)
