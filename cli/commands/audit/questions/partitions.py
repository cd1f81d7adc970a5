"""The work of `audit partitions`: what the logs of partitions tell, alone and with the metadata log."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kquorum.cli.commands.audit.answers import Answer, AnswerTable, duration, number
from kquorum.cli.commands.audit.query import AskedTables, chosen_source
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.spark_replay.data.questions import (
    differing_replicas,
    hanging_transactions,
    lag_over_time,
    on_one_replica,
    written_by,
)
from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.frame import Frame, Row
from kquorum.spark_replay.questions.moments import time_text

NO_TABLES: Final = "this audit holds no partitions: `kquorum audit data LOGDIR... --out AUDIT` adds them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """`question` is one of `QUESTIONS`; `source` names the metadata log, if the question needs one."""

    question: str
    topic: str | None
    partition: int | None
    group: str | None
    source: str | None


def answer_partitions(tables: AskedTables, request: Partitions) -> Answer:
    """Raises CliError."""
    if "data_batches" not in tables.manifest.rows:
        raise CliError(NO_TABLES, status=ExitStatus.USAGE)
    if (request.group is None) == (request.question == "lag"):
        raise CliError(
            "--group names the group of the question lag, and of no other", status=ExitStatus.USAGE
        )
    frame, table = QUESTIONS[request.question](tables, request)
    if request.topic is not None:
        frame = frame.where(F.col("topic_name") == request.topic)
    if request.partition is not None:
        frame = frame.where(F.col("partition_id") == request.partition)
    ordered = frame.orderBy(*_order(request.question))
    return Answer(
        head={"question": request.question},
        tables=[AnswerTable(frame=ordered, **table)],  # type: ignore[arg-type]
    )


def _order(question: str) -> tuple[str, ...]:
    place = ("topic_name", "partition_id")
    return (*place, "commit_ms", "committed_offset") if question == "lag" else (*place, "first_offset")


_Made = tuple[Frame, dict[str, object]]


def _hanging(tables: AskedTables, request: Partitions) -> _Made:  # noqa: ARG001
    def cells(row: Row) -> tuple[object, ...]:
        verdict = {None: "not known", True: "hangs", False: "under way"}[row["is_hanging"]]
        return (
            _which(row),
            number(row["producer_id"]),
            row["transactional_id"] or "",
            number(row["first_offset"]),
            duration(row["duration_ms"]),
            row["state"] or "",
            verdict,
        )

    return hanging_transactions(tables), {
        "name": "transactions",
        "title": "transactions without an end",
        "columns": ("partition", "#producer", "id", "#offset", "#open for", "coordinator says", "verdict"),
        "cells": cells,
        "empty": "every transaction has ended",
    }


def _replicas(tables: AskedTables, request: Partitions) -> _Made:  # noqa: ARG001
    def cells(row: Row) -> tuple[object, ...]:
        held = ", ".join(
            f"{each['source']} to {each['last_offset']} ({each['crc']:08x})" for each in row["held"]
        )
        return (
            _which(row),
            number(row["first_offset"]),
            row["batches"],
            f"{row['from_offset']} to {row['to_offset'] - 1}",
            held,
        )

    return differing_replicas(tables), {
        "name": "differences",
        "title": "replicas that differ below the high watermark",
        "columns": (
            "partition",
            "#first at\noffset",
            "#batches",
            "compared",
            "~held there: last offset and CRC",
        ),
        "cells": cells,
        "empty": "below their high watermarks all replicas hold the same batches",
    }


def _lag(tables: AskedTables, request: Partitions) -> _Made:
    assert request.group is not None
    return lag_over_time(tables, request.group), {
        "name": "lag",
        "title": f"lag of {request.group} at each commit",
        "columns": ("partition", "at", "#committed", "#log end", "#lag"),
        "cells": lambda row: (
            _which(row),
            _time(row["commit_ms"]),
            number(row["committed_offset"]),
            number(row["end_offset"]),
            number(row["lag"]),
        ),
        "empty": f"the group {request.group} committed nothing in these logs",
    }


def _leaders(tables: AskedTables, request: Partitions) -> _Made:
    sources = tables.manifest.sources
    metadata = chosen_source(tables.manifest, request.source) if sources else None
    return written_by(tables, metadata), {
        "name": "leaders",
        "title": "who led when batches were written",
        "columns": ("partition", "#leader epoch", "#leader", "offsets", "from", "to", "#batches"),
        "cells": lambda row: (
            _which(row),
            number(row["leader_epoch"]),
            number(row["leader"]),
            f"{row['first_offset']} to {row['last_offset']}",
            _time(row["first_ms"]),
            _time(row["last_ms"]),
            row["batches"],
        ),
        "empty": "no batches",
    }


def _single(tables: AskedTables, request: Partitions) -> _Made:
    return on_one_replica(tables, chosen_source(tables.manifest, request.source)), {
        "name": "ranges",
        "title": "written while the leader alone was in sync",
        "columns": ("partition", "offsets", "#batches", "#leader", "#replicas", "alone since"),
        "cells": lambda row: (
            _which(row),
            f"{row['first_offset']} to {row['last_offset']}",
            row["batches"],
            number(row["leader"]),
            number(row["replicas"]),
            _time(row["since_ms"]),
        ),
        "empty": "no batch was written while a leader alone was in sync",
    }


def _which(row: Row) -> str:
    return f"{row['topic_name']}-{row['partition_id']}"


def _time(time_ms: int | None) -> str:
    return "" if time_ms is None else time_text(time_ms)


QUESTIONS: Final[dict[str, Callable[[AskedTables, Partitions], _Made]]] = {
    "hanging": _hanging,
    "replicas": _replicas,
    "lag": _lag,
    "leaders": _leaders,
    "single-replica": _single,
}
