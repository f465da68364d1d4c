# SPDX-License-Identifier: Apache-2.0
import faulthandler

import pytest

LIMIT_S = 120


@pytest.fixture(autouse=True)
def time_limit():
    """A reader that hangs ends the run, with the stacks of all threads."""
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
