"""One leader lost, as a line of JSON: what is measured, kept in a file as it happens, and read again by others.

A file may be written on for hours, by a process that dies: every line stands for itself, one that was cut off is taken
away when the file is opened again, and what a file holds already need not be measured twice.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Self

Setting = tuple[str, int, int, int]


class UnreadableLossesError(Exception):
    """A file holds something else; the text names file and line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """`to_commit_ms` counts from the deed to the first write that another controller acknowledged, `without_writes_ms`
    from the last that any had acknowledged before it. `epochs` were begun until then (1: the first election had a
    winner), `later_epochs` from then until all controllers had the whole log again. `late_writes` were acknowledged by
    the lost leader after the deed. `write_ms` is the median of the writes before; `load` that of the machine."""

    way: str
    controllers: int
    election_ms: int
    fetch_ms: int
    to_commit_ms: float
    without_writes_ms: float
    epochs: int
    later_epochs: int
    late_writes: int
    write_ms: float
    leader_id: int
    next_leader_id: int
    load: float
    at_ms: int

    @property
    def setting(self) -> Setting:
        """What the losses of one row have in common."""
        return self.way, self.controllers, self.election_ms, self.fetch_ms

    def as_line(self) -> str:
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def of_line(cls, line: str) -> Self:
        """Raises ValueError."""
        values = json.loads(line)
        if not isinstance(values, dict):
            raise ValueError("no JSON object")
        for field in fields(cls):
            kind = float | int if field.type is float else field.type
            if not isinstance(values.get(field.name), kind):  # type: ignore[arg-type]
                raise ValueError(f"no {field.name}")
        return cls(**{field.name: values[field.name] for field in fields(cls)})


def by_setting(losses: Iterable[Loss]) -> dict[Setting, list[Loss]]:
    groups: dict[Setting, list[Loss]] = {}
    for loss in losses:
        groups.setdefault(loss.setting, []).append(loss)
    return groups


def read_losses(path: Path) -> list[Loss]:
    """All whole lines of the file. Raises UnreadableLossesError."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableLossesError(f"{path}: {error}") from error
    return [_loss(path, number, line) for number, line in enumerate(_whole_lines(text), start=1)]


def _whole_lines(text: str) -> list[str]:
    """Without the last one if its writer was stopped in the middle of it."""
    return text.split("\n")[:-1]


def _loss(path: Path, number: int, line: str) -> Loss:
    try:
        return Loss.of_line(line)
    except ValueError as error:
        raise UnreadableLossesError(f"{path}:{number}: not a measured loss of a leader: {error}") from error


class LossFile:
    """What was measured before, and where the next is added."""

    def __init__(self, earlier: list[Loss], file: IO[str] | None) -> None:
        self.losses = earlier
        self._file = file

    def add(self, loss: Loss) -> None:
        self.losses.append(loss)
        if self._file is not None:
            self._file.write(loss.as_line())
            self._file.flush()

    def count(self, setting: Setting) -> int:
        return sum(loss.setting == setting for loss in self.losses)


@contextmanager
def open_losses(path: Path | None) -> Iterator[LossFile]:
    """Go on with this file, or without one. Raises UnreadableLossesError."""
    if path is None:
        yield LossFile([], None)
        return
    earlier = read_losses(path) if path.exists() else []
    try:
        file = path.open("a")
    except OSError as error:
        raise UnreadableLossesError(f"{path}: {error}") from error
    with file:
        file.truncate(sum(len(line) + 1 for line in path.read_bytes().split(b"\n")[:-1]))
        yield LossFile(earlier, file)
