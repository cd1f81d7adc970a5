"""A plan as Kafka's tools write and read it: `{"version": 1, "partitions": [{"topic", "partition", "replicas",
"log_dirs"}]}`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kquorum.cli.commands.reassign.balance import Place
from kquorum.cli.failures import CliError, ExitStatus

ANY_DIRECTORY: Final = "any"
_MAX_BYTES: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Target:
    """Where a partition is to be; `directories` belong to the replicas, None where any will do."""

    replicas: tuple[int, ...]
    directories: tuple[str | None, ...]


def plan_as_json(assignment: Mapping[Place, Iterable[int]]) -> dict[str, object]:
    return {
        "version": 1,
        "partitions": [
            {
                "topic": topic,
                "partition": partition,
                "replicas": [*replicas],
                "log_dirs": [ANY_DIRECTORY for _ in replicas],
            }
            for (topic, partition), replicas in assignment.items()
        ],
    }


def write_plan(path: Path, assignment: Mapping[Place, Iterable[int]]) -> None:
    """Into a new file. Raises CliError if it exists, OSError."""
    try:
        with path.open("x") as opened:
            json.dump(plan_as_json(assignment), opened, indent=1)
            opened.write("\n")
    except FileExistsError:
        raise CliError(f"{path} exists and is not overwritten: name another file, or remove it") from None


def read_plan(path: Path) -> dict[Place, Target]:
    """Raises CliError for a file that is no plan, OSError for one that cannot be read."""
    with path.open("rb") as opened:
        data = opened.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise _bad(path, f"it has more than {_MAX_BYTES:,} bytes")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _bad(path, f"it is no JSON ({error})") from None
    if not isinstance(document, dict) or document.get("version") != 1:
        raise _bad(path, 'it has no "version": 1')
    entries = document.get("partitions")
    if not isinstance(entries, list) or not entries:
        raise _bad(path, 'it has no list "partitions"')
    plan: dict[Place, Target] = {}
    for number, entry in enumerate(entries):
        place, target = _entry(path, number, entry)
        if place in plan:
            raise _bad(path, f"{place[0]}-{place[1]} is named twice")
        plan[place] = target
    return plan


def _entry(path: Path, number: int, entry: Any) -> tuple[Place, Target]:
    where = f"entry {number} of its partitions"
    if not isinstance(entry, dict):
        raise _bad(path, f"{where} is no object")
    topic, partition, replicas = (entry.get(key) for key in ("topic", "partition", "replicas"))
    if not _is_text(topic):
        raise _bad(path, f'{where} has no "topic"')
    if not _is_number(partition):
        raise _bad(path, f'{where} has no "partition"')
    name = f"{topic}-{partition}"
    if not isinstance(replicas, list) or not replicas or not all(map(_is_number, replicas)):
        raise _bad(path, f'{name} has no "replicas", a list of the ids of brokers')
    if len(set(replicas)) < len(replicas):
        raise _bad(path, f"{name} has a broker twice: {', '.join(map(str, replicas))}")
    directories = entry.get("log_dirs", [ANY_DIRECTORY for _ in replicas])
    if (
        not isinstance(directories, list)
        or len(directories) != len(replicas)
        or not all(map(_is_text, directories))
    ):
        raise _bad(path, f'"log_dirs" of {name} is no list of as many directories as there are replicas')
    wanted = tuple(None if each == ANY_DIRECTORY else each for each in directories)
    assert isinstance(topic, str)
    assert isinstance(partition, int)
    return (topic, partition), Target(tuple(replicas), wanted)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _is_text(value: object) -> bool:
    """JSON can write half of a surrogate pair, which no request can."""
    return isinstance(value, str) and bool(value) and not any("\ud800" <= each <= "\udfff" for each in value)


def _bad(path: Path, what: str) -> CliError:
    return CliError(
        f"{path} is no plan of reassignments: {what} (`kquorum reassign plan` writes one)",
        status=ExitStatus.USAGE,
    )
