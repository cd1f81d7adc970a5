"""The sections on controllers, brokers, checks and the log itself."""

from kquorum.spark_replay.report.facts import Epoch, Finding, IdleGap, ReportFacts
from kquorum.spark_replay.report.html import Markup, folded, section, table, tag
from kquorum.spark_replay.report.sections import dim, when, whole
from kquorum.spark_replay.report.times import duration
from kquorum.spark_replay.report.words import count, size
from kquorum.wire.wording import counted

EPOCHS_LISTED = 60
EPOCHS_UNFOLDED = 12
IDLE_GAPS_LISTED = 20
BROKERS_LISTED = 60
BROKERS_UNFOLDED = 12
PROOFS_SHOWN = 6
IDLE_IS_UNKNOWN = (
    "This log has no idle records (Kafka writes them from 3.3 on), so a quiet cluster and one without a controller "
    "look the same in it."
)


def controllers(facts: ReportFacts) -> Markup:
    if not facts.epochs:
        return section("controllers", "Controllers and epochs", lead="No epoch in this time.")
    listed = sorted(facts.epochs, key=lambda each: each.epoch)[-EPOCHS_LISTED:]
    cut = (
        f", the last {len(listed)} of {count(facts.epochs_total)}" if facts.epochs_total > len(listed) else ""
    )
    columns = ("#epoch", "controller", "from (UTC)", "to", "#led for", "votes", "#records", "#first offset")
    epochs = table(columns, map(_epoch, listed), caption=f"Epochs{cut}")
    shown = (
        epochs if len(listed) <= EPOCHS_UNFOLDED else folded(f"{counted(len(listed), 'epoch')}{cut}", epochs)
    )
    return section(
        "controllers",
        "Controllers and epochs",
        shown,
        _idle_gaps(facts),
        lead="An epoch is shown from its first record to its last: what lies between two is time without a controller.",
    )


def _epoch(epoch: Epoch) -> tuple[str | int | Markup, ...]:
    return (
        epoch.epoch,
        dim("not named") if epoch.leader_id is None else str(epoch.leader_id),
        when(epoch.start_ms),
        when(epoch.end_ms),
        duration(max(epoch.end_ms - epoch.start_ms, 0)),
        epoch.votes,
        count(epoch.records),
        epoch.start_offset,
    )


def _idle_gaps(facts: ReportFacts) -> Markup:
    idle_gaps = facts.idle_gaps
    if idle_gaps.longer_than_ms is None:
        return tag("p", IDLE_IS_UNKNOWN, class_="lead", id="idle-gaps") if facts.log.records else Markup()
    if not idle_gaps.total:
        text = f"The log has no idle gap longer than {duration(idle_gaps.longer_than_ms)}"
        text += ", as far as it can be read." if facts.log.is_incomplete else "."
        return tag("p", text, class_="lead", id="idle-gaps")
    longest = sorted(idle_gaps.longest, key=lambda each: (-each.duration_ms, each.start_ms))[
        :IDLE_GAPS_LISTED
    ]
    title = f"Idle gaps of more than {duration(idle_gaps.longer_than_ms)}"
    if idle_gaps.total > len(longest):
        title += f", the longest {len(longest)} of {count(idle_gaps.total)}"
    rows = [
        (when(each.start_ms), when(each.end_ms), duration(each.duration_ms), _ended(each), each.offset_after)
        for each in sorted(longest, key=lambda each: each.start_ms)
    ]
    columns = ("from (UTC)", "to", "#lasted", "ended by", "#next offset")
    return tag("div", tag("h4", "Idle gaps"), table(columns, rows, caption=title), id="idle-gaps")


def _ended(gap: IdleGap) -> str:
    if gap.epoch_after != gap.epoch_before:
        return f"the election of epoch {gap.epoch_after}"
    return f"epoch {gap.epoch_after} went on: the controller, or its machine, stood still"


def brokers(facts: ReportFacts) -> Markup:
    if not facts.brokers:
        return section("brokers", "Brokers", lead="None was registered in this time.")
    worst = sorted(facts.brokers, key=lambda each: (-each.fencings, -each.out_ms, each.broker_id))
    listed = sorted(worst[:BROKERS_LISTED], key=lambda each: each.broker_id)
    cut = f", {len(listed)} of {count(facts.brokers_total)}, those with the most trouble"
    title = "Brokers" + (cut if facts.brokers_total > len(listed) else "")
    columns = (
        *("#broker", "rack", "at the end", "#fenced", "#shut down", "#registered", "#not serving"),
        *("#share served", "#leaders lost"),
    )
    rows = [
        (
            broker.broker_id,
            broker.rack or "",
            tag("span", broker.state, class_="bad-word") if broker.state == "fenced" else broker.state,
            count(broker.fencings),
            count(broker.shutdowns),
            count(broker.registrations),
            duration(broker.out_ms) if broker.out_ms else "",
            _share(broker.unfenced_ms, broker.unfenced_ms + broker.out_ms),
            count(broker.lost_leaderships),
        )
        for broker in listed
    ]
    listing = table(columns, rows, caption=title)
    shown = listing if len(rows) <= BROKERS_UNFOLDED else folded(title, listing)
    return section("brokers", "Brokers", shown)


def _share(part: int, whole: int) -> str:
    """Rounded down, so that 100 % is said only of all."""
    return f"{part * 1000 // whole / 10:.1f} %" if whole else ""


def checks(facts: ReportFacts) -> Markup:
    found = facts.checks
    if not found.ran:
        return section("checks", "Checks", lead="They were not run for this page; see kquorum audit check.")
    passed = (
        f"{counted(len(found.passed), 'check')} passed: {', '.join(found.passed)}. " if found.passed else ""
    )
    lead = (
        f"{passed}{counted(found.violations, 'violation')}, {counted(found.notes, 'note')}, of the whole log."
    )
    content = []
    if found.findings:
        left = found.violations + found.notes - len(found.findings)
        title = "What the checks found" + (f", {count(left)} more in kquorum audit check" if left > 0 else "")
        columns = ("check", "", "about", "what was found", "offsets that prove it")
        content.append(table(columns, map(_finding, found.findings), caption=title))
    if found.skipped:
        content.append(folded("What was not looked at", table(("check", "why not"), found.skipped)))
    return section("checks", "Checks", *content, lead=lead)


def _finding(each: Finding) -> tuple[str | Markup, ...]:
    style = "bad-word" if each.severity == "violation" else "dim"
    shown = ", ".join(map(str, each.offsets[:PROOFS_SHOWN]))
    more = f" and {count(len(each.offsets) - PROOFS_SHOWN)} more" if len(each.offsets) > PROOFS_SHOWN else ""
    about = each.subject or each.source
    return whole(each.check), tag("span", each.severity, class_=style), about, each.reason, shown + more


def the_log(facts: ReportFacts) -> Markup:
    log = facts.log
    share = max(log.records, 1)
    types = table(
        ("record type", "#records", "#share"),
        [(name, count(number), f"{number / share:.1%}") for name, number in log.types.items()],
        caption="Records by type",
    )
    settings = table(
        ("feature", "#level"), [(name, level) for name, level in log.features], caption="Features at the end"
    )
    known = [
        ("source", log.source),
        ("read from", ", ".join(log.inputs)),
        ("state begins with", log.state_from),
        ("batches", count(log.batches)),
        ("size", size(log.size_in_bytes)),
        ("records not understood", count(log.unread_records)),
        ("voters at the end", ", ".join(map(str, log.voters)) or "not known"),
        ("changes of voters", count(log.voter_changes)),
        ("changes of features", count(log.feature_changes)),
    ]
    if log.other_sources:
        others = ", ".join(log.other_sources[:10]) + (" \u2026" if len(log.other_sources) > 10 else "")
        known.append(("other logs of the audit", others))
    facts_table = table(("", ""), known, caption="The log")
    return section(
        "log",
        "The log",
        tag("div", tag("div", facts_table, settings), tag("div", types), class_="columns"),
        _damage(facts),
    )


def _damage(facts: ReportFacts) -> Markup:
    log = facts.log
    if not log.damage_total:
        return tag(
            "p", "No damage: every batch is whole, and no offset is missing.", class_="lead", id="damage"
        )
    rows = [
        (each.file, each.position, "" if each.offset is None else each.offset, each.kind, each.reason)
        for each in log.damage
    ]
    cut = f", the first {len(rows)} of {count(log.damage_total)}" if log.damage_total > len(rows) else ""
    columns = ("file", "#byte", "#offset", "kind", "what was found")
    listing = table(columns, rows, caption=f"Damaged places{cut}, of the whole log")
    return tag("div", tag("h4", "Damage"), listing, id="damage")
