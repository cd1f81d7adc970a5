"""Leader and ISR changes with their causes, and audit notes, by a plain loop: the counterpart of those tables."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from kquorum.wire.audit_note import AUDIT_NOTE_TAG, api_name, note_hash
from kquorum.wire.proto.audit_pb2 import AuditNote
from tests.support.spark.plain_events import Event, committed, log_events, segment_events
from tests.support.spark.plain_replay import replay
from tests.support.spark.plain_tables import Row, brokers

CAUSES = {
    "fenced": "fencing",
    "unregistered": "unregistration",
    "controlled_shutdown": "shutdown",
    "registered": "restart",
    "directories": "directory_failure",
}
Happened = tuple[str, Event]


class Timeline:
    """What happened to each broker, to be asked for what was just before or just after an offset."""

    def __init__(self, folder: Path) -> None:
        self._happened = brokers(log_events(folder)).happened

    def around(self, broker_id: int, offset: int) -> tuple[Happened | None, Happened | None]:
        happened = self._happened.get(broker_id, [])
        place = bisect_left([event.offset for _, event in happened], offset)
        return (
            happened[place - 1] if place else None,
            happened[place] if place < len(happened) else None,
        )


def leader_changes(folder: Path) -> list[Row]:
    timeline, controllers = Timeline(folder), _controllers(folder)
    rows = []
    for before, after in _pairs(folder):
        if before["leader"] == after["leader"]:
            continue
        unclean = _is_unclean(before, after)
        cause, event = _cause(before, after, timeline, unclean=unclean)
        rows.append(
            {
                **_place(after, controllers),
                "old_leader": before["leader"],
                "new_leader": after["leader"],
                "leader_epoch": after["leader_epoch"],
                "old_isr": before["isr"],
                "new_isr": after["isr"],
                "unclean": unclean,
                "cause": cause,
                "cause_offset": None if event is None else event.offset,
            }
        )
    return rows


def isr_changes(folder: Path) -> list[Row]:
    controllers, rows = _controllers(folder), []
    for before, after in _pairs(folder):
        left, joined = set(before["isr"]) - set(after["isr"]), set(after["isr"]) - set(before["isr"])
        if left or joined:
            rows.append(
                {
                    **_place(after, controllers),
                    "kind": "replace" if left and joined else "shrink" if left else "expand",
                    "left_isr": sorted(left),
                    "joined_isr": sorted(joined),
                    "old_isr": before["isr"],
                    "new_isr": after["isr"],
                    **{
                        name: after[name]
                        for name in ("leader", "leader_epoch", "partition_epoch", "replicas")
                    },
                    "under_replicated": not set(after["replicas"]) <= set(after["isr"]),
                }
            )
    return rows


def audit_notes(folder: Path) -> list[Row]:
    kept = {event.offset for event in committed(segment_events(folder))}
    controllers, rows = _controllers(folder), []
    previous: str | None = None
    for event in segment_events(folder):
        data = _note_data(event)
        if data is None:
            continue
        row = _note(data, event) | {"controller_id": controllers.get(event.quorum_epoch)}
        row["committed"], row["chain"] = event.offset in kept, None
        if row["committed"]:
            row["chain"], previous = _link(row["previous_note_hash"], previous), row["note_hash"]
        rows.append(row)
    return rows


def _link(held: str, previous: str | None) -> str:
    if previous is None:
        return "unknown" if held else "first"
    return "linked" if held == previous else "broken"


def _note_data(event: Event) -> bytes | None:
    if event.kind != "NoOpRecord":
        return None
    for tag, data in event.record.unknown_tagged_fields:
        if tag == AUDIT_NOTE_TAG:
            try:
                AuditNote.FromString(data)
            except DecodeError:
                return None
            return bytes(data)
    return None


def _note(data: bytes, event: Event) -> Row:
    note = AuditNote.FromString(data)
    names = ("principal", "client_id", "client_address", "correlation_id", "reason", "operator_reason")
    covered = note.covered_records
    return {
        **{name: getattr(note, name) for name in names},
        "offset": event.offset,
        "timestamp_ms": event.timestamp_ms,
        "quorum_epoch": event.quorum_epoch,
        "api": api_name(note.api_key),
        "covered_records": covered,
        "covered_from_offset": event.offset + 1 if covered else None,
        "covered_to_offset": event.offset + covered if covered else None,
        "forwarding_id": note.forwarding_id.hex() or None,
        "is_whole": note.is_whole if note.forwarding_id else None,
        "note_hash": note_hash(data).hex(),
        "previous_note_hash": note.previous_note_hash.hex(),
    }


def _pairs(folder: Path) -> Iterator[tuple[Row, Row]]:
    """Each state of each partition with the one before it."""

    def key(row: Row) -> Any:
        return (row["topic_id"], row["partition_id"])

    for _, rows in groupby(sorted(replay(folder).history, key=key), key=key):
        states = list(rows)
        yield from pairwise(states)


def _place(row: Row, controllers: dict[int, int]) -> Row:
    copied = ("topic_id", "topic_name", "partition_id", "quorum_epoch", "batch_base_offset")
    return {
        **{name: row[name] for name in copied},
        "offset": row["valid_from_offset"],
        "timestamp_ms": row["valid_from_ms"],
        "controller_id": controllers.get(row["quorum_epoch"]),
    }


def _controllers(folder: Path) -> dict[int, int]:
    found: dict[int, int] = {}
    for event in segment_events(folder):
        if event.kind == "LeaderChangeMessage":
            found.setdefault(event.quorum_epoch, event.record.leader_id)
    return found


def _is_unclean(before: Row, after: Row) -> bool:
    leader = after["leader"]
    if leader < 0 or leader in before["isr"] or leader in before["eligible_leader_replicas"]:
        return False
    return after["leader_recovery_state"] == 1 or before["replicas"] == after["replicas"]


def _cause(before: Row, after: Row, timeline: Timeline, *, unclean: bool) -> tuple[str, Event | None]:
    """The cause, and the broker's record that explains it."""
    together = _departed_together(before, after, timeline)
    returned = _returned_together(after, timeline)
    if unclean:
        return "unclean", (together[1] if together else returned)
    if together:
        return CAUSES[together[0]], together[1]
    if before["leader"] < 0 and returned:
        return "unfencing", returned
    if _is_reassigned(before, after):
        return "reassignment", None
    if before["leader"] < 0:
        return "recovery", None
    if after["replicas"][:1] == [after["leader"]] and before["leader"] in after["isr"]:
        return "preferred", None
    return _by_state_of_old_leader(before, after, timeline)


def _departed_together(before: Row, after: Row, timeline: Timeline) -> Happened | None:
    around = timeline.around(before["leader"], after["valid_from_offset"])
    for happened in around:
        if happened and happened[0] in CAUSES and happened[1].batch == after["batch_base_offset"]:
            return happened
    return None


def _returned_together(after: Row, timeline: Timeline) -> Event | None:
    last, _ = timeline.around(after["leader"], after["valid_from_offset"])
    if last and last[0] == "unfenced" and last[1].batch == after["batch_base_offset"]:
        return last[1]
    return None


def _is_reassigned(before: Row, after: Row) -> bool:
    names = ("replicas", "removing_replicas", "adding_replicas")
    return (
        any(before[name] != after[name] for name in names) or before["leader"] in after["removing_replicas"]
    )


def _by_state_of_old_leader(before: Row, after: Row, timeline: Timeline) -> tuple[str, Event | None]:
    last, following = timeline.around(before["leader"], after["valid_from_offset"])
    # Brokers in a snapshot registered long ago; only one that came back fenced is on its way.
    is_back = last is not None and last[0] == "registered" and not last[1].record.fenced
    if last and last[0] in CAUSES and last[0] != "directories" and not is_back:
        return CAUSES[last[0]], last[1]
    if (
        following
        and before["leader"] not in after["isr"]
        and following[0] in ("fenced", "unregistered")
        and following[1].quorum_epoch == after["quorum_epoch"]
        and following[1].timestamp_ms - after["valid_from_ms"] <= 1000
    ):
        return CAUSES[following[0]], following[1]
    return "other", None
