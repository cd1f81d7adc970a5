"""When partitions could not serve, by a plain walk over the plain replay: the counterpart of that question."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.support.spark.plain_replay import replay
from tests.support.spark.plain_tables import Row, configs_history

Interval = tuple[str, str, int, int, int, int | None, int | None]
NEVER = 2**63


def unavailable(folder: Path) -> set[Interval]:
    """(kind, topic_id, partition_id, from_offset, from_ms, to_offset, to_ms) of each interval."""
    settings = [row for row in configs_history(folder) if row["name"] == "min.insync.replicas"]
    partitions: dict[tuple[str, int], list[Row]] = {}
    for row in replay(folder).history:
        partitions.setdefault((row["topic_id"], row["partition_id"]), []).append(row)
    found = set[Interval]()
    for (topic_id, number), rows in partitions.items():
        pieces = [piece for row in rows for piece in _pieces(row, settings)]
        for kind in ("no_leader", "under_min_isr"):
            found |= {(kind, topic_id, number, *bounds) for bounds in _runs(pieces, kind)}
    return found


def _pieces(row: Row, settings: list[Row]) -> Iterator[dict[str, Any]]:
    """A state cut wherever any setting changed within it, with what was short in each piece."""
    begin, end = row["valid_from_offset"], row["valid_to_offset"] or NEVER
    cuts = {begin: row["valid_from_ms"]}
    for setting in settings:
        for edge in ("valid_from", "valid_to"):
            offset = setting[f"{edge}_offset"]
            if offset is not None and begin < offset < end:
                cuts[offset] = setting[f"{edge}_ms"]
    for offset, following in pairwise([*sorted(cuts), end]):
        if offset < following:
            needed = min(_min_isr(row, settings, offset), len(row["replicas"]))
            yield {
                "from": (offset, cuts[offset]),
                "to": (following, cuts.get(following, row["valid_to_ms"]))
                if following < NEVER
                else (None, None),
                "no_leader": row["leader"] < 0,
                "under_min_isr": len(row["isr"]) < needed,
            }


def _min_isr(row: Row, settings: list[Row], offset: int) -> int:
    for kind, name in (("topic", row["topic_name"]), ("broker", str(row["leader"])), ("broker", "")):
        for each in settings:
            holds = each["valid_from_offset"] <= offset < (each["valid_to_offset"] or NEVER)
            if (
                holds
                and (each["resource_type"], each["resource_name"]) == (kind, name)
                and each["value"].isdecimal()
            ):
                return int(each["value"])
    return 1


def _runs(pieces: list[dict[str, Any]], kind: str) -> Iterator[tuple[int, int, int | None, int | None]]:
    run: list[dict[str, Any]] = []
    for piece in [*pieces, None]:
        if piece is not None and piece[kind]:
            run.append(piece)
        elif run:
            yield (*run[0]["from"], *run[-1]["to"])
            run = []
