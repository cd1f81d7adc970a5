"""What a block of commands puts out: events always, messages unless they are hushed, nothing at all for set-ups."""

from enum import IntEnum


class Volume(IntEnum):
    SILENT = 0
    EVENTS = 1
    ALL = 2


class Transcript:
    """`time` is how long the current command has let time pass; a line says so before the first event there."""

    def __init__(self) -> None:
        self.volume = Volume.ALL
        self.time = 0
        self.hidden_kinds: set[str] = set()
        self._told_time = 0
        self._lines: list[str] = []
        self._heard: str | None = None

    def begin_command(self) -> None:
        self.volume = Volume.ALL
        self.time = self._told_time = 0
        self._heard = None

    def event(self, line: str) -> None:
        self._add(line, Volume.EVENTS)

    def message(self, kind: str, line: str) -> None:
        if kind.lower().removesuffix("reply") not in self.hidden_kinds:
            self._add(line, Volume.ALL)

    def hears(self, line: str) -> None:
        """What caused the lines that follow; not shown if there are none."""
        self._heard = line

    def digested(self, *, by_name: bool) -> None:
        """Say what was heard even though nothing came of it, if the script delivered it by name."""
        heard, self._heard = self._heard, None
        if by_name and heard is not None:
            self._add(f"{heard}: nothing happens", Volume.ALL)

    def say(self, line: str) -> None:
        """The answer to a question of the script's."""
        self._lines.append(line)

    def _add(self, line: str, needed: Volume) -> None:
        if self.volume < needed:
            return
        heard, self._heard = self._heard, None
        if self.time != self._told_time:
            self._told_time = self.time
            self._lines.append(f"after {self.time} ms:")
        if heard is not None and self.volume is Volume.ALL:
            self._lines.append(heard)
        self._lines.append(line)

    def take(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines
