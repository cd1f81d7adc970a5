"""The facts of a report against figures counted by a plain loop over an independent replay."""

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.spark.conftest import Audited
from tests.support.spark.plain_changes import audit_notes, leader_changes
from tests.support.spark.plain_events import log_events, segment_events
from tests.support.spark.plain_replay import replay
from tests.support.spark.plain_tables import brokers, quorum_epochs

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.slow]

RANDOM, TRIMMED = "random", "random-trimmed"
LOGS = (RANDOM, pytest.param(TRIMMED, marks=pytest.mark.slow))
Row = dict[str, Any]
Gathered = Callable[[str], Any]


@pytest.fixture(scope="module")
def tables(audited: Audited) -> Iterator[Any]:
    from kquorum.spark_replay.engine.duckdb_tables import open_in_duckdb

    with open_in_duckdb(audited.out) as tables:
        yield tables


@pytest.fixture(scope="module")
def gathered(tables: Any) -> Gathered:
    """The report of a whole log by its source; each is asked for by several tests."""
    from kquorum.spark_replay.report.gather import gather

    return functools.cache(lambda source: gather(tables, source))


def levels(intervals: list[tuple[int, int]], window: Any) -> tuple[list[int], int]:
    """How many hold at most in each bucket, tried at each moment at which one begins; and how long they hold in all."""
    peaks = [0] * window.buckets
    for bucket in range(window.buckets):
        start, end = window.bucket_start(bucket), window.bucket_start(bucket + 1)
        moments = {max(start, window.start_ms), *(begin for begin, _ in intervals if start <= begin < end)}
        peaks[bucket] = max(sum(begin <= at < stop for begin, stop in intervals) for at in moments)
    return peaks, sum(min(stop, window.end_ms) - begin for begin, stop in intervals)


def within(rows: list[Row], window: Any) -> Iterator[tuple[Row, int, int]]:
    """The rows that hold for some time in the window, cut to its start; what has no end reaches beyond it."""
    for row in rows:
        end = window.end_ms + 1 if row["valid_to_ms"] is None else row["valid_to_ms"]
        if row["valid_to_ms"] is not None and row["valid_to_ms"] <= row["valid_from_ms"]:
            continue
        if row["valid_from_ms"] <= window.end_ms and end > window.start_ms:
            yield row, max(row["valid_from_ms"], window.start_ms), end


@pytest.mark.parametrize("source", LOGS)
@pytest.mark.parametrize("kind", ["leaderless", "under_replicated", "reassigning"])
def test_partitions_over_time(audited: Audited, gathered: Gathered, source: str, kind: str) -> None:
    facts = gathered(source)
    tests = {
        "leaderless": lambda row: row["leader"] < 0,
        "under_replicated": lambda row: len(row["isr"]) < len(row["replicas"]),
        "reassigning": lambda row: bool(row["adding_replicas"] or row["removing_replicas"]),
    }
    history = [row for row in replay(audited.root / source).history if tests[kind](row)]
    intervals = [(start, end) for _, start, end in within(history, facts.window)]
    peaks, summed_ms = levels(intervals, facts.window)
    series = getattr(facts, kind)
    assert max(peaks) > 0
    assert list(series.peaks) == peaks
    assert series.summed_ms == summed_ms


@pytest.mark.parametrize("source", LOGS)
def test_times_without_a_leader(audited: Audited, gathered: Gathered, source: str) -> None:
    facts = gathered(source)
    window = facts.window
    history = [row for row in replay(audited.root / source).history if row["leader"] < 0]
    history.sort(key=lambda row: (row["topic_id"], row["partition_id"], row["valid_from_offset"]))
    joined: list[Row] = []
    for row in history:
        key = (row["topic_id"], row["partition_id"])
        if joined and joined[-1]["goes_on"] == (*key, row["valid_from_offset"]):
            joined[-1]["valid_to_ms"] = row["valid_to_ms"]
        else:
            joined.append({**row, "offset": row["valid_from_offset"]})
        joined[-1]["goes_on"] = (*key, row["valid_to_offset"])
    merged = [
        {"start": start, "end": end, "offset": row["offset"]} for row, start, end in within(joined, window)
    ]
    assert facts.leaderless_total == len(merged) > 20
    longest = sorted((min(each["end"], facts.window.end_ms) - each["start"] for each in merged), reverse=True)
    assert [each.duration_ms for each in facts.leaderless_longest] == longest[:25]
    assert facts.leaderless.summed_ms == sum(longest)
    listed = sum(outage.partitions for outage in facts.outages)
    assert facts.outages_total >= len(facts.outages) > 0
    assert listed <= len(merged)
    worst = max(facts.outages, key=lambda each: each.partition_ms)
    began = [each for each in merged if each["offset"] == worst.start_offset]
    assert [each["start"] for each in began] == [worst.start_ms] * len(began) != []


@pytest.mark.parametrize("source", LOGS)
def test_leader_changes(audited: Audited, gathered: Gathered, source: str) -> None:
    facts = gathered(source)
    rows = leader_changes(audited.root / source)
    window = facts.window
    assert dict(facts.leader_changes.by_cause) == Counter(row["cause"] for row in rows)
    assert dict(facts.leader_changes.by_bucket) == Counter(
        ((row["timestamp_ms"] - window.origin_ms) // window.bucket_ms, row["cause"]) for row in rows
    )
    assert facts.leader_changes.unclean_total == sum(row["unclean"] for row in rows)
    topics = Counter(row["topic_name"] for row in rows)
    assert facts.leader_changes.topics == len(topics)
    by_count = sorted(topics.items(), key=lambda item: (-item[1], item[0]))
    assert list(facts.leader_changes.by_topic) == by_count[:10]
    lost = Counter(row["old_leader"] for row in rows)
    assert {each.broker_id: each.lost_leaderships for each in facts.brokers} == {
        each.broker_id: lost[each.broker_id] for each in facts.brokers
    }


@pytest.mark.parametrize("source", LOGS)
def test_brokers(audited: Audited, gathered: Gathered, source: str) -> None:
    facts = gathered(source)
    window = facts.window
    rows = [
        (row, start, min(end, window.end_ms))
        for row, start, end in within(brokers(log_events(audited.root / source)).intervals.rows, window)
    ]
    assert {each.broker_id for each in facts.brokers} == {row["broker_id"] for row, _, _ in rows}
    for broker in facts.brokers:
        own = [(row, start, end) for row, start, end in rows if row["broker_id"] == broker.broker_id]
        serving = [
            (start, end) for row, start, end in own if not row["fenced"] and not row["in_controlled_shutdown"]
        ]
        assert broker.unfenced_ms == sum(end - start for start, end in serving)
        assert broker.unfenced_ms + broker.out_ms == sum(end - start for _, start, end in own)
        assert broker.registrations == sum(
            row["change"] == "registered" and row["valid_from_ms"] >= window.start_ms for row, _, _ in own
        )
        assert broker.fencings == sum(
            row["change"] == "fenced" and not row["in_controlled_shutdown"] for row, _, _ in own
        )
        assert (
            sum(span.end_ms - span.start_ms for span in broker.spans if span.state == "unfenced")
            == broker.unfenced_ms
        )


@pytest.mark.parametrize("source", LOGS)
def test_the_log_and_its_epochs(audited: Audited, gathered: Gathered, source: str) -> None:
    facts = gathered(source)
    epochs = quorum_epochs(audited.root / source)
    assert [
        (each.epoch, each.leader_id, each.start_ms, each.end_ms, each.records) for each in facts.epochs
    ] == [
        (row["epoch"], row["leader_id"], row["start_ms"], row["last_record_ms"], row["records"])
        for row in epochs
    ]
    assert facts.epochs_total == sum(facts.elections_by_bucket.values()) == len(epochs) > 3
    events = list(segment_events(audited.root / source))
    assert facts.log.records == len(events)
    assert (facts.log.start_offset, facts.log.end_offset) == (events[0].offset, events[-1].offset + 1)
    assert facts.log.types["PartitionChangeRecord"] == sum(
        each.kind == "PartitionChangeRecord" for each in events
    )


def test_large_changes_are_those_with_most_records_and_name_who_asked(
    audited: Audited, gathered: Gathered
) -> None:
    changes = gathered(RANDOM).large_changes
    asked = [change for change in changes if change.principal is not None]
    decided = [change for change in changes if change.principal is None]
    assert (len(asked), len(decided)) == (12, 12)
    for listed in (asked, decided):
        sizes = [change.records for change in listed]
        assert sizes == sorted(sizes, reverse=True)
    notes = [row for row in audit_notes(audited.root / RANDOM) if row["committed"]]
    assert [change.records for change in asked] == sorted(
        (row["covered_records"] for row in notes), reverse=True
    )[:12]
    by_offset = {each.offset: each for each in segment_events(audited.root / RANDOM)}
    for change in changes:
        kinds = Counter(by_offset[at].kind for at in range(change.first_offset, change.last_offset + 1))
        assert dict(change.types) == kinds
        topics = {
            getattr(by_offset[at].record, "topic_id", None)
            for at in range(change.first_offset, change.last_offset + 1)
        }
        assert change.topics == len(topics - {None})
    assert {change.principal for change in asked} == {"User:alice"}


@pytest.mark.slow
def test_a_part_of_the_log_is_counted_alone(tables: Any, audited: Audited, gathered: Gathered) -> None:
    from kquorum.spark_replay.report.gather import gather

    whole = gathered(RANDOM)
    since, until = whole.window.start_ms + 300_000, whole.window.start_ms + 600_000
    part = gather(tables, RANDOM, since_ms=since, until_ms=until)
    rows = [row for row in leader_changes(audited.root / RANDOM) if since <= row["timestamp_ms"] <= until]
    assert part.leader_changes.total == len(rows) > 0
    assert since <= part.window.start_ms <= part.window.end_ms <= until
    history = [row for row in replay(audited.root / RANDOM).history if row["leader"] < 0]
    peaks, summed_ms = levels([(a, b) for _, a, b in within(history, part.window)], part.window)
    assert (list(part.leaderless.peaks), part.leaderless.summed_ms) == (peaks, summed_ms)


@pytest.mark.slow
def test_idle_gaps_are_reported_only_of_a_log_with_idle_records(spark: Any, tmp_path: Path) -> None:
    """Between two segments as within one; and not where nothing tells idleness from an outage."""
    from kquorum.spark_replay.audit import build
    from kquorum.spark_replay.audit_folder import open_audit
    from kquorum.spark_replay.report.gather import gather
    from kquorum.wire.metadata_records.features import NoOpRecord
    from kquorum.wire.metadata_records.topics import TopicRecord
    from tests.support.sample_logs import LogBuilder

    def write(name: str, record: Any, first: list[int], second: list[int]) -> None:
        folder = tmp_path / "logs" / name / "__cluster_metadata-0"
        folder.mkdir(parents=True)
        log = LogBuilder()
        for at_ms in first:
            log.records(at_ms, record)
        (folder / f"{0:020d}.log").write_bytes(log.data)
        start, data = log.next_offset, len(log.data)
        log.epoch = 2
        for at_ms in second:
            log.records(at_ms, record)
        (folder / f"{start:020d}.log").write_bytes(log.data[data:])

    first, second = [0, 500, 1000, 61_000, 61_500, 62_000], [100_000, 100_500, 101_000]
    write("idle", NoOpRecord(), first, second)
    write("busy", TopicRecord(name="t", topic_id=UUID(int=5)), first, second)
    build(spark, tmp_path / "logs", tmp_path / "out")
    tables = open_audit(spark, tmp_path / "out")
    found = gather(tables, "idle").idle_gaps
    assert found.longer_than_ms == 5000
    assert [(each.start_ms, each.end_ms, each.epoch_before, each.epoch_after) for each in found.longest] == [
        (1000, 61_000, 1, 1),
        (62_000, 100_000, 1, 2),
    ]
    assert (found.total, found.total_ms) == (2, 98_000)
    assert gather(tables, "busy").idle_gaps.longer_than_ms is None
