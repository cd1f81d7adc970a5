"""The sections on leaders, partitions and large changes: a table for each picture, and what its words mean."""

from collections.abc import Sequence

from kquorum.spark_replay.report.facts import Interval, LargeChange, ReportFacts
from kquorum.spark_replay.report.html import Content, Markup, folded, joined, section, table, tag, void
from kquorum.spark_replay.report.times import duration, moment
from kquorum.spark_replay.report.words import CAUSES, controller, count, listed
from kquorum.wire.wording import counted


def whole(text: Content) -> Markup:
    """Never broken at the end of a line."""
    return tag("span", text, class_="whole")


def when(at_ms: int) -> Markup:
    return whole(moment(at_ms))


def dim(text: Content) -> Markup:
    return tag("span", text, class_="dim")


def no_leader(facts: ReportFacts) -> Markup:
    """Outages, and the single partitions that were without a leader for the longest time."""
    if not facts.leaderless_total:
        lead = "None in what can be read of the log." if facts.log.is_incomplete else "None in this time."
        return section("outages", "Partitions without a leader", lead=lead)
    left = facts.outages_total - len(facts.outages)
    lead = (
        "No client could produce to them or consume from them. What lost its leader by one decision of the controller "
        "is one outage; it ends when the last of these partitions has a leader again."
        + (f" {counted(left, 'smaller outage')} not listed." if left > 0 else "")
    )
    rows = [
        (
            tag("span", number, id=f"outage-{number}"),
            when(outage.start_ms),
            duration(outage.end_ms - outage.start_ms) + (" so far" if outage.still_open else ""),
            count(outage.partitions),
            _topics(outage.topics, outage.example_topic),
            duration(outage.partition_ms),
            _why(outage.cause, outage.old_leaders),
            controller(outage.controller_id),
            outage.start_offset,
        )
        for number, outage in enumerate(facts.outages, 1)
    ]
    columns = (
        "#",
        "began (UTC)",
        "lasted",
        "#partitions",
        "topics",
        "#partition time",
        "why",
        "decided by",
        "#offset",
    )
    worst = table(columns, rows, caption="Outages")
    return section(
        "outages",
        "Partitions without a leader",
        worst,
        _intervals(facts.leaderless_longest, facts.leaderless_total, "The longest of single partitions"),
        lead=lead,
    )


def _topics(number: int, example: str) -> str:
    return example if number == 1 else f"{example} and {count(number - 1)} more"


def _why(cause: str | None, brokers: Sequence[int]) -> str:
    if cause in (None, "other"):
        return "not known"
    if cause == "creation":
        return "created without one"
    named = f" of broker {listed(map(str, brokers[:4]))}" if brokers else ""
    return f"{cause.replace('_', ' ')}{named}"


def _intervals(intervals: Sequence[Interval], total: int, title: str) -> Markup:
    rows = [
        (
            each.topic,
            each.partition_id,
            when(each.start_ms),
            "still so at the end" if each.is_open else when(each.end_ms),
            duration(each.duration_ms),
            each.detail,
            each.start_offset,
        )
        for each in intervals
    ]
    columns = ["topic", "#partition", "from (UTC)", "to", "#lasted", "", "#from offset"]
    if not any(each.detail for each in intervals):
        del columns[5]
        rows = [(*row[:5], row[6]) for row in rows]  # type: ignore[misc]
    cut = f" ({len(intervals)} of {count(total)})" if total > len(intervals) else ""
    return folded(f"{title}{cut}", table(columns, rows, caption=title))


def too_few_in_sync(facts: ReportFacts) -> Markup:
    """Nothing where there never were too few."""
    if not facts.under_min_isr_total:
        return Markup()
    lead = (
        f"Producers with acks=all were refused. {counted(facts.under_min_isr_total, 'interval')}, up to "
        f"{counted(facts.under_min_isr.peak, 'partition')} at once."
    )
    listing = _intervals(facts.under_min_isr_longest, facts.under_min_isr_total, "The longest")
    return section("min-isr", "Fewer in-sync replicas than min.insync.replicas", listing, lead=lead)


def leaders(facts: ReportFacts) -> Markup:
    changes = facts.leader_changes
    if not changes.total:
        lead = "None in what can be read of the log." if facts.log.is_incomplete else "None in this time."
        return section("leaders", "Leader changes", lead=lead)
    causes = table(
        ("cause", "#changes", "what it means"),
        [
            (whole(cause.replace("_", " ")), count(number), CAUSES.get(cause, ""))
            for cause, number in changes.by_cause.items()
        ],
        caption="By cause",
    )
    more = (
        f", the first {len(changes.by_topic)} of {count(changes.topics)}"
        if changes.topics > len(changes.by_topic)
        else ""
    )
    topics = table(
        ("topic", "#changes"),
        [(topic, count(number)) for topic, number in changes.by_topic],
        caption=f"By topic{more}",
    )
    return section(
        "leaders",
        "Leader changes",
        tag("div", tag("div", causes), tag("div", topics), class_="columns"),
        _unclean(facts),
        lead="No record says why a leader changed; the cause is concluded from the records beside it.",
    )


def _unclean(facts: ReportFacts) -> Markup:
    changes = facts.leader_changes
    if not changes.unclean_total:
        return Markup()
    shown, groups = len(changes.unclean), changes.unclean_groups
    cut = f", the first {shown} of {count(groups)}" if groups > shown else ""
    rows = [
        (
            when(each.timestamp_ms),
            each.topic,
            count(each.partitions),
            each.new_leader,
            controller(each.controller_id),
            each.offset,
        )
        for each in changes.unclean
    ]
    columns = ("at (UTC)", "topic", "#partitions", "#new leader", "decided by", "#first offset")
    caption = f"By moment and topic{cut}"
    return tag("div", tag("h4", "Unclean elections"), table(columns, rows, caption=caption), id="unclean")


def large_changes(facts: ReportFacts) -> Markup:
    if not facts.large_changes:
        return section(
            "changes", "Largest changes", lead="Nothing was written by more than one record at once."
        )
    if not facts.log.has_notes:
        lead = (
            "By the number of records. Authors are unknown: Kafka's own controllers do not write into the log who "
            "asked, so the controller that wrote is named instead."
        )
        return section(
            "changes", "Largest changes", _changes(facts.large_changes, "Largest batches"), lead=lead
        )
    asked = [each for each in facts.large_changes if each.principal is not None]
    decided = [each for each in facts.large_changes if each.principal is None]
    lead = (
        "By the number of records. The audit notes in the log name the principal; changes without a note were made by "
        "the controller itself or requested by a broker."
    )
    tables = [_changes(asked, "Largest requests")] if asked else []
    tables += [_changes(decided, "Largest batches without a note")] if decided else []
    return section("changes", "Largest changes", *tables, lead=lead)


def _changes(changes: Sequence[LargeChange], caption: str) -> Markup:
    rows: list[tuple[Content, ...]] = []
    for each in changes:
        who: tuple[Content, ...] = () if each.principal is None else (_author(each), _why_asked(each))
        by = f"{controller(each.controller_id)}, epoch {each.quorum_epoch}"
        offsets = f"{each.first_offset}\u2013{each.last_offset}"
        rows.append((when(each.timestamp_ms), count(each.records), _what(each), *who, by, offsets))
    named = ("author", "why") if changes[0].principal is not None else ()
    return table(("at (UTC)", "#records", "what", *named, "written by", "#offsets"), rows, caption=caption)


def _what(change: LargeChange) -> Markup:
    types = ", ".join(f"{count(number)} {name.removesuffix('Record')}" for name, number in change.types[:4])
    more = f" and {len(change.types) - 4} more types" if len(change.types) > 4 else ""
    if change.topic is not None:
        about = f"topic {change.topic}"
    else:
        about = counted(change.topics, "topic") if change.topics else ""
    return joined(filter(None, (types + more, about and dim(about))), void("br"))


def _author(change: LargeChange) -> Markup:
    return joined(filter(None, (change.principal or "no principal", dim(change.client))), void("br"))


def _why_asked(change: LargeChange) -> Markup:
    quoted = change.operator_reason and f"\u201c{change.operator_reason}\u201d"
    return joined(filter(None, (change.reason, quoted, dim(change.api))), void("br"))
