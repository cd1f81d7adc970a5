"""How differences between two states are shown: a table for each kind, or one JSON document written as it comes."""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping

from rich.text import Text

from cli.output import console, json_text, make_table, show_table
from metadata.image.diff import Action, FieldChange, Plain, StateChange, StateKind

_MARKS = {Action.ADDED: ("+", "green"), Action.REMOVED: ("-", "red"), Action.CHANGED: ("~", "yellow")}
# Of what is new or gone, these say nothing that a person compares; --json has them.
_UNTOLD = frozenset(
    {
        "directories",
        "features",
        "incarnation_id",
        "is_migrating_zk_broker",
        "leader_epoch",
        "leader_recovery_state",
        "log_dirs",
        "partition_epoch",
        "zk_migration_ready",
    }
)
_FALSE_UNTOLD = frozenset({"in_controlled_shutdown", "is_migrating_zk_broker", "zk_migration_ready"})
_PLURALS = {
    "producer ids": "producer ids",
    "quorum": "quorum",
    "client quota": "client quotas",
    "acl": "ACLs",
}


def show_changes(changes: Iterable[StateChange], *, limit: int) -> int:
    """Tables by kind, at most `limit` rows each (0: all); answers how many changes there are."""
    rows: dict[StateKind, list[StateChange]] = {}
    counts: Counter[tuple[StateKind, Action]] = Counter()
    for change in changes:
        counts[change.kind, change.action] += 1
        kept = rows.setdefault(change.kind, [])
        if not limit or len(kept) < limit:
            kept.append(change)
    out = console()
    for kind in sorted(rows, key=list(StateKind).index):
        show_table(make_table(_title(kind, counts), ("", "which", "~what"), map(_row, rows[kind])))
        total = sum(counts[kind, action] for action in Action)
        if total > len(rows[kind]):
            out.print(Text(f"and {total - len(rows[kind]):,} more; --limit 0 shows all", "dim"))
    if not counts:
        out.print("no difference")
    return sum(counts.values())


def write_changes_json(head: Mapping[str, object], changes: Iterable[StateChange]) -> int:
    """One JSON object with `changes` as its last member, written change by change; answers their number."""
    text = json_text(head, indent=2)
    sys.stdout.write(text[:-2] + ',\n  "changes": [')
    count = 0
    for count, change in enumerate(changes, 1):
        sys.stdout.write(("," if count > 1 else "") + "\n    " + json_text(_json(change)))
    sys.stdout.write(("\n  " if count else "") + "]\n}\n")
    return count


def _title(kind: StateKind, counts: Counter[tuple[StateKind, Action]]) -> str:
    parts = [f"{counts[kind, action]:,} {action}" for action in Action if counts[kind, action]]
    return f"{_PLURALS.get(kind, f'{kind}s')}: {', '.join(parts)}"


def _row(change: StateChange) -> tuple[Text, Text, Text]:
    mark, style = _MARKS[change.action]
    return Text(mark, style), Text(change.subject), Text("; ".join(_told(change)))


def _told(change: StateChange) -> list[str]:
    return [_field_text(field, change.action) for field in change.fields if _is_told(field, change.action)]


def _is_told(field: FieldChange, action: Action) -> bool:
    if action is Action.CHANGED:
        return True
    value = field.after if action is Action.ADDED else field.before
    return field.name not in _UNTOLD and not (field.name in _FALSE_UNTOLD and not value)


def _field_text(field: FieldChange, action: Action) -> str:
    name = field.name.replace("_", " ").replace("end points", "at")
    if action is Action.ADDED:
        return f"{name} {_value(field.name, field.after)}"
    if action is Action.REMOVED:
        return f"{name} {_value(field.name, field.before)}"
    return f"{name} {_value(field.name, field.before)} -> {_value(field.name, field.after)}"


def _value(name: str, value: Plain) -> str:
    if value is None or value == () or (name == "leader" and value == -1):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        separator = " " if all(isinstance(item, int) for item in value) else ", "
        return separator.join(str(item) for item in value)
    return str(value)


def _json(change: StateChange) -> dict[str, object]:
    return {
        "kind": str(change.kind),
        "action": str(change.action),
        **dict(change.keys),
        "fields": {field.name: {"before": field.before, "after": field.after} for field in change.fields},
    }
