"""Every scenario file does today what was recorded; `python -m tests.scenarios --rewrite FILE` records it again."""

import re
from pathlib import Path

import pytest

from tests.scenarios.runner import FOLDER, difference, scenario_files
from tests.scenarios.script import read_script

FILES = scenario_files()
IDS = [str(path.relative_to(FOLDER).with_suffix("")) for path in FILES]


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_scenario(path: Path) -> None:
    found = difference(path)
    if found:
        pytest.fail(f"{path.name} does not do what was recorded:\n{found}", pytrace=False)


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_scenario_says_what_it_pins_and_claims_something(path: Path) -> None:
    script = read_script(path)
    heading = "\n".join(script.heading)
    assert re.search(r"^Pins: \S", heading, re.MULTILINE), "the heading names no behaviour of the reference"
    assert re.search(r"^Why: \S", heading, re.MULTILINE), "the heading does not say why it matters"
    commands = [command.text for block in script.blocks for command in block.commands]
    assert any(text.startswith("expect ") for text in commands), "nothing is expected but the recorded output"


def test_there_are_enough_scenarios() -> None:
    assert len(FILES) >= 40
