# SPDX-License-Identifier: Apache-2.0
"""What the user can put right: one sentence that says what is wrong, and what to do."""


class Problem(Exception):
    """`what` is wrong; `todo` helps."""

    def __init__(self, what, todo=""):
        super().__init__(f"{what}: {todo}" if todo else what)
        self.what, self.todo = what, todo
