"""The picture at the top: controllers, brokers, leaders and partitions as rows over one time axis."""

from collections.abc import Iterator, Sequence

from kquorum.spark_replay.report.broker_rows import broker_rows
from kquorum.spark_replay.report.facts import ReportFacts, Series
from kquorum.spark_replay.report.html import (
    Axis,
    Content,
    Markup,
    Stack,
    joined,
    lane,
    legend,
    percent,
    picture,
    tag,
    void,
)
from kquorum.spark_replay.report.times import Window, duration, moment, stretch
from kquorum.spark_replay.report.words import ADMINISTRATIVE, CAUSES, count, listed
from kquorum.wire.wording import counted

CONTROLLER_LANES = 9
OUTAGE_LANES = 10
_TALL, _LOW = 44, 26
_BAR = 16
# More elections than this in the window, and a row of its own shows how many there were when.
_ELECTIONS_COUNTED = 40


def timeline(facts: ReportFacts) -> Markup:
    """Empty without a window."""
    if facts.window is None:
        return Markup()
    axis = Axis(facts.window)
    rows = joined(
        (
            tag("div", lane("", axis.labels()), class_="axis top"),
            _group("Quorum", *_quorum(facts, axis)),
            _group("Brokers", *broker_rows(facts, axis)),
            _group("Partitions", *_partitions(facts, axis)),
            _group("Requests", *_requests(facts, axis)),
            tag("div", lane("", axis.labels()), class_="axis"),
        )
    )
    return tag(
        "div",
        _idle_gaps(facts, axis, "idle-gap"),
        rows,
        _idle_gaps(facts, axis, "hatched"),
        class_="timeline",
        data_start=facts.window.start_ms,
        data_length=max(facts.window.duration_ms, 1),
    )


def bucket_name(window: Window) -> str:
    return {3_600_000: "hour", 86_400_000: "day", 60_000: "minute"}.get(
        window.bucket_ms, duration(window.bucket_ms)
    )


def _group(title: str, *lanes: Content) -> Markup:
    return tag("div", tag("h3", title), *lanes, class_="lanes") if lanes else Markup()


def _idle_gaps(facts: ReportFacts, axis: Axis, style: str) -> Markup:
    """The lines of the ticks and a band for each idle gap behind all rows (`idle-gap`), or their hatching in front of
    them (`hatched`): the bars there show the last known state."""
    hatch = tag(
        "pattern",
        void("path", d="M0 6 6 0", class_="hatch-line"),
        id="hatch",
        width="6",
        height="6",
        patternUnits="userSpaceOnUse",
    )
    bands = (
        tag(
            "rect",
            tag(
                "title", f"no records for {duration(each.duration_ms)}: {stretch(each.start_ms, each.end_ms)}"
            ),
            x=percent(axis.share(each.start_ms)),
            width=percent(max(axis.share(each.end_ms) - axis.share(each.start_ms), 0.08)),
            y="0",
            height="100%",
            class_=style,
        )
        for each in facts.idle_gaps.longest
    )
    if style == "idle-gap":
        return tag("svg", axis.lines(), *bands, class_="grid", aria_hidden="true")
    return tag("svg", tag("defs", hatch), *bands, class_="grid veil", aria_hidden="true")


def _quorum(facts: ReportFacts, axis: Axis) -> Iterator[Markup]:
    yield _records(facts, axis)
    held: dict[int | None, int] = {}
    for epoch in facts.epochs:
        held[epoch.leader_id] = held.get(epoch.leader_id, 0) + epoch.end_ms - epoch.start_ms + 1
    shown = sorted(held, key=lambda each: (-held[each], each is None, each or 0))[:CONTROLLER_LANES]
    for leader in sorted(shown, key=lambda each: (each is None, each or 0)):
        yield _controller(leader, facts, axis)
    if len(held) > len(shown):
        yield lane(
            f"{len(held) - len(shown)} more controllers", picture("not drawn", height=_BAR), "not drawn"
        )
    if facts.epochs_total > _ELECTIONS_COUNTED:
        elections = facts.elections_by_bucket
        stacks: list[Stack] = [
            (
                bucket,
                (("elected", number),),
                f"{_bucket_title(axis.window, bucket)}: {counted(number, 'election')}",
            )
            for bucket, number in sorted(elections.items())
        ]
        yield _columns(
            "elections",
            counted(facts.epochs_total, "epoch"),
            stacks,
            max(elections.values(), default=1),
            axis,
        )


def _records(facts: ReportFacts, axis: Axis) -> Markup:
    """How much was written, idle records and all others told apart."""
    totals: dict[int, list[int]] = {}
    for (bucket, record_type), number in facts.log.types_by_bucket.items():
        totals.setdefault(bucket, [0, 0])[record_type == "NoOpRecord"] += number
    stacks: list[Stack] = [
        (
            bucket,
            (("written", other), ("idle", idle)),
            f"{_bucket_title(axis.window, bucket)}: {counted(other + idle, 'record')}, {count(idle)} of them idle",
        )
        for bucket, (other, idle) in sorted(totals.items())
    ]
    highest = max((sum(pair) for pair in totals.values()), default=1)
    note = f"{count(highest)} per {bucket_name(axis.window)}"
    told = legend((("written", "changes"), ("idle", "idle records")))
    return joined((_columns("records", note, stacks, highest, axis), told))


def _controller(leader: int | None, facts: ReportFacts, axis: Axis) -> Markup:
    epochs = [epoch for epoch in facts.epochs if epoch.leader_id == leader]
    bars = (
        axis.bar(
            epoch.start_ms,
            epoch.end_ms,
            f"epoch {epoch.epoch}: {stretch(epoch.start_ms, epoch.end_ms)} "
            f"({duration(max(epoch.end_ms - epoch.start_ms, 0))}), {counted(epoch.records, 'record')}",
            style="leads" if epoch.epoch % 2 else "leads next",
            height=_BAR,
        )
        for epoch in epochs
    )
    led = sum(max(epoch.end_ms - epoch.start_ms, 0) for epoch in epochs)
    label = f"led {counted(len(epochs), 'epoch')}, {duration(led)} in all"
    name = "controller not named" if leader is None else f"controller {leader}"
    return lane(name, picture(f"{name}: {label}", *bars, height=_BAR), counted(len(epochs), "epoch"))


def _partitions(facts: ReportFacts, axis: Axis) -> Iterator[Markup]:
    changes = facts.leader_changes
    if changes.total:
        yield _changes_of_leaders(facts, axis)
    yield from _level("without leader", "bad", facts.leaderless, axis)
    worst = sorted(enumerate(facts.outages, 1), key=lambda each: -each[1].partition_ms)[:OUTAGE_LANES]
    for number, outage in sorted(worst, key=lambda each: each[0]):
        title = (
            f"{counted(outage.partitions, 'partition')} of {counted(outage.topics, 'topic')} without leader, "
            f"{stretch(outage.start_ms, outage.end_ms)} ({duration(outage.end_ms - outage.start_ms)})"
        )
        bar = axis.bar(outage.start_ms, outage.end_ms, title, style="bad", top=2, height=6)
        name = tag("a", f"outage {number}", href=f"#outage-{number}")
        yield lane(name, picture(title, bar, height=10, style="plot thin"), count(outage.partitions))
    yield from _level("under min.insync", "warn", facts.under_min_isr, axis)
    yield from _level("under-replicated", "mild", facts.under_replicated, axis)
    yield from _level("being reassigned", "planned", facts.reassigning, axis)
    if not any((changes.total, facts.leaderless.peak, facts.under_replicated.peak, facts.under_min_isr.peak)):
        yield tag("p", "No leader changed, and every partition had all its replicas in sync.", class_="quiet")


def _changes_of_leaders(facts: ReportFacts, axis: Axis) -> Markup:
    by_bucket: dict[int, dict[str, int]] = {}
    for (bucket, cause), number in facts.leader_changes.by_bucket.items():
        causes = by_bucket.setdefault(bucket, {})
        known = cause if cause in CAUSES else "other"
        causes[known] = causes.get(known, 0) + number
    stacks: list[Stack] = []
    for bucket, causes in sorted(by_bucket.items()):
        parts = [(f"cause-{cause}", causes[cause]) for cause in CAUSES if causes.get(cause)]
        told = listed(f"{count(causes[cause])} {cause}" for cause in CAUSES if causes.get(cause))
        stacks.append((bucket, parts, f"{_bucket_title(axis.window, bucket)}: {told}"))
    highest = max(sum(causes.values()) for causes in by_bucket.values())
    present = [cause for cause in CAUSES if cause in facts.leader_changes.by_cause]
    note = f"{count(highest)} per {bucket_name(axis.window)}"
    drawn = _columns("leader changes", note, stacks, highest, axis, _TALL)
    return joined((drawn, legend((f"cause-{cause}", cause.replace("_", " ")) for cause in present)))


def _level(name: str, style: str, series: Series, axis: Axis) -> Iterator[Markup]:
    """How many partitions at most in each bucket; nothing where there never were any."""
    if not series.peak:
        return
    stacks: list[Stack] = [
        (
            bucket,
            ((style, peak),),
            f"{_bucket_title(axis.window, bucket)}: up to {counted(peak, 'partition')}",
        )
        for bucket, peak in enumerate(series.peaks)
        if peak
    ]
    yield _columns(name, f"{count(series.peak)} at most", stacks, series.peak, axis, share=1)


def _requests(facts: ReportFacts, axis: Axis) -> Iterator[Markup]:
    asked: dict[int, list[str]] = {}
    numbers: dict[int, int] = {}
    for (bucket, record_type), number in sorted(facts.log.types_by_bucket.items()):
        if record_type in ADMINISTRATIVE:
            asked.setdefault(bucket, []).append(f"{count(number)} {ADMINISTRATIVE[record_type]}")
            numbers[bucket] = numbers.get(bucket, 0) + number
    if not asked:
        return
    stacks: list[Stack] = [
        (bucket, (("planned", numbers[bucket]),), f"{_bucket_title(axis.window, bucket)}: {listed(told)}")
        for bucket, told in asked.items()
    ]
    highest = max(numbers.values())
    yield _columns(
        "topics, configs, ACLs", f"{counted(sum(numbers.values()), 'change')}", stacks, highest, axis, _LOW
    )


def _columns(
    name: str,
    note: str,
    stacks: Sequence[Stack],
    highest: int,
    axis: Axis,
    height: int = _LOW,
    share: float = 0.86,
) -> Markup:
    drawn = axis.columns(stacks, highest=highest, height=height, share=share)
    return lane(name, picture(f"{name}: {note}", drawn, height=height), note)


def _bucket_title(window: Window, bucket: int) -> str:
    start = window.bucket_start(bucket)
    return f"{moment(start)}, {bucket_name(window)}"
