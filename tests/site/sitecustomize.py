# SPDX-License-Identifier: Apache-2.0
"""What lockstep.pth does in an installed environment, for a checkout: put this folder into PYTHONPATH."""
import lockstep.start

lockstep.start.wake()
