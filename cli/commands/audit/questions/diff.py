"""The work of `audit diff`: what differs between two moments of a log, and who did it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kquorum.cli.commands.audit.answers import Answer, AnswerTable, author_cells, author_columns, number
from kquorum.cli.commands.audit.query import Asked, AuditQuery, check_broker_known, lives_of_topic, moment_of
from kquorum.cli.commands.audit.questions.as_of import acl_resource, resource
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.spark_replay.engine.frame import Frame, Row, is_row
from kquorum.spark_replay.questions.causes import has_notes, with_author
from kquorum.spark_replay.questions.diff import CHANGES, PASSING, RESTORED, compared, sums_of_diff
from kquorum.spark_replay.questions.entities import BY_NAME, Narrowing
from kquorum.spark_replay.questions.moments import Moment, time_text

_MARKS = {"added": "+", "removed": "-", "changed": "~", "passing": "±", "restored": "="}
_WORDS = {PASSING: "came and went", RESTORED: "changed and changed back"}
_SHORT = {
    "isr": "in sync",
    "eligible_leader_replicas": "eligible",
    "last_known_elr": "last eligible",
    "adding_replicas": "adding",
    "removing_replicas": "removing",
    "leader_recovery_state": "recovery state",
    "in_controlled_shutdown": "shutting down",
    "end_points": "end points",
    "voter_ids": "voters",
}
# They follow from the others, or say nothing that a person compares; --json has them.
_UNTOLD = frozenset(
    {
        *("leader_epoch", "partition_epoch", "directories", "voters", "is_redacted", "features", "log_dirs"),
        *("incarnation_id", "cordoned_log_dirs", "broker_epoch", "last_known_elr"),
    }
)
_TOLD_OF_NEW = {
    "partitions": ("leader", "replicas"),
    "configs": ("value",),
    "features": ("level",),
    "brokers": ("fenced",),
    "voters": ("voter_ids",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    first: Asked
    last: Asked
    narrowing: Narrowing


def answer_diff(question: AuditQuery, request: Diff) -> Answer:
    """Raises CliError, also for moments in the wrong order."""
    if request.narrowing.topic is not None:
        lives_of_topic(question, request.narrowing.topic)
    if request.narrowing.broker is not None:
        check_broker_known(question, request.narrowing.broker)
    before = moment_of(question.tables, question.source, request.first)
    after = moment_of(question.tables, question.source, request.last)
    if after.offset < before.offset:
        raise CliError(
            f"from offset {before.offset} to {after.offset} is backwards: exchange the two",
            status=ExitStatus.USAGE,
        )
    frames = compared(question.tables, before, after, request.narrowing)
    sums = _sums(frames)
    tables = [
        _table(
            name,
            with_author(frame, question.tables),
            sum(sums[name].values()),
            has_notes=has_notes(question.tables),
        )
        for name, frame in frames.items()
    ]
    return Answer(
        head={
            "source": question.source,
            "from": _moment(before),
            "to": _moment(after),
            "summary": {name: counts for name, counts in sums.items() if counts},
        },
        lines=[
            f"{question.source}: what changed",
            f"  from behind {_place(before)}",
            f"  to   behind {_place(after)}",
            *(_sum_lines(sums) or ["  nothing"]),
        ],
        notes=list(dict.fromkeys((*before.notes, *after.notes))),
        tables=tables,
    )


def _sums(frames: Mapping[str, Frame]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {name: {} for name in frames}
    for row in sums_of_diff(frames).collect():
        found[row["entity"]][row["change"]] = row["rows"]
    return {
        name: {each: counts[each] for each in CHANGES if each in counts} for name, counts in found.items()
    }


def _sum_lines(sums: Mapping[str, Mapping[str, int]]) -> list[str]:
    words = {PASSING: "came and went", RESTORED: "changed and back"}
    return [
        f"  {'ACLs' if name == 'acls' else name}: "
        + ", ".join(f"{count:,} {words.get(change, change)}" for change, count in counts.items())
        for name, counts in sums.items()
        if counts
    ]


def _moment(moment: Moment) -> dict[str, Any]:
    return {
        "offset": moment.offset,
        "state_offset": moment.state_offset,
        "timestamp_ms": moment.timestamp_ms,
    }


def _place(moment: Moment) -> str:
    when = "" if moment.timestamp_ms is None else f", {time_text(moment.timestamp_ms)}"
    return f"offset {moment.offset}{when}"


def _table(name: str, frame: Frame, total: int, *, has_notes: bool) -> AnswerTable:
    keys = [key for key in BY_NAME[name].keys if key not in ("source", "topic_id")]

    def cells(row: Row) -> tuple[object, ...]:
        return (
            _MARKS[row["change"]],
            _WHICH[name](row),
            _what(name, row),
            *author_cells(row, has_notes=has_notes),
            time_text(row["timestamp_ms"]),
            number(row["offset"]),
        )

    return AnswerTable(
        name=name,
        title="ACLs" if name == "acls" else name,
        frame=frame.orderBy(*keys, "offset"),
        columns=("", "which", "~what", *author_columns(has_notes=has_notes), "at", "#offset"),
        spare=("#offset", "written by", "at"),
        folding="which",
        stacking=True,
        cells=cells,
        total=total,
    )


def _what(name: str, row: Row) -> str:
    """What a person wants to know of it: the fields that differ, or of something new what it is."""
    change, before, after = row["change"], row["before"], row["after"]
    if change == "changed":
        fields = [field for field in row["fields"] if field not in _UNTOLD] or row["fields"]
        return ", ".join(_field(field, before[field], after[field]) for field in fields)
    if change in _WORDS:
        steps = f" ({row['steps']:,} records)" if row["steps"] > 1 else ""
        return _WORDS[change] + steps
    state = after if change == "added" else before
    known = (f"{_SHORT.get(field, field)} {_value(state[field])}" for field in _TOLD_OF_NEW.get(name, ()))
    return ", ".join(known)


def _field(name: str, before: object, after: object) -> str:
    if isinstance(before, bool) and isinstance(after, bool):
        word = _SHORT.get(name, name)
        return word if after else f"no longer {word}"
    return f"{_SHORT.get(name, name.replace('_', ' '))} {_value(before)} → {_value(after)}"


def _value(value: object) -> str:
    if value is None or value == [] or value == -1:
        return "none"
    if isinstance(value, list):
        return " ".join(_value(each) for each in value)
    if is_row(value):
        return ":".join(str(each) for each in value if each is not None)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) or '""'


_WHICH: dict[str, Callable[[Row], str]] = {
    "voters": lambda _: "voters",
    "features": lambda row: str(row["feature"]),
    "brokers": lambda row: f"broker {row['broker_id']}",
    "topics": lambda row: str(row["topic_name"] or row["topic_id"]),
    "partitions": lambda row: f"{row['topic_name'] or row['topic_id']}-{row['partition_id']}",
    "configs": lambda row: f"{resource(row['resource_type'], row['resource_name'])} {row['name']}",
    "acls": lambda row: _acl(row["after"] or row["before"], row["acl_id"]),
}


def _acl(entry: Row | None, acl_id: str) -> str:
    if entry is None:
        return acl_id
    return f"{entry['principal']} {entry['permission']} {entry['operation']} {acl_resource(entry)}"
