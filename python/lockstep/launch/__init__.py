# SPDX-License-Identifier: Apache-2.0
"""Starting jobs.  A Plan says what is to run where; openmpi, mpich and slurm turn it into a command line and an
environment, and nothing more; job.py starts that and watches it."""
