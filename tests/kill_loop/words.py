"""What the nodes said of themselves: every start clean, and nothing that only a fault of ours could bring about."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

_LINE = re.compile(r"^\S+ \S+ node \d+ (?P<level>[A-Z]+) (?P<logger>\S+): (?P<message>.*)$")
_TORN = re.compile(r"^(?P<bytes>\d+) bytes of a torn write were cut off the log's end$")
# Killed after a fetched snapshot got its name and before the log below it was gone: lawful, and finished at the start.
_RESTARTED = re.compile(r"^the log is behind its newest snapshot, and starts over there")
_NUMBER = re.compile(r"\d+")
# A process that is killed loses nothing that it wrote: so no node may ever speak of these.
_NEVER = re.compile(
    r"damage|corrupt|lacks what was in it|lost what|cut off|cannot be read",
    re.IGNORECASE,
)


class Words:
    """The lines of the nodes' log files: violations, torn ends that were cut, logs that began again at a snapshot, and
    warnings by their wording."""

    def __init__(self, log_files: Iterable[Path]) -> None:
        self.violations: list[str] = []
        self.torn_bytes: list[int] = []
        self.restarted = 0
        self.warnings: Counter[str] = Counter()
        for path in log_files:
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
                self._take(f"{path.parent.name}/{path.name}:{number}", line)

    def _take(self, place: str, line: str) -> None:
        said = _LINE.match(line)
        if said is None:
            if line.startswith("Traceback"):
                self.violations.append(f"{place}: {line}")
            return
        torn = _TORN.match(said["message"])
        self.restarted += _RESTARTED.match(said["message"]) is not None
        if torn is not None:
            self.torn_bytes.append(int(torn["bytes"]))
        elif said["level"] in ("ERROR", "CRITICAL") or _NEVER.search(said["message"]):
            self.violations.append(f"{place}: {said['level']} {said['message'][:300]}")
        elif said["level"] == "WARNING":
            self.warnings[f"{said['logger']}: {_NUMBER.sub('#', said['message'])[:160]}"] += 1


def bad_lines(output: str) -> Iterator[str]:
    """Of what a node printed while it started."""
    for line in output.splitlines():
        if line.startswith(("error:", "Traceback")):
            yield line


def log_files(data_folder: Path) -> list[Path]:
    return sorted(data_folder.glob("kquorum.log*"))
