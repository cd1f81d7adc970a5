"""What the tables of an audit say of one controller's log, in the words of the clients' changes."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.jepsen.core.history import Operation

CHANGE, DESCRIBE = "change", "describe-audited"
CREATE, GROW, SET, UNSET, DELETE = "create", "grow", "set", "unset", "delete"
TOPIC_PREFIX = "audit-"

# The change and its topic; of a config its key and value, of a topic that grew the partitions that it has then.
Effect = tuple[str, ...]
Rows = Sequence[Mapping[str, Any]]
_FROM_THEN_ON = {"created": CREATE, "partitions_added": GROW}


def effects_asked(operations: Sequence[Operation]) -> list[tuple[Effect, Operation]]:
    """What each change would do; of one that unsets a config it is known by now which value that had."""
    values: dict[tuple[str, str], str] = {}
    found = []
    for each in operations:
        if each.invoke.f != CHANGE:
            continue
        asked = each.invoke.value
        place = (asked["topic"], asked.get("key", ""))
        if asked["change"] == SET and each.is_ok:
            values[place] = asked["value"]
        found.append((_effect(asked, values.get(place, "")), each))
    return found


def _effect(asked: Mapping[str, Any], value_before: str) -> Effect:
    match asked["change"]:
        case "create" | "grow":
            return asked["change"], asked["topic"], str(asked["partitions"])
        case "set":
            return SET, asked["topic"], asked["key"], asked["value"]
        case "unset":
            return UNSET, asked["topic"], asked["key"], value_before
        case _:
            return DELETE, asked["topic"]


class AuditedLog:
    """One entry of `logs` in a run's audit.json."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content
        self.source: str = content["source"]
        self.node: int | None = content["node"]
        self.start: int = content["start_offset"] or 0
        self.end: int = content["end_offset"] or 0
        self.damage: Rows = content["damage"]
        self.effects: dict[Effect, list[int]] = defaultdict(list)
        for effect, offset in sorted(self._effects(), key=lambda each: each[1]):
            self.effects[effect].append(offset)

    def note_for(self, offset: int) -> Mapping[str, Any] | None:
        """The committed audit note which says that it covers the record at this offset."""
        notes: Rows = self._content["audit_notes"]
        for note in notes:
            first, last = note["covered_from_offset"], note["covered_to_offset"]
            if first is not None and first <= offset <= last and note["committed"]:
                return note
        return None

    def state(self) -> dict[str, Any]:
        """Our topics at the end of the log, as a broker describes them."""
        topics = {
            row["topic_name"]: row["partitions"]
            for row in self._ours("topics", "topic_name")
            if row["valid_to_offset"] is None
        }
        configs: dict[str, dict[str, str]] = {}
        for row in self._ours("configs_history", "resource_name"):
            if row["valid_to_offset"] is None:
                configs.setdefault(row["resource_name"], {})[row["name"]] = row["value"]
        return {"topics": topics, "configs": configs}

    def _effects(self) -> Iterator[tuple[Effect, int]]:
        for row in self._ours("topics_history", "topic_name"):
            change = _FROM_THEN_ON[row["change"]]
            yield (change, row["topic_name"], str(row["partitions"])), row["valid_from_offset"]
        for row in self._ours("topics", "topic_name"):
            if row["valid_to_offset"] is not None:
                yield (DELETE, row["topic_name"]), row["valid_to_offset"]
        for row in self._ours("configs_history", "resource_name"):
            place = (row["resource_name"], row["name"], row["value"])
            yield (SET, *place), row["valid_from_offset"]
            if row["ended_by"] == "deleted":
                yield (UNSET, *place), row["valid_to_offset"]

    def _ours(self, table: str, name: str) -> Iterator[Mapping[str, Any]]:
        return (row for row in self._content[table] if row[name].startswith(TOPIC_PREFIX))
