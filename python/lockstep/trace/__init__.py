# SPDX-License-Identifier: Apache-2.0
"""What the ranks' traces (LOCKSTEP_TRACE) tell: files.py reads and aligns them, steps.py finds the steps in them and where
their time went, report.py draws that."""
