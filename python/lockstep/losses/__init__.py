# SPDX-License-Identifier: Apache-2.0
"""Losses and metrics of the script that are figures of the batch, and no mean over its rows.

anatomy.py   what a function computes from the rows: which of its sums and means go over all of them
figures.py   calls the function with those of the batch in their place
looks.py     keeps batches whole where a loss that the script differentiates by itself is no mean over the rows
calls.py     functions that a graph calls, its branches and loops
replay.py    the graph of what a loop computes eagerly"""
