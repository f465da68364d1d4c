# SPDX-License-Identifier: Apache-2.0
"""Losses and metrics of the script that are figures of the batch, and no mean over its rows.

anatomy.py   what a function computes from the rows: goes through its graph
states.py    kinds of tensors, and the table of operators; elementwise.py, reductions.py, places.py, products.py, counts.py and
             lists.py enter them
sizes.py     sizes of dimensions, by numbers and names
order.py     in which order operators are looked at
calls.py     functions that a graph calls, its branches and loops
figures.py   calls a function with sums and means of the batch in the place of those of the slice
look.py      proves that the target of a gradient is a mean over the rows
looks.py     has that done where the script takes gradients, and keeps batches whole where it is not proved
inputs.py    what the function that is being traced was given
replay.py    the graph of what a loop computes eagerly"""
