# SPDX-License-Identifier: Apache-2.0
"""What the script does to the world outside happens once.

  output.py  what ranks print"""
