# SPDX-License-Identifier: Apache-2.0
"""Lockstep from Python: where this process stands in the job, and collectives on TensorFlow's tensors.

Importing this package starts nothing and does not import TensorFlow.  rank() and its kin start the engine, which
joins the MPI job; the collectives (lockstep.ops) import TensorFlow too."""
from lockstep.native import (include_path, is_root, lib_path, local_rank, local_size, rank, size, start,  # noqa: F401
                             stop)

_OPS = ("allreduce", "allreduce_group", "broadcast", "allgather", "reduce_scatter", "alltoall", "barrier")

__all__ = ["include_path", "is_root", "lib_path", "local_rank", "local_size", "rank", "size", "start", "stop", "data", "DataSet",
           *_OPS]


def __getattr__(name):
    if name in _OPS:
        from lockstep import ops
        return getattr(ops, name)
    if name in ("data", "DataSet"):
        import importlib
        data = importlib.import_module("lockstep.data")
        return data if name == "data" else data.DataSet
    if name == "__version__":
        from importlib.metadata import version
        return version("lockstep")
    raise AttributeError(f"module 'lockstep' has no attribute '{name}'")


def __dir__():
    return [*globals(), "data", "DataSet", *_OPS, "__version__"]
