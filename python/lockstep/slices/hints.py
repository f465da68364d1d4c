# SPDX-License-Identifier: Apache-2.0
"""Says what an error that ends a script may come from: a batch size that is written into a step, which gets slices."""
import re

import tensorflow as tf

from lockstep.slices import part as parts


def of_error(error):
    """A line for the user, or nothing.  The sign is that the error has both numbers, of the slice's rows and of the batch's, or
    the same multiple of both: of elements."""
    if not isinstance(error, (tf.errors.InvalidArgumentError, ValueError)):
        return ""
    numbers = set(map(int, re.findall(r"\d+", str(error))))
    for rows, total in sorted(parts.cuts):
        if any(number % rows == 0 and number // rows * total in numbers for number in numbers if number):
            return (f"lockstep: this rank computes {rows} of the {total} rows of a batch. Perhaps the script counts on {total}: "
                    "tf.shape(x)[0] would be right in both; with LOCKSTEP_SHARD=off every rank computes whole batches, which is "
                    "right too, but not faster\n")
    return ""
