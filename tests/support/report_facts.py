"""Facts of a report made by hand, for tests of its page."""

from dataclasses import replace
from typing import Any

from kquorum.spark_replay.report.facts import (
    BrokerFacts,
    BrokerSpan,
    Checks,
    ClusterState,
    DamagedPlace,
    Epoch,
    Finding,
    IdleGap,
    IdleGaps,
    Interval,
    LargeChange,
    LeaderChanges,
    LogFacts,
    Outage,
    ReportFacts,
    Series,
    UncleanElection,
)
from kquorum.spark_replay.report.times import window_of

START, END = 1_773_100_800_000, 1_773_108_000_000
HOSTILE = "a\"b'><script>alert(1)</script><img src=x onerror=alert(2)></style>&lt;\u202etxt.exe\x1b[31m\x00"


def log_facts(**values: Any) -> LogFacts:
    """A log without anything in it."""
    empty: dict[str, Any] = {
        **dict.fromkeys(("cluster_id", "node_id", "start_offset", "end_offset")),
        **dict.fromkeys(("inputs", "other_sources", "features", "voters", "damage"), ()),
        **dict.fromkeys(("records", "batches", "size_in_bytes", "unread_records", "damage_total"), 0),
        **dict.fromkeys(("feature_changes", "voter_changes"), 0),
        "source": "log",
        "state_from": "offset 0",
        "types": {},
        "types_by_bucket": {},
        "has_notes": False,
    }
    return LogFacts(**{**empty, **values})


def empty_facts() -> ReportFacts:
    return ReportFacts(log=log_facts(), window=None, state=ClusterState(**NOTHING))


NOTHING = {"topics": 0, "partitions": 0, "leaderless": 0, "under_replicated": 0}


def facts_of_one_record() -> ReportFacts:
    """A window of no length."""
    log = log_facts(
        start_offset=0,
        end_offset=1,
        records=1,
        batches=1,
        types={"LeaderChange": 1},
        types_by_bucket={(0, "LeaderChange"): 1},
    )
    epoch = Epoch(
        epoch=1, leader_id=1, start_offset=0, start_ms=START, end_ms=START, records=1, votes="1 of 1"
    )
    return replace(empty_facts(), log=log, window=window_of(START, START), epochs=(epoch,), epochs_total=1)


def full_facts(name: str = "orders") -> ReportFacts:
    """Something in every part of the page; `name` stands wherever a log may put a text."""
    interval = Interval(
        topic=name, partition_id=0, start_ms=START, end_ms=END, is_open=True, start_offset=5, detail=name
    )
    return replace(
        empty_facts(),
        log=_full_log(name),
        window=window_of(START, END),
        state=ClusterState(topics=1, partitions=3, leaderless=1, under_replicated=2),
        idle_gaps=IdleGaps(longer_than_ms=5000, longest=(_idle_gap(),), total=2, total_ms=700_000),
        epochs=(
            Epoch(
                epoch=1,
                leader_id=1,
                start_offset=0,
                start_ms=START,
                end_ms=END - 1,
                records=9,
                votes="2 of 3",
            ),
            Epoch(epoch=2, leader_id=None, start_offset=9, start_ms=END, end_ms=END, records=1, votes=""),
        ),
        epochs_total=2,
        brokers=(_broker(name, 1), _broker(name, 2)),
        brokers_total=2,
        brokers_out=Series(peaks=(0, 1), summed_ms=10),
        leader_changes=_leader_changes(name),
        leaderless=Series(peaks=(0, 1, 3), summed_ms=90_000),
        under_min_isr=Series(peaks=(1,), summed_ms=1),
        under_replicated=Series(peaks=(2,), summed_ms=1),
        reassigning=Series(peaks=(1,), summed_ms=1),
        outages=(_outage(name),),
        outages_total=3,
        leaderless_longest=(interval,),
        leaderless_total=4,
        under_min_isr_longest=(interval,),
        under_min_isr_total=1,
        large_changes=(_change(name), replace(_change(name), principal=None, topic=None, topics=2)),
        checks=_checks(name),
    )


def _full_log(name: str) -> LogFacts:
    damaged = DamagedPlace(file=name, position=7, offset=None, kind="torn", reason=name)
    return log_facts(
        source=name,
        cluster_id=name,
        node_id=1,
        inputs=(name,),
        other_sources=(name,),
        start_offset=0,
        end_offset=10,
        records=10,
        batches=3,
        size_in_bytes=999,
        types={name: 7, "TopicRecord": 2, "NoOpRecord": 1},
        types_by_bucket={(0, name): 7, (0, "TopicRecord"): 2, (1, "NoOpRecord"): 1},
        features=((name, 4),),
        voters=(1, 2),
        damage=(damaged,),
        damage_total=2,
        has_notes=True,
    )


def _idle_gap() -> IdleGap:
    return IdleGap(start_ms=START, end_ms=START + 600_000, offset_after=3, epoch_before=1, epoch_after=2)


def _broker(name: str, broker_id: int) -> BrokerFacts:
    return BrokerFacts(
        broker_id=broker_id,
        rack=name,
        state="fenced",
        registrations=1,
        fencings=2,
        shutdowns=1,
        unfenced_ms=70,
        out_ms=30,
        spans=(
            BrokerSpan(state="unfenced", start_ms=START, end_ms=END - 9),
            BrokerSpan(state="fenced", start_ms=END - 9, end_ms=END),
        ),
    )


def _leader_changes(name: str) -> LeaderChanges:
    unclean = UncleanElection(
        timestamp_ms=START, offset=6, topic=name, partitions=2, new_leader=1, controller_id=None
    )
    return LeaderChanges(
        by_bucket={(0, "fencing"): 3, (1, "unclean"): 2, (1, name): 1},
        by_cause={"fencing": 3, "unclean": 2, name: 1},
        by_topic=((name, 6),),
        topics=9,
        unclean=(unclean,),
        unclean_total=2,
        unclean_groups=1,
    )


def _outage(name: str) -> Outage:
    return Outage(
        start_ms=START,
        end_ms=END,
        start_offset=5,
        partitions=3,
        topics=2,
        example_topic=name,
        still_open=1,
        partition_ms=90_000,
        cause=name,
        old_leaders=(1, 2),
        controller_id=1,
    )


def _change(name: str) -> LargeChange:
    return LargeChange(
        timestamp_ms=START,
        first_offset=3,
        last_offset=9,
        records=7,
        types=(("PartitionRecord", 6), (name, 1)),
        topics=1,
        topic=name,
        quorum_epoch=1,
        controller_id=1,
        **dict.fromkeys(("principal", "client", "api", "reason", "operator_reason"), name),
    )


def _checks(name: str) -> Checks:
    finding = Finding(
        check=name, severity="violation", source=name, subject=name, reason=name, offsets=tuple(range(20))
    )
    return Checks(
        ran=True, passed=(name,), skipped=((name, name),), findings=(finding,), violations=1, notes=2
    )
