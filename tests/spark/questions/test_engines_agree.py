"""DuckDB and Spark give the same rows for every question, on logs of any history."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kquorum.cli.commands.audit.answers import plain
from kquorum.spark_replay.audit import build
from kquorum.spark_replay.audit_folder import AuditTables, open_audit
from kquorum.spark_replay.engine.duckdb_tables import DuckTables, open_in_duckdb
from kquorum.spark_replay.engine.frame import Frame, Tables
from kquorum.spark_replay.questions.as_of import as_of
from kquorum.spark_replay.questions.broker_timeline import broker_timeline
from kquorum.spark_replay.questions.churn import Span, churn
from kquorum.spark_replay.questions.diff import diff, sums_of_diff
from kquorum.spark_replay.questions.entities import Narrowing
from kquorum.spark_replay.questions.idle_gaps import idle_gap_notes, idle_gaps
from kquorum.spark_replay.questions.log_gaps import log_gaps
from kquorum.spark_replay.questions.moments import (
    Moment,
    NoSuchMoment,
    first_moment,
    last_moment,
    moment_at_offset,
    moment_at_time,
)
from kquorum.spark_replay.questions.timeline import requests, topic_timeline
from kquorum.spark_replay.questions.unavailable import alike, unavailable
from kquorum.spark_replay.report.gather import gather
from tests.spark.conftest import Audited
from tests.support.spark.random_history import write_random_history, write_random_trimmed_history

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture
def in_spark(spark: Any, audited: Audited) -> AuditTables:
    return open_audit(spark, audited.out)


@pytest.fixture
def in_duckdb(audited: Audited) -> Iterator[DuckTables]:
    with open_in_duckdb(audited.out) as tables:
        yield tables


def rows_of(frame: Frame) -> list[str]:
    """In an order of their own, as questions leave theirs to who shows them."""
    return sorted(repr(plain(row)) for row in frame.readable().collect())


def moment(tables: Tables, source: str, place: int | None, *, is_time: bool) -> Moment | str:
    try:
        if place is None:
            return last_moment(tables, source)
        return (moment_at_time if is_time else moment_at_offset)(tables, source, place)
    except NoSuchMoment as error:
        return str(error)


def answers(tables: Tables, source: str, narrowing: Narrowing, span: Span, offset: int) -> dict[str, Any]:
    """What the questions say of one log, each under its name."""
    known = tables.source(source)
    found: dict[str, Any] = {"gaps": log_gaps(tables, source), "notes": idle_gap_notes(tables, source)}
    end = last_moment(tables, source)
    moments = {
        "end": end,
        "start": first_moment(tables, source),
        "at": moment(tables, source, offset, is_time=False),
        "time": moment(tables, source, span.until_ms, is_time=True),
    }
    found["moments"] = moments
    at = moments["at"] if isinstance(moments["at"], Moment) else end
    for name, frame in as_of(tables, at, narrowing).items():
        found[f"as_of {name}"] = rows_of(frame)
    if known.end_offset is not None:
        differing = diff(tables, at, end, narrowing)
        for name, frame in differing.items():
            found[f"diff {name}"] = rows_of(frame)
        found["diff sums"] = rows_of(sums_of_diff(differing))
    if narrowing.topic is not None:
        events = topic_timeline(tables, source, narrowing.topic, narrowing.partition)
        found["topic timeline"] = rows_of(events)
        found["topic requests"] = rows_of(requests(events))
    if narrowing.broker is not None:
        events = broker_timeline(tables, source, narrowing.broker)
        found["broker timeline"] = rows_of(events)
        found["broker requests"] = rows_of(requests(events))
    intervals = unavailable(tables, source, end.timestamp_ms)
    found["unavailable"] = rows_of(intervals)
    found["unavailable alike"] = rows_of(alike(intervals))
    found["idle gaps"] = rows_of(idle_gaps(tables, source, min_ms=0))
    for name, frame in churn(tables, source, span, unit="hour").items():
        found[f"churn {name}"] = rows_of(frame)
    return found


def check_alike(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, rows in one.items():
        assert rows == other[name], name


def test_both_engines_answer_alike(in_spark: AuditTables, in_duckdb: DuckTables) -> None:
    narrowing = Narrowing(broker=1)
    asked = ("questions", narrowing, Span(), 12)
    check_alike(answers(in_duckdb, *asked), answers(in_spark, *asked))


@pytest.mark.slow
@pytest.mark.parametrize("source", ["random", "questions", "gap"])
def test_both_engines_gather_the_same_report(
    source: str, in_spark: AuditTables, in_duckdb: DuckTables
) -> None:
    assert gather(in_duckdb, source) == gather(in_spark, source)


@pytest.fixture(scope="module")
def random_audit(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of six random clusters, half of them without their beginning."""
    folder = tmp_path_factory.mktemp("random-logs")
    for seed in range(6):
        write = write_random_history if seed % 2 else write_random_trimmed_history
        write(folder / "logs" / f"log-{seed}", seed=seed, operations=40 + 10 * seed)
    build(spark, folder / "logs", folder / "tables")
    return folder / "tables"


@pytest.mark.slow
def test_both_engines_answer_alike_on_random_logs(spark: Any, random_audit: Path) -> None:
    in_spark = open_audit(spark, random_audit)
    topics = [None, *(row["topic_name"] for row in in_spark.frame("topics").collect())]
    ends = [each.end_offset or 1 for each in in_spark.manifest.sources]
    stamps = [
        row["timestamp_ms"] for row in in_spark.frame("batches").select("timestamp_ms").limit(200).collect()
    ]
    names = [each.source for each in in_spark.manifest.sources]

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        source=st.sampled_from(names),
        topic=st.sampled_from(topics),
        partition=st.none() | st.integers(0, 3),
        broker=st.none() | st.integers(0, 4),
        offset=st.integers(0, max(ends)),
        times=st.tuples(st.none() | st.sampled_from(stamps), st.none() | st.sampled_from(stamps)),
    )
    def check(
        source: str,
        topic: str | None,
        partition: int | None,
        broker: int | None,
        offset: int,
        times: tuple[int | None, int | None],
    ) -> None:
        narrowing = Narrowing(topic=topic, partition=partition if topic else None, broker=broker)
        asked = (source, narrowing, Span(since_ms=times[0], until_ms=times[1]), offset)
        with open_in_duckdb(random_audit) as in_duckdb:
            check_alike(answers(in_duckdb, *asked), answers(in_spark, *asked))

    check()
