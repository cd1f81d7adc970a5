"""What to read first: the facts of the page in a few sentences, the worst first."""

from collections.abc import Iterator
from dataclasses import dataclass

from kquorum.spark_replay.report.facts import ReportFacts
from kquorum.spark_replay.report.times import duration, moment
from kquorum.spark_replay.report.words import controller, count, listed
from kquorum.wire.wording import counted

BROKERS_NAMED = 5


@dataclass(frozen=True, slots=True)
class Highlight:
    """`weight`: bad, warn, note or good; `section` is the part of the page with the details."""

    weight: str
    text: str
    section: str


def highlights(facts: ReportFacts) -> list[Highlight]:
    """At least one."""
    found = [*_damage(facts), *_findings(facts), *_partitions(facts), *_brokers(facts), *_quorum(facts)]
    order = ("bad", "warn", "note", "good")
    found.sort(key=lambda each: order.index(each.weight))
    is_calm = not any(each.weight in ("bad", "warn") for each in found)
    if is_calm and facts.window is not None and not facts.log.limits:
        text = "No damage, no partition without a leader, no broker fenced, no unclean election."
        found.insert(0, Highlight("good", text, "timeline"))
    if facts.window is None:
        found.append(Highlight("note", "The log holds no records of this time.", "log"))
    return [*_limits(facts), *found]


def _limits(facts: ReportFacts) -> Iterator[Highlight]:
    """What everything else is to be read by."""
    for text in facts.log.limits:
        yield Highlight("bad", f"{text[:1].upper()}{text[1:]}.", "damage")


def _damage(facts: ReportFacts) -> Iterator[Highlight]:
    if facts.log.damage_total:
        places = counted(facts.log.damage_total, "place")
        yield Highlight(
            "bad", f"The log is damaged in {places}: what stood there is not on this page.", "damage"
        )


def _findings(facts: ReportFacts) -> Iterator[Highlight]:
    checks = facts.checks
    if checks.violations:
        first = next((each for each in checks.findings if each.severity == "violation"), None)
        detail = f": {first.check}: {first.reason}" if first else ""
        text = f"{counted(checks.violations, 'violation')} found by the checks{detail}"
        yield Highlight("bad", text, "checks")
    elif checks.ran:
        yield Highlight(
            "note", f"{counted(len(checks.passed), 'check')} passed, none found a violation.", "checks"
        )


def _partitions(facts: ReportFacts) -> Iterator[Highlight]:
    changes = facts.leader_changes
    if changes.unclean_total:
        first = changes.unclean[0]
        yield Highlight(
            "bad",
            f"{counted(changes.unclean_total, 'unclean election')}: records may be lost, first of topic "
            f"{first.topic} at {moment(first.timestamp_ms)}.",
            "unclean",
        )
    if facts.leaderless.peak:
        yield Highlight("bad", _leaderless(facts), "outages")
    if facts.state.leaderless:
        yield Highlight(
            "bad",
            f"{counted(facts.state.leaderless, 'partition')} had no leader at the end of this time.",
            "outages",
        )
    if facts.under_min_isr.peak:
        yield Highlight(
            "warn",
            f"Up to {counted(facts.under_min_isr.peak, 'partition')} at once had fewer in-sync replicas than "
            f"min.insync.replicas: producers with acks=all were refused.",
            "min-isr",
        )
    if changes.total:
        causes = list(changes.by_cause.items())
        detail = listed(f"{count(number)} {cause.replace('_', ' ')}" for cause, number in causes[:3])
        most = ", most of them" if len(causes) > 3 else ":"
        yield Highlight("note", f"{counted(changes.total, 'leader change')}{most} {detail}.", "leaders")


def _leaderless(facts: ReportFacts) -> str:
    summed = duration(facts.leaderless.summed_ms)
    worst = max(facts.outages, key=lambda each: each.partition_ms, default=None)
    if facts.leaderless_total == 1:
        return f"A partition had no leader for {summed}" + (
            f" from {moment(worst.start_ms)}." if worst else "."
        )
    peak = facts.leaderless.peak
    at_once = f"Up to {count(peak)} partitions at once" if peak > 1 else "A partition at a time"
    text = f"{at_once} had no leader, {summed} summed over the partitions"
    if worst:
        began = f"the worst outage began {moment(worst.start_ms)}"
        text += f"; {began} with {counted(worst.partitions, 'partition')}"
    return f"{text}."


def _brokers(facts: ReportFacts) -> Iterator[Highlight]:
    fenced = [broker for broker in facts.brokers if broker.fencings]
    if not fenced:
        return
    worst = sorted(fenced, key=lambda broker: (-broker.fencings, -broker.out_ms))[:BROKERS_NAMED]
    detail = listed(f"{broker.broker_id} ({broker.fencings}\u00d7)" for broker in worst)
    others = f" and {count(len(fenced) - len(worst))} others" if len(fenced) > len(worst) else ""
    word = "broker" if len(fenced) == 1 else "brokers"
    yield Highlight("warn", f"Fenced without a shutdown: {word} {detail}{others}.", "brokers")


def _throughout(facts: ReportFacts) -> str:
    return "as far as the log can be read" if facts.log.is_incomplete else "all the time"


def _quorum(facts: ReportFacts) -> Iterator[Highlight]:
    idle_gaps, window = facts.idle_gaps, facts.window
    if idle_gaps.total:
        longest = max(idle_gaps.longest, key=lambda each: each.duration_ms)
        lasted = f"{duration(longest.duration_ms)} from {moment(longest.start_ms)}"
        if idle_gaps.total == 1:
            text = f"The log has an idle gap of {lasted}: no controller wrote."
        else:
            times = f"{count(idle_gaps.total)} idle gaps, {duration(idle_gaps.total_ms)} in all"
            text = f"The log has {times}: no controller wrote. Longest: {lasted}."
        yield Highlight("warn", text, "idle-gaps")
    if window is None or not facts.epochs:
        return
    led: dict[int | None, int] = {}
    for epoch in facts.epochs:
        led[epoch.leader_id] = led.get(epoch.leader_id, 0) + 1
    if facts.epochs_total == 1:
        text = f"One epoch: {controller(facts.epochs[0].leader_id)} led {_throughout(facts)}."
    else:
        (*_, last) = facts.epochs
        by = controller(last.leader_id) if len(led) == 1 else counted(len(led), "controller")
        text = f"{counted(facts.epochs_total, 'epoch')}, led by {by}; the last one is {last.epoch}."
        passed = last.epoch - facts.epochs[0].epoch + 1 - facts.epochs_total
        if passed > 0:
            why = "elections that no candidate won, or whose winner wrote nothing that lasted"
            text += f" {counted(passed, 'epoch')} between left no record: {why}."
    yield Highlight("note", text, "controllers")
