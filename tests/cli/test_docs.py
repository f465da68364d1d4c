# SPDX-License-Identifier: Apache-2.0
"""The guides name what is there: messages that the code can say, options that the commands have, files that exist."""
import re
import sys

import pytest
from jobs import ROOT

sys.path.insert(0, str(ROOT / "python"))
from lockstep import cli  # noqa: E402

GUIDES = [ROOT / "docs" / name for name in ("guide-workstation.md", "guide-cluster.md", "troubleshooting.md")]


def messages():
    """The quoted messages that are headings."""
    headings = re.findall(r"^### (.*)$", (ROOT / "docs" / "troubleshooting.md").read_text(), re.MULTILINE)
    return [message for heading in headings for message in re.findall(r"`([^`]+)`", heading)]


def source():
    """All texts of the code, with what is filled in left out."""
    texts = [path.read_text() for folder, ending in (("python", "*.py"), ("src", "*.c"))
             for path in (ROOT / folder).rglob(ending)]
    joined = re.sub(r'"\s*\n\s*f?"', "", "\n".join(texts))
    return re.sub(r"\{[^{}\n]*\}|%\.?\d*[a-z]+", "…", joined)


@pytest.mark.parametrize("message", messages())
def test_a_message_of_the_guide_is_one_that_can_be_said(message):
    pattern = r".{0,60}?".join(re.escape(part) for part in message.split("…"))
    assert re.search(pattern, source()), f"nothing says '{message}'"


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_options_and_links_of_a_guide_exist(guide):
    text = guide.read_text()
    for name, words in re.findall(r"lockstep (\w+)([^`\n#]*)", text):
        if name not in cli.COMMANDS:
            continue
        known = {option for action in cli.parser_of(name)._actions for option in action.option_strings}
        own = words.split(".py")[0]
        for option in re.findall(r"(?<!\S)(--[a-z-]+)", own):
            assert option in known, f"lockstep {name} has no {option}"
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (guide.parent / link).exists(), f"{guide.name} links {link}"
