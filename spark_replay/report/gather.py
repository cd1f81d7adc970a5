"""Gathers the facts of a report from the tables of an audit, by queries whose answers are bounded in size."""

from collections.abc import Callable

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.frame import Tables
from kquorum.spark_replay.questions.unavailable import NO_LEADER, UNDER_MIN_ISR
from kquorum.spark_replay.report.asked import Asked, series_of, window_in
from kquorum.spark_replay.report.change_facts import large_changes
from kquorum.spark_replay.report.cluster_facts import broker_states, brokers, epochs
from kquorum.spark_replay.report.facts import Checks, ClusterState, ReportFacts
from kquorum.spark_replay.report.log_facts import idle_gaps, log_facts
from kquorum.spark_replay.report.partition_facts import (
    leader_changes,
    longest_intervals,
    outages,
    partition_series,
    shortages,
    state_at_end,
)

NOT_RUN = Checks()
Progress = Callable[[str], None]


def gather(
    tables: Tables,
    source: str,
    *,
    since_ms: int | None = None,
    until_ms: int | None = None,
    checks: Checks = NOT_RUN,
    progress: Progress = lambda step: None,  # noqa: ARG005
) -> ReportFacts:
    """The facts about one log of the audit, between two times (inclusive; milliseconds since the epoch, UTC)."""
    progress("looking at the log")
    window = window_in(tables, source, since_ms, until_ms)
    if window is None:
        log = log_facts(tables, source, None)
        return ReportFacts(log=log, window=None, state=_state_of_snapshot(tables, source), checks=checks)
    asked = Asked(tables, source, window)
    log = log_facts(tables, source, asked)
    found_idle_gaps = idle_gaps(asked, log)
    progress("looking at controllers and brokers")
    found_epochs, epochs_total, elections = epochs(asked)
    changes, lost = leader_changes(asked)
    found_brokers, brokers_total = brokers(asked, lost)
    is_out = {"out": F.col("state") != "unfenced"}
    out = series_of(broker_states(asked), is_out, asked)["out"]
    progress("looking at partitions")
    with shortages(asked).kept() as short:
        series = partition_series(asked, short)
        leaderless, leaderless_total = longest_intervals(short, NO_LEADER)
        under_min_isr, under_min_isr_total = longest_intervals(short, UNDER_MIN_ISR)
        found_outages, outages_total = outages(asked, short)
    progress("looking for the largest changes")
    return ReportFacts(
        log=log,
        window=window,
        state=state_at_end(asked),
        idle_gaps=found_idle_gaps,
        epochs=found_epochs,
        epochs_total=epochs_total,
        elections_by_bucket=elections,
        brokers=found_brokers,
        brokers_total=brokers_total,
        brokers_out=out,
        leader_changes=changes,
        leaderless=series["leaderless"],
        under_replicated=series["under_replicated"],
        reassigning=series["reassigning"],
        outages=found_outages,
        outages_total=outages_total,
        leaderless_longest=leaderless,
        leaderless_total=leaderless_total,
        under_min_isr=series["under_min_isr"],
        under_min_isr_longest=under_min_isr,
        under_min_isr_total=under_min_isr_total,
        large_changes=large_changes(asked, log),
        checks=checks,
    )


def _state_of_snapshot(tables: Tables, source: str) -> ClusterState:
    """For a log without batches a snapshot may have the state."""
    held = tables.frame("partition_history").where(
        (F.col("source") == source) & F.col("valid_to_offset").isNull()
    )
    (row,) = held.agg(
        F.count_distinct("topic_id").alias("topics"),
        F.count("*").alias("partitions"),
        F.count_if(F.col("leader") < 0).alias("leaderless"),
        F.count_if(F.size("isr") < F.size("replicas")).alias("under_replicated"),
    ).collect()
    return ClusterState(**row.asDict())
