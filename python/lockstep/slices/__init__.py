# SPDX-License-Identifier: Apache-2.0
"""Each rank computes its slice of every batch.

  part.py     which rows are this rank's, and how a figure of the batch is made from the ranks' figures
  current.py  the part that the code being run, or traced, works on
  order.py    the same samples in the same order on all ranks
  batches.py  which data sets give batches
  pipeline.py pipelines whose maps run only for the rank's rows
  untuned.py  no tuning of pipelines on one core
  weak.py     whole batches on each rank: LOCKSTEP_BATCH=per-rank
  loops.py    batches of tf.data that the script iterates by itself"""
