"""The timeline rows of the brokers: one bar each; of very many brokers only those with changes have a bar."""

from collections.abc import Iterator

from kquorum.spark_replay.report.facts import BrokerFacts, ReportFacts
from kquorum.spark_replay.report.html import Axis, Markup, Stack, lane, legend, picture
from kquorum.spark_replay.report.times import duration, moment, stretch
from kquorum.spark_replay.report.words import BROKER_STATES, count, listed
from kquorum.wire.wording import counted

_BAR, _LOW = 14, 26
# With more brokers than this, one more row shows how many of them do not serve.
_COUNTED_FROM = 8


def broker_rows(facts: ReportFacts, axis: Axis) -> Iterator[Markup]:
    """Yields nothing if no broker ever registered."""
    if not facts.brokers:
        return
    drawn = [broker for broker in facts.brokers if broker.spans is not None]
    if facts.brokers_total > _COUNTED_FROM and facts.brokers_out.peak:
        yield _out(facts, axis)
    for broker in drawn:
        yield _bar(broker, axis)
    hidden = facts.brokers_total - len(drawn)
    if hidden:
        quiet = [broker for broker in facts.brokers if broker.spans is None]
        steady = sum(broker.fencings == 0 for broker in quiet)
        note = f"{count(steady)} of them never fenced" if len(quiet) == hidden else "not drawn"
        yield lane(f"{counted(hidden, 'other broker')}", picture(note, height=_BAR), note)
    present = {span.state for broker in drawn for span in broker.spans or ()}
    yield legend((style_of(state), state) for state in BROKER_STATES if state in present)


def style_of(state: str) -> str:
    return f"broker-{state.replace(' ', '-')}"


def _bar(broker: BrokerFacts, axis: Axis) -> Markup:
    bars = (
        axis.bar(
            span.start_ms,
            span.end_ms,
            f"broker {broker.broker_id} {span.state}: {stretch(span.start_ms, span.end_ms)} "
            f"({duration(span.end_ms - span.start_ms)})",
            style=style_of(span.state),
            height=_BAR,
        )
        # A later bar is drawn over an earlier one: the short ones come last, or longer neighbours would hide them.
        for span in sorted(broker.spans or (), key=lambda span: span.start_ms - span.end_ms)
    )
    changes = listed(
        counted(number, word)
        for number, word in (
            (broker.fencings, "fencing"),
            (broker.shutdowns, "shutdown"),
            (broker.registrations, "registration"),
        )
        if number
    )
    note = (
        f"fenced {count(broker.fencings)}\u00d7"
        if broker.fencings
        else f"rack {broker.rack}"
        if broker.rack
        else ""
    )
    label = (
        f"broker {broker.broker_id}: {changes or 'no change'}, unfenced for {duration(broker.unfenced_ms)}"
    )
    return lane(f"broker {broker.broker_id}", picture(label, *bars, height=_BAR), note)


def _out(facts: ReportFacts, axis: Axis) -> Markup:
    """How many brokers did not serve."""
    peaks = facts.brokers_out.peaks
    stacks: list[Stack] = [
        (
            bucket,
            (("warn", peak),),
            f"{moment(axis.window.bucket_start(bucket))}: up to {counted(peak, 'broker')}",
        )
        for bucket, peak in enumerate(peaks)
        if peak
    ]
    highest = facts.brokers_out.peak
    drawn = axis.columns(stacks, highest=highest, height=_LOW)
    note = f"{count(highest)} at most"
    return lane("not serving", picture(f"brokers not serving: {note}", drawn, height=_LOW), note)
