"""What is wrong with a config: all of it at once, each with file and line."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value of the config was written; the line is None where it is not known."""

    path: Path
    line: int | None = None

    def __str__(self) -> str:
        return str(self.path) if self.line is None else f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule."""

    message: str
    place: Place

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class ConfigError(Exception):
    """The config cannot be used; `problems` is never empty, and holds none twice."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        assert self.problems
        super().__init__("\n".join(str(problem) for problem in self.problems))
