# SPDX-License-Identifier: Apache-2.0
"""Batches of rows from a thread that reads ahead, and the tf.data.Dataset made of them."""
import queue
import threading

import numpy as np

from lockstep.data import mark, order

AHEAD = 4  # batches that wait to be taken
_END = object()


class Batches:
    """The batches of this rank, epoch after epoch.  `sources` have equally many rows; each gives some of the columns."""

    def __init__(self, sources, part, batch, seed, drop_remainder):
        self.sources, self.part, self.batch, self.seed = sources, part, batch, seed
        self.num_rows = sources[0].num_rows
        self.chunk_rows = max(source.chunk_rows for source in sources)
        self.drop_remainder = drop_remainder
        self._epoch = 0

    def steps(self):
        """Batches of an epoch, the same number on every rank."""
        return self.num_rows // self.batch if self.drop_remainder else -(-self.num_rows // self.batch)

    def epoch(self):
        """The arrays of each batch in turn."""
        epoch, self._epoch = self._epoch, self._epoch + 1
        if self.chunk_rows == 1:
            yield from self._by_row(epoch)
        else:
            yield from self._by_chunk(epoch)

    def next_rows(self):
        """This rank's rows of the next epoch, batch after batch; bounds() tells where each begins."""
        epoch, self._epoch = self._epoch, self._epoch + 1
        rows = order.rows(self.num_rows, self.seed, epoch)
        shares = [(done, *order.share(done, size, self.part)) for done, size in self._sizes()]
        return np.concatenate([rows[done + first:done + first + count] for done, first, count in shares])

    def bounds(self):
        return np.cumsum([0] + [order.share(done, size, self.part)[1] for done, size in self._sizes()])

    def _sizes(self):
        """(rows dealt before, rows of the batch) of each step."""
        for step in range(self.steps()):
            yield step * self.batch, min(self.batch, self.num_rows - step * self.batch)

    def _by_row(self, epoch):
        """Any row costs the same: a batch has the rows it would have in one process, each rank its slice of them."""
        rows = order.rows(self.num_rows, self.seed, epoch)
        for done, size in self._sizes():
            first, count = order.share(done, size, self.part)
            wanted = rows[done + first:done + first + count]
            yield [array for source in self.sources for array in source.read_at(wanted)]

    def _by_chunk(self, epoch):
        """Rows are cheap in runs only: each rank has chunks of its own, and mixes the rows of several."""
        first, count = self.part.block(self.num_rows)
        runs = order.chunk_runs(self.num_rows, self.chunk_rows, first, count, self.seed, epoch)
        mix = None if self.seed is None else order.generator(self.seed, (epoch << 20) + 1 + self.part.rank)
        pool = _Pool(self._windows(runs, mix))
        for done, size in self._sizes():
            yield pool.take(order.share(done, size, self.part)[1])

    def _windows(self, runs, mix):
        """Arrays of some runs; several chunks, if their rows are to be mixed."""
        runs = list(runs)
        at_once = 1 if mix is None else order.WINDOW_CHUNKS
        for begin in range(0, len(runs), at_once):
            parts = [[array for source in self.sources for array in source.read(first, count)]
                     for first, count in runs[begin:begin + at_once]]
            arrays = [np.concatenate(column) for column in zip(*parts)]
            if mix is not None:
                shuffled = mix.permutation(len(arrays[0]))
                arrays = [array[shuffled] for array in arrays]
            yield arrays


class _Pool:
    """Cuts windows of rows into batches."""

    def __init__(self, windows):
        self._windows, self._rows = windows, None

    def take(self, count):
        while self._rows is None or len(self._rows[0]) < count:
            window = next(self._windows)
            self._rows = window if self._rows is None else [np.concatenate(pair) for pair in zip(self._rows, window)]
        taken = [array[:count] for array in self._rows]
        self._rows = [array[count:] for array in self._rows]
        return taken


def read_ahead(batches):
    """The batches of one epoch, read by a thread of their own; who stops taking them stops the thread."""
    waiting, is_over = queue.Queue(AHEAD), threading.Event()

    def put(item):
        while not is_over.is_set():
            try:
                return waiting.put(item, timeout=0.1)
            except queue.Full:
                continue

    def work():
        try:
            for arrays in batches.epoch():
                put(arrays)
                if is_over.is_set():
                    return
            put(_END)
        except BaseException as error:  # noqa: BLE001  it belongs to who takes the batches
            put(error)

    thread = threading.Thread(target=work, name="ls-reader", daemon=True)
    thread.start()
    try:
        while True:
            item = waiting.get()
            if item is _END:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        is_over.set()
        thread.join()


def generated_dataset(batches, fields, structure):
    """A data set of elements that come from a Python thread."""
    import tensorflow as tf

    def spec(field):
        dtype = tf.string if field.dtype is None else tf.as_dtype(field.dtype)
        return tf.TensorSpec((None, *field.shape), dtype)

    def elements():
        for arrays in read_ahead(batches):
            yield tuple(arrays)

    dataset = tf.data.Dataset.from_generator(elements, output_signature=tuple(spec(field) for field in fields))
    return dataset.map(lambda *tensors: structure(list(tensors)))


def to_dataset(batches, fields, structure, is_batched):
    """A tf.data.Dataset of the batches, or of their rows; `structure` turns a list of tensors into an element."""
    import tensorflow as tf

    from lockstep.data import operator
    if batches.chunk_rows == 1 and operator.is_available():
        dataset = operator.read_dataset(batches, structure)
    else:
        dataset = generated_dataset(batches, fields, structure)
    if is_batched:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(batches.steps()))
    else:
        dataset = dataset.unbatch()
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(batches.part.block(batches.num_rows)[1]))
    dataset = mark.mark_dataset(dataset.prefetch(tf.data.AUTOTUNE))
    dataset._lockstep_batches = batches  # the files are open as long as the data set is there
    return dataset
