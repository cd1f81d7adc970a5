"""What the questions of `audit` have in common: the moments, the tables, the log, and what is asked about."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from kquorum.cli.commands.audit.answers import Answer, Progress
from kquorum.cli.commands.audit.inputs import files_to_audit, manifest_of
from kquorum.cli.commands.audit.options import LOCAL, Engine
from kquorum.cli.commands.log.dump_filters import parse_time
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.spark_replay.audit_manifest import AuditManifest, NoAudit, is_audit
from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.frame import Frame, Row, Tables
from kquorum.spark_replay.questions.entities import is_topic
from kquorum.spark_replay.questions.log_gaps import limits, log_gaps, unknown_before
from kquorum.spark_replay.questions.moments import (
    Moment,
    NoSuchMoment,
    first_moment,
    last_moment,
    moment_at_offset,
    moment_at_time,
    time_text,
)
from kquorum.wire.near_names import near_names
from kquorum.wire.safe_text import safe_text

# As milliseconds this is March 1973, as an offset decades of a busy log.
LEAST_MILLISECONDS = 100_000_000_000
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Asked:
    """An offset, a time, or with neither the `end` or the start of the log."""

    offset: int | None = None
    time_ms: int | None = None
    is_start: bool = False


def asked_by_options(offset: int | None, time: str | None) -> Asked:
    """Of `--offset` and `--time`: one of them, or neither for the end of the log. Raises CliError."""
    if offset is not None and time is not None:
        raise CliError("--offset and --time both say when: choose one", status=ExitStatus.USAGE)
    if time is not None:
        return Asked(time_ms=time_of("--time", time))
    return Asked(offset=_within("--offset", offset))


def asked_by_word(name: str, text: str) -> Asked:
    """Of an argument called `name`: a number below 100,000,000,000 is an offset. Raises CliError."""
    if text in ("start", "end"):
        return Asked(is_start=text == "start")
    if _is_number(text) and abs(int(text)) < LEAST_MILLISECONDS:
        return Asked(offset=int(text))
    return Asked(time_ms=time_of(name, text))


def time_of(option: str, text: str) -> int:
    """Milliseconds since 1970 of ISO 8601 (UTC unless it says otherwise) or of such a number. Raises CliError."""
    if not text.isascii() or len(text) > 40:
        raise CliError(
            f"{option}: neither ISO 8601 (2026-01-31T12:00:00Z) nor milliseconds since 1970",
            status=ExitStatus.USAGE,
        )
    time_ms = _within(option, parse_time(option, text))
    assert time_ms is not None
    return time_ms


def maybe_time_of(option: str, text: str | None) -> int | None:
    return None if text is None else time_of(option, text)


def moment_of(tables: Tables, source: str, asked: Asked) -> Moment:
    """The moment in the log. Raises CliError for one that the log does not reach."""
    try:
        if asked.offset is not None:
            return moment_at_offset(tables, source, asked.offset)
        if asked.time_ms is not None:
            return moment_at_time(tables, source, asked.time_ms)
    except NoSuchMoment as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from None
    return first_moment(tables, source) if asked.is_start else last_moment(tables, source)


def _is_number(text: str) -> bool:
    return text.isascii() and len(text) <= 20 and text.removeprefix("-").isdecimal()


def _within(option: str, value: int | None) -> int | None:
    if value is not None and abs(value) > _MOST:
        raise CliError(f"{option} {value}: no log goes that far", status=ExitStatus.USAGE)
    return value


class AskedTables(Tables, Protocol):
    """Tables, and where to say what is being done; an empty step takes that line from the terminal."""

    @property
    def progress(self) -> Progress: ...

    def keep(self, frame: Frame) -> Frame:
        """The same rows, computed once for all that is asked of these tables."""


@contextmanager
def opened_for_questions(
    path: Path, *, source: str | None, engine: Engine | None, master: str
) -> Iterator[AskedTables]:
    """The tables of the audit in the folder `path`, on the engine that was asked for; of a log at `path` the tables are
    made, and are gone with the context.

    Raises CliError for whatever a user can put right. Progress goes to standard error.
    """
    is_built = is_audit(path)
    if source is not None or is_built:
        check_source(path, source, is_chosen=False)
    if _engine(path, engine, master) is Engine.SPARK:
        from kquorum.cli.commands.audit.spark_tables import opened

        with opened(path, master=master) as tables:
            yield tables
    elif is_built:
        with _in_duckdb(path, lambda step: None) as tables:  # noqa: ARG005
            yield tables
    else:
        from kquorum.cli.commands.audit.spark_tables import built

        with built(path, master=master) as (folder, progress):
            progress("asking")
            with _in_duckdb(folder, progress) as tables:
                yield tables


def check_is_audit(path: Path) -> None:
    """Raises CliError for a folder that is no finished audit."""
    if not is_audit(path):
        raise CliError(f"{path} is no finished audit: there is no audit.json in it", status=ExitStatus.USAGE)


def _engine(path: Path, engine: Engine | None, master: str) -> Engine:
    """Raises CliError for DuckDB where it cannot read the tables."""
    is_delta = is_audit(path) and manifest_of(path).table_format != "parquet"
    if engine is Engine.DUCKDB and is_delta:
        raise CliError(
            f"{path} has Delta tables, which --engine spark reads; --engine duckdb reads those of "
            "`audit build --format parquet`",
            status=ExitStatus.USAGE,
        )
    if engine is Engine.DUCKDB and master != LOCAL:
        raise CliError("--master is of --engine spark; leave one of them out", status=ExitStatus.USAGE)
    return engine or (Engine.SPARK if is_delta or master != LOCAL else Engine.DUCKDB)


@contextmanager
def _in_duckdb(folder: Path, progress: Progress) -> Iterator[AskedTables]:
    import duckdb

    from kquorum.spark_replay.engine.duckdb_tables import DuckTables, open_in_duckdb

    try:
        with open_in_duckdb(folder) as tables:
            asked: DuckTables = tables
            asked.progress = progress
            yield asked
    except NoAudit as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from None
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        reason = safe_text(str(error).strip().splitlines()[0])
        raise CliError(
            f"the tables of {folder} cannot be read: {reason}; build the audit again",
            status=ExitStatus.FAILED,
        ) from None


def chosen_source(manifest: AuditManifest, name: str | None) -> str:
    """The log that `--source` names. Without the option: the only one, or of the voters of one cluster the log that
    reaches farthest. Raises CliError."""
    names = [each.source for each in manifest.sources]
    if not names:
        raise CliError(
            "this audit holds no metadata log, only partitions: `audit sql` asks about them; `audit build` makes an "
            "audit of a metadata log, which `audit data` then adds the partitions to",
            status=ExitStatus.USAGE,
        )
    if name is not None:
        return named_source(names, name)
    clusters = {each.member.cluster_id for each in manifest.sources}
    if len(names) > 1 and (len(clusters) > 1 or None in clusters):
        raise CliError(
            f"this audit holds {len(names)} logs, which are not known to be of one cluster: choose one by --source "
            f"({', '.join(names)})",
            status=ExitStatus.USAGE,
        )
    # All voters' logs agree as far as they reach, so the longest answers most; the name decides between equals, so that
    # the same question gets the same log.
    return max(manifest.sources, key=lambda each: (each.end_offset or -1, each.source)).source


def named_source(names: Sequence[str], name: str) -> str:
    """That name, or the only one that begins with it or has it as one of its folders. Raises CliError."""
    if name in names:
        return name
    found = [each for each in names if name in each.split("/")] or [
        each for each in names if each.startswith(name)
    ]
    if name and len(found) == 1:
        return found[0]
    what = (
        f"{name} names {len(found)} logs of this audit" if name and found else f"no log {name} in this audit"
    )
    raise CliError(f"{what}; it has {', '.join(names)}", status=ExitStatus.USAGE)


def check_source(path: Path, name: str | None, *, is_chosen: bool = True) -> None:
    """Before Spark is started. Raises CliError for a source that is not there, or must be chosen and is not."""
    if is_audit(path):
        manifest = manifest_of(path)
        if is_chosen or name is not None:
            chosen_source(manifest, name)
    elif name is not None:
        named_source(sorted({file.source for file in files_to_audit(path)}), name)


_MOST_NAMES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """The tables and the log that a question is about."""

    tables: AskedTables
    source: str


@contextmanager
def asking(path: Path, *, source: str | None, engine: Engine | None, master: str) -> Iterator[AuditQuery]:
    """Raises CliError."""
    check_source(path, source)
    with opened_for_questions(path, source=source, engine=engine, master=master) as tables:
        yield AuditQuery(tables=tables, source=chosen_source(tables.manifest, source))


def with_limits(question: AuditQuery, answer: Answer) -> Answer:
    """The answer with what it lacks because the log does: said first, and once."""
    notes = (*limits(question.tables, question.source), *answer.notes)
    return replace(answer, notes=tuple(dict.fromkeys(notes)))


def check_partition(topic: str | None, partition: int | None) -> None:
    if partition is not None and topic is None:
        raise CliError(
            "--partition needs --topic: partitions are numbered within a topic", status=ExitStatus.USAGE
        )


def lives_of_topic(question: AuditQuery, name: str) -> list[str]:
    """When topics of this name were there, in words. Raises CliError for a name that the log never had."""
    topics = question.tables.frame("topics").where(F.col("source") == question.source)
    rows = topics.where(is_topic(name)).orderBy("valid_from_offset").limit(10).collect()
    if rows:
        return [_life(row) for row in rows]
    unknown = _unknown(question)
    if unknown and not _partitions_of(question, name).isEmpty():
        return [f"not known: {unknown}"]
    known = [row[0] for row in topics.select("topic_name").distinct().limit(_MOST_NAMES).collect() if row[0]]
    raise CliError(no_such_topic(question.source, name, known, unknown), status=ExitStatus.USAGE)


def no_such_topic(source: str, name: str, known: list[str], unknown: str) -> str:
    """`unknown`: why it may have been there all the same."""
    if not unknown:
        return f"{source} never had a topic {safe_text(name)}{_nearest(name, known)}"
    hint = _nearest(name, known) if known else ""
    return f"{source}: whether there was a topic {safe_text(name)} is not known: {unknown}{hint}"


def _unknown(question: AuditQuery) -> str:
    tables, source = question.tables, question.source
    return unknown_before(tables.source(source), log_gaps(tables, source)[0])


def _partitions_of(question: AuditQuery, topic: str) -> Frame:
    history = question.tables.frame("partition_history")
    return history.where((F.col("source") == question.source) & is_topic(topic))


def check_partition_known(question: AuditQuery, topic: str, partition: int) -> None:
    """Raises CliError for a partition that no topic of this name ever had."""
    history = _partitions_of(question, topic)
    row = history.agg(
        F.max("partition_id").alias("last"), F.count_if(F.col("partition_id") == partition).alias("rows")
    ).collect()[0]
    if not row["rows"]:
        held = "no partitions at all" if row["last"] is None else f"partitions 0 to {row['last']}"
        unknown = _unknown(question)
        never = (
            f"whether topic {safe_text(topic)} had a partition {partition} is not known: {unknown}"
            if unknown
            else f"topic {safe_text(topic)} never had a partition {partition}"
        )
        raise CliError(f"{never}; it had {held}", status=ExitStatus.USAGE)


def check_broker_known(question: AuditQuery, broker: int) -> None:
    """Raises CliError for a broker that never registered."""
    brokers = question.tables.frame("brokers").where(F.col("source") == question.source)
    known = sorted(row[0] for row in brokers.select("broker_id").limit(_MOST_NAMES).collect())
    if broker not in known:
        named = ", ".join(map(str, known[:30])) or "none"
        unknown = _unknown(question)
        never = (
            f"whether broker {broker} registered is not known: {unknown}"
            if unknown
            else f"no broker {broker} ever registered"
        )
        raise CliError(f"{question.source}: {never}; those that did: {named}", status=ExitStatus.USAGE)


def _life(row: Row) -> str:
    begun = f"offset {row['valid_from_offset']}, {time_text(row['valid_from_ms'])}"
    begun = f"since before {begun}" if row["from_snapshot"] else f"from {begun}"
    if row["valid_to_offset"] is None:
        return begun
    return f"{begun}, to its removal at offset {row['valid_to_offset']}, {time_text(row['valid_to_ms'] or 0)}"


def _nearest(name: str, known: list[str]) -> str:
    if not known:
        return "; it has no topics"
    near = near_names(name, known)
    if near:
        return f"; did you mean {' or '.join(map(safe_text, near))}?"
    shown = ", ".join(map(safe_text, sorted(known)[:10]))
    return f"; it had {shown}" + (f" and {len(known) - 10:,} more" if len(known) > 10 else "")
