# SPDX-License-Identifier: Apache-2.0
"""What the script does to the world outside happens once (docs/effects.md).

  once.py          rank 0 acts, the others wait for it
  saves.py         models and checkpoints: by once
  v1_files.py      checkpoints, models and events of v1 scripts
  clean_graphs.py  no operator of ours in what is written
  files.py         plain files: rank 0 writes them, the others write into a folder of their own and read it back
  tf_files.py      the same for TensorFlow's file functions;  listing.py  folders in one order
  overlay.py       those folders;  journal.py  what rank 0 changed that others have not come to yet
  records.py       files that TensorFlow writes and reads in C++
  trackers.py      runs of wandb
  output.py        what ranks print, and how they end"""
