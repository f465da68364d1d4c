# SPDX-License-Identifier: Apache-2.0
"""lockstep.host on every rank: values that each rank can compute by itself."""
import os
import sys

import lockstep
import numpy as np
from lockstep import host

rank, size = lockstep.rank(), lockstep.size()
ranks = range(size)


def same(actual, expected):
    assert actual.shape == np.shape(expected), f"shape {actual.shape} instead of {np.shape(expected)}"
    np.testing.assert_array_equal(actual, expected)


for _ in range(2):  # the second round repeats what was agreed in the first
    for dtype in ("float16", "float32", "float64", "int32", "int64"):
        array = np.arange(6, dtype=dtype).reshape(2, 3)
        same(host.allreduce(array + rank, f"sum/{dtype}", "sum"), sum(array + r for r in ranks))
    same(host.allreduce(np.float64(rank), "scalar"), np.mean(ranks))
    same(host.allreduce(np.float64([rank]), "weighted", weight=float(rank + 1)),
         [sum(r * (r + 1.0) for r in ranks) / sum(r + 1.0 for r in ranks)])
    same(host.allreduce(np.arange(10.0)[::2] * rank, "strided", "max"), np.arange(10.0)[::2] * (size - 1))
    for dtype in ("float32", "uint16", "complex64", "bool", "S5"):
        array = np.arange(6).reshape(3, 2).astype(dtype)
        same(host.broadcast(array if rank == 1 else np.zeros_like(array), f"broadcast/{dtype}", root=1), array)
    rows, counts = host.allgather(np.full((rank, 2), rank, np.int64), "rows")
    assert counts == list(ranks), counts
    same(rows, np.concatenate([np.full((r, 2), r, np.int64) for r in ranks]))
    assert host.broadcast_bytes(b"only rank 0's" if rank == 0 else b"?", "text") == b"only rank 0's"
    assert host.broadcast_bytes(b"", "empty") == b""
    assert host.allgather_bytes(b"x" * rank, "bytes") == [b"x" * r for r in ranks]
    host.barrier()

try:
    host.allreduce(np.array(["text"]), "text")
except TypeError as error:
    assert "'text'" in str(error) and "float32" in str(error), error
else:
    sys.exit("a sum of texts was not refused")

lockstep.stop()
os.write(1, f"rank {rank} of {size} is right\n".encode())
