# SPDX-License-Identifier: Apache-2.0
"""tf.compat.v1: graphs and Sessions (TensorFlow 2.16 to 2.21).

A graph is built once and run many times, and the same tensors serve training and evaluation.  So whether a run works on
slices is decided when it is asked for:

    Session.run(fetches, feed)
      does what is fetched need a reduced gradient?   no: whole feed, whole batches: right numbers on every rank
      yes: this rank's rows of the feed, or of what the graph's iterator gives; what is fetched is made global

  taken.py      gradients are reduced where they are taken: tf.gradients, Optimizer.compute_gradients
  parts.py      how a gradient in a graph learns of the part of the batch that it was computed on
  walk.py       what a run needs and does: the walk through the graph
  plans.py      what is to be done for a set of fetches, found once
  feeds.py      cuts what is fed
  iterators.py  cuts what iterators give
  runs.py       the seam: BaseSession._do_run
  fetched.py    makes fetched numbers those of the whole batch
  weights.py    rank 0's values after an initialiser or a restore
  state.py      variables that a slice changes without a gradient: moving averages, metrics"""


def attach():
    from lockstep import world
    from lockstep.frontends.v1 import iterators, runs, taken
    taken.attach()
    if world.size > 1:
        iterators.attach()
        runs.attach()
