# SPDX-License-Identifier: Apache-2.0
"""The engine's public C interface for small programs of ranks: no TensorFlow, no numpy."""
import ctypes

from lockstep import native

UINT8 = 5  # ls_dtype_t
FLOAT32 = 2

OutputFn = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint)


class Tensor(ctypes.Structure):
    """ls_tensor_t"""

    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("num_dims", ctypes.c_uint),
                ("shape", ctypes.c_void_p), ("input", ctypes.c_void_p), ("output", ctypes.c_void_p),
                ("count", ctypes.c_uint64)]


class Engine:
    """This process as a rank.  Calls block, and raise LockstepError."""

    def __init__(self):
        native.start()
        self.library = ctypes.CDLL(native.lib_path())
        self.library.ls_process_get.restype = ctypes.c_void_p
        self.library.ls_host.restype = self.library.ls_last_error.restype = ctypes.c_char_p
        self.context = ctypes.c_void_p(self.library.ls_process_get())
        self.rank, self.size = self._ask("ls_rank"), self._ask("ls_size")
        self.local_rank, self.num_nodes = self._ask("ls_local_rank"), self._ask("ls_num_nodes")
        self.host = self.library.ls_host(self.context).decode()

    def _ask(self, name):
        return getattr(self.library, name)(self.context)

    def _check(self, status):
        if status != 0:
            raise native.LockstepError(self.library.ls_last_error().decode(errors="replace"))

    def stop(self):
        self.library.ls_process_put(self.context)
        native.stop()

    def barrier(self, name):
        self._check(self.library.ls_barrier(self.context, name.encode()))

    def allreduce(self, name, buffer, count):
        """Sums float32 in place."""
        tensor = Tensor(name.encode(), FLOAT32, 0, None, ctypes.addressof(buffer), ctypes.addressof(buffer), count)
        self._check(self.library.ls_allreduce(self.context, ctypes.byref(tensor), None))

    def _receive(self, call, tensor, *args):
        """(all that came, its lengths by rank)"""
        lengths, room = [], []

        @OutputFn
        def output(_arg, counts, num_ranks):
            lengths.extend(counts[rank] for rank in range(num_ranks))
            room.append(ctypes.create_string_buffer(max(1, sum(lengths))))
            return ctypes.addressof(room[0])

        self._check(call(self.context, ctypes.byref(tensor), *args, output, None))
        return room[0], lengths

    def allgather(self, name, data):
        """The bytes of every rank, in a list."""
        tensor = Tensor(name.encode(), UINT8, 0, None, ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), None, len(data))
        received, lengths = self._receive(self.library.ls_allgather, tensor)
        parts, at = [], 0
        for length in lengths:
            parts.append(received.raw[at:at + length])
            at += length
        return parts

    def send_to(self, name, receiver, buffer, count):
        """`count` bytes to one rank; None: nothing, as a rank that only receives or looks on does."""
        counts = (ctypes.c_uint64 * self.size)()
        if receiver is not None:
            counts[receiver] = count
        tensor = Tensor(name.encode(), UINT8, 0, None, ctypes.addressof(buffer), None, sum(counts))
        self._receive(self.library.ls_alltoall, tensor, counts)
