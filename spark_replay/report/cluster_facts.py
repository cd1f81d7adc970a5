"""Facts about controllers and brokers: who led the quorum, and which brokers were there to serve."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Column
from kquorum.spark_replay.engine.frame import Frame
from kquorum.spark_replay.report.asked import Asked
from kquorum.spark_replay.report.facts import BrokerFacts, BrokerSpan, Epoch

EPOCHS_SHOWN = 600
BARS_SHOWN = 24
ALL_BARS_SHOWN = 32
BROKERS_LISTED = 400
SPANS_COLLECTED = 6_000


def epochs(asked: Asked) -> tuple[tuple[Epoch, ...], int, dict[int, int]]:
    """The epochs in the window (the longest, if they are very many), how many there are, and how many began in each
    bucket."""
    start, end = asked.window.start_ms, asked.window.end_ms
    within = asked.table("quorum_epochs").where(
        (F.col("start_ms") <= end) & (F.col("last_record_ms") >= start)
    )
    lasted = F.col("last_record_ms") - F.col("start_ms")
    rows = within.orderBy(F.desc(lasted), "epoch").limit(EPOCHS_SHOWN).collect()
    began = within.where(F.col("start_ms") >= start).withColumn("bucket", asked.bucket(F.col("start_ms")))
    by_bucket = {row["bucket"]: row["count"] for row in began.groupBy("bucket").count().collect()}
    total = len(rows) if len(rows) < EPOCHS_SHOWN else within.count()
    return tuple(sorted(map(_epoch, rows), key=lambda epoch: epoch.epoch)), total, by_bucket


def _epoch(row: Any) -> Epoch:
    granted, voters = row["granting_voters"], row["voters"]
    return Epoch(
        epoch=row["epoch"],
        leader_id=row["leader_id"],
        start_offset=row["start_offset"],
        start_ms=row["start_ms"],
        end_ms=row["last_record_ms"],
        records=row["records"],
        votes="" if granted is None or voters is None else f"{len(granted)} of {len(voters)}",
    )


def brokers(asked: Asked, lost_leaderships: Mapping[int, int]) -> tuple[tuple[BrokerFacts, ...], int]:
    """The brokers of the window by id, those with the most trouble if they are very many, and how many there are.

    `lost_leaderships`: leader changes in which the broker lost a partition, by broker.
    """
    history = broker_states(asked)
    figures = _figures(history, asked)
    total = len(figures) if len(figures) < BROKERS_LISTED else history.select("broker_id").distinct().count()
    drawn = [row["broker_id"] for row in (figures if total <= ALL_BARS_SHOWN else figures[:BARS_SHOWN])]
    spans = _spans(history, drawn)
    facts = (
        BrokerFacts(
            broker_id=row["broker_id"],
            rack=row["rack"],
            state=row["state"],
            registrations=row["registrations"],
            fencings=row["fencings"],
            shutdowns=row["shutdowns"],
            unfenced_ms=row["unfenced_ms"],
            out_ms=row["out_ms"],
            lost_leaderships=lost_leaderships.get(row["broker_id"], 0),
            spans=spans.get(row["broker_id"], ()) if row["broker_id"] in drawn else None,
        )
        for row in figures
    )
    return tuple(sorted(facts, key=lambda broker: broker.broker_id)), total


def broker_states(asked: Asked) -> Frame:
    """The intervals of `brokers_history` in the window, with the `state` that the report shows."""
    return asked.overlapping("brokers_history").withColumn("state", _state())


def _state() -> Column:
    return (
        F.when(F.col("fenced") & F.col("in_controlled_shutdown"), "stopped")
        .when(F.col("fenced") & (F.col("change") == "registered"), "registered")
        .when(F.col("fenced"), "fenced")
        .when(F.col("in_controlled_shutdown"), "shutting down")
        .otherwise("unfenced")
    )


def _figures(history: Frame, asked: Asked) -> Sequence[Any]:
    """A row for each broker, those with the most trouble first."""
    length = F.col("to_ms") - F.col("from_ms")
    began = F.col("valid_from_ms") >= asked.window.start_ms
    last = F.struct("valid_from_offset", "state", "is_open", "rack")
    summed = history.groupBy("broker_id").agg(
        F.max(last).alias("last"),
        F.count_if(began & (F.col("change") == "registered")).alias("registrations"),
        F.count_if(began & (F.col("change") == "fenced") & (F.col("state") == "fenced")).alias("fencings"),
        F.count_if(began & (F.col("change") == "controlled_shutdown")).alias("shutdowns"),
        F.sum(F.when(F.col("state") == "unfenced", length).otherwise(0)).alias("unfenced_ms"),
        F.sum(F.when(F.col("state") != "unfenced", length).otherwise(0)).alias("out_ms"),
    )
    named = summed.withColumns(
        {"state": F.when(F.col("last.is_open"), F.col("last.state")).otherwise("unregistered")}
    ).withColumn("rack", F.col("last.rack"))
    ordered = named.orderBy(F.desc("fencings"), F.desc("out_ms"), "broker_id")
    return list(ordered.limit(BROKERS_LISTED).collect())


def _spans(history: Frame, drawn: list[int]) -> dict[int, tuple[BrokerSpan, ...]]:
    """The states of these brokers one after the other, the longest if they are very many."""
    rows = history.where(F.col("broker_id").isin(drawn)).select(
        "broker_id", "valid_from_offset", "state", "from_ms", "to_ms", "change"
    )
    longest = rows.orderBy(F.desc(F.col("to_ms") - F.col("from_ms")), "valid_from_offset")
    found = longest.limit(SPANS_COLLECTED).collect()
    spans: dict[int, list[BrokerSpan]] = defaultdict(list)
    for row in sorted(found, key=lambda row: (row["broker_id"], row["valid_from_offset"])):
        _append(spans[row["broker_id"]], row)
    return {broker_id: tuple(each) for broker_id, each in spans.items()}


def _append(spans: list[BrokerSpan], row: Any) -> None:
    """Joined to the span before where nothing that is shown has changed."""
    state, start, end = row["state"], row["from_ms"], row["to_ms"]
    if spans and state == "fenced" and row["change"] in ("directories", "other"):
        state = spans[-1].state if spans[-1].state in ("registered", "stopped") else state
    if spans and spans[-1].state == state and spans[-1].end_ms == start:
        start = spans.pop().start_ms
    spans.append(BrokerSpan(state=state, start_ms=start, end_ms=end))
