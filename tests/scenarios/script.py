"""The form of a scenario file: comments, and blocks of commands with the output that they had.

    # a comment, kept as it is
    command
    another command
    ----
    the output of both

A block ends with the first blank line after its `----`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.scenarios.errors import ScenarioError

SEPARATOR = "----"
_WORD = re.compile(r'"[^"]*"|\S+')


@dataclass(frozen=True, slots=True)
class Command:
    """One line: a name and its words; `"two words"` in quotes are one."""

    line: int
    text: str

    @property
    def words(self) -> list[str]:
        text = self.text.split(" #", 1)[0]
        return [word.strip('"') for word in _WORD.findall(text)]


@dataclass(frozen=True, slots=True)
class Block:
    commands: tuple[Command, ...]
    output: tuple[str, ...]

    def lines(self) -> list[str]:
        return [*(command.text for command in self.commands), SEPARATOR, *self.output]


@dataclass(frozen=True, slots=True)
class Script:
    """`parts` in the order of the file: blocks, and lines that stay as they are."""

    path: Path
    parts: tuple[Block | str, ...]

    @property
    def blocks(self) -> list[Block]:
        return [part for part in self.parts if isinstance(part, Block)]

    @property
    def heading(self) -> list[str]:
        """The comment at the top, without its number signs."""
        lines = []
        for part in self.parts:
            if not isinstance(part, str) or not part.startswith("#"):
                break
            lines.append(part.lstrip("# "))
        return lines

    def with_outputs(self, outputs: Sequence[Sequence[str]]) -> str:
        """The file's text as it would be, had the blocks put out this."""
        recorded = iter(outputs)
        lines: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                lines.append(part)
            else:
                lines.extend([*Block(part.commands, tuple(next(recorded))).lines(), ""])
        return "\n".join(lines).rstrip("\n") + "\n"


def read_script(path: Path) -> Script:
    """Raises ScenarioError for commands without a separator."""
    parts: list[Block | str] = []
    commands: list[Command] = []
    lines = iter(enumerate(path.read_text().splitlines(), start=1))
    for number, line in lines:
        if line == SEPARATOR:
            output = _read_output(lines)
            parts.append(Block(tuple(commands), output))
            commands = []
        elif line.startswith("#") or not line.strip():
            if commands:
                raise ScenarioError(f"commands without '{SEPARATOR}' after them", str(path), number)
            parts.append(line)
        else:
            commands.append(Command(number, line))
    if commands:
        raise ScenarioError(f"commands without '{SEPARATOR}' after them", str(path), commands[-1].line)
    return Script(path, tuple(parts))


def _read_output(lines: "enumerate[str]") -> tuple[str, ...]:
    output = []
    for _, line in lines:
        if not line.strip():
            break
        output.append(line)
    return tuple(output)
