# SPDX-License-Identifier: Apache-2.0
"""The data sets that lockstep.DataSet knows: one module each.

load(wanted, part) gives {"train": (data, labels), "validation": ..., "test": ...} of this rank's rows; what is absent is
left out.  `wanted` is the DataSet with its arguments as attributes."""
