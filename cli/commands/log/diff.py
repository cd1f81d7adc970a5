"""The work of `log diff` and `snapshot diff`: two states, and a table for each kind of difference, or JSON."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from rich.text import Text

from kquorum.cli.commands.log.dump_lines import iso_time
from kquorum.cli.commands.log.files import the_log, within_its_end
from kquorum.cli.commands.log.states import Moment, State, first_state, state_at
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import complain, console, json_text, make_table, show_table
from kquorum.metadata.image.diff import Action, FieldChange, Plain, StateChange, StateKind, diff_images
from kquorum.metadata.log_check.state_replay import diff_quorums
from kquorum.wire.wording import counted

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
        # Changes come one at a time, and a million partitions may differ: only those that are shown are kept.
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
    return [_field_text(field, change.action) for field in change.fields if _is_shown(field, change.action)]


def _is_shown(field: FieldChange, action: Action) -> bool:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest:
    """`since` and `until` are None for the first state that the files hold and for the end of the log."""

    path: Path
    since: Moment | None
    until: Moment | None
    as_json: bool
    limit: int


def diff(request: DiffRequest) -> ExitStatus:
    """Show what changed between two moments of one log; raises CliError."""
    _check_order(request.since, request.until)
    log = within_its_end(the_log(request.path), _warn)
    before = first_state(log) if request.since is None else state_at(log, request.since, _warn)
    # An earlier `until` cannot be reached from `before`; then it is replayed from its own snapshot, and refused below.
    after = state_at(log, request.until or Moment(), _warn, before if _is_comparable(request) else None)
    # `_check_order` could not compare an offset with a time; now both are offsets.
    if after.offset < before.offset:
        reason = f"offset {after.offset}, where the time asked for ends, is before offset {before.offset}"
        raise CliError(f"{log.source}: {reason}", status=ExitStatus.USAGE)
    show_difference(log.source, before, after, as_json=request.as_json, limit=request.limit)
    return ExitStatus.OK


def _check_order(since: Moment | None, until: Moment | None) -> None:
    """Raises CliError for bounds of the same sort that are backwards."""
    if since is None or until is None:
        return
    for first, last in ((since.offset, until.offset), (since.time_ms, until.time_ms)):
        if first is not None and last is not None and last < first:
            raise CliError(f"from {first} to {last} is backwards: exchange the two", status=ExitStatus.USAGE)


def _is_comparable(request: DiffRequest) -> bool:
    """Whether the second moment is known to be no earlier than the first, so that one replay serves both."""
    since, until = request.since, request.until
    if since is None or until is None:
        return True
    return (since.offset is None) == (until.offset is None)


def show_difference(source: str, before: State, after: State, *, as_json: bool, limit: int) -> None:
    """Tables or JSON on standard output; what the states lack on standard error."""
    for name, state in (("before", before), ("after", after)):
        _warn_of_gaps(name, state)
    changes = _changes(before, after)
    if as_json:
        head = {"source": source, "from": _state_json(before), "to": _state_json(after)}
        write_changes_json(head, changes)
        return
    out = console()
    out.print(f"{source}: what changed", style="bold")
    out.print(f"  from {_state_text(before)}")
    out.print(f"  to   {_state_text(after)}")
    show_changes(changes, limit=limit)


def _changes(before: State, after: State) -> Iterator[StateChange]:
    return chain(diff_quorums(before.quorum, after.quorum), diff_images(before.image, after.image))


def _state_text(state: State) -> str:
    if state.offset == 0:
        return "nothing (offset 0)"
    when = "" if state.timestamp_ms is None else f", {iso_time(state.timestamp_ms)}"
    return f"offset {state.offset} (epoch {state.epoch}{when})"


def _state_json(state: State) -> dict[str, object]:
    return {
        "offset": state.offset,
        "epoch": state.epoch,
        "timestamp_ms": state.timestamp_ms,
        "replayed_since": state.since,
        "open_transaction_since": state.transaction_start_offset,
        "unknown_records": state.unknown_count,
        "records_not_replayed": len(state.faults),
    }


def _warn_of_gaps(name: str, state: State) -> None:
    if state.transaction_start_offset is not None:
        _warn(
            f"the state {name} leaves out the transaction that began at offset {state.transaction_start_offset} "
            f"and is open at offset {state.offset}"
        )
    if state.unknown_count:
        _warn(
            f"the state {name} lacks {counted(state.unknown_count, 'record')} of types unknown to this program"
        )
    if state.faults:
        first = state.faults[0]
        _warn(
            f"the state {name} lacks {counted(len(state.faults), 'record')} that could not be replayed, the first at "
            f"offset {first.offset}: {first.reason}"
        )


def _warn(message: str) -> None:
    complain(message, style="yellow", label="warning")
