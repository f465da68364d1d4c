# SPDX-License-Identifier: Apache-2.0
"""A job that is started again goes on where it was: snapshots into LOCKSTEP_STATE (docs/restart.md).

  folder.py     the files, written and checked by the C library
  contents.py   what is in a snapshot: variables, random states, fields of callbacks
  writer.py     writes one in the background while training goes on
  wishes.py     when: time and signals, agreed between ranks at a step boundary
  fits.py       where: which call of fit, which epoch, which step; what to do there after a restart
  keras_fits.py the seams of Keras 3 and tf_keras

The script runs from its beginning again, with the random numbers of the first start.  A fit() that had ended is not
computed again: its data is drawn, and what it left is put in place.  The fit() that was interrupted draws the batches that
it had used, gets its variables back, and goes on with the next."""
