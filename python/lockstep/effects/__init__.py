# SPDX-License-Identifier: Apache-2.0
"""What the script does to the world outside happens once.

  output.py        what ranks print
  v1_files.py      checkpoints, models and events of v1 scripts
  clean_graphs.py  no operator of ours in what is written"""
