"""The whole page: one file that needs nothing else, and that lets nothing in a log run or load anything."""

import base64
import hashlib

from kquorum.spark_replay.report.facts import ReportFacts
from kquorum.spark_replay.report.highlights import highlights
from kquorum.spark_replay.report.html import Content, Markup, joined, section, tag, void
from kquorum.spark_replay.report.log_sections import brokers, checks, controllers, the_log
from kquorum.spark_replay.report.sections import large_changes, leaders, no_leader, too_few_in_sync
from kquorum.spark_replay.report.style import SCRIPT, STYLE
from kquorum.spark_replay.report.timeline import bucket_name, timeline
from kquorum.spark_replay.report.times import duration, moment, stretch
from kquorum.spark_replay.report.words import count
from kquorum.wire.wording import counted

_LEAD = (
    "All rows share one time axis (UTC). Hatched: the log holds no records at all, so no controller was writing. "
    "Point at anything to read it; the tables below say the same in numbers."
)
# By this a report is known: only a report is replaced by another.
GENERATOR = '<meta name="generator" content="kquorum audit report"/>'


def render(facts: ReportFacts) -> str:
    """The report as one HTML document, the same for the same facts."""
    body = tag(
        "main",
        _header(facts),
        _highlights(facts),
        _facts(facts),
        _timeline(facts),
        no_leader(facts),
        too_few_in_sync(facts),
        leaders(facts),
        brokers(facts),
        controllers(facts),
        large_changes(facts),
        checks(facts),
        the_log(facts),
        _footer(facts),
    )
    head = tag(
        "head",
        void("meta", charset="utf-8"),
        void("meta", http_equiv="Content-Security-Policy", content=Markup(_policy())),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name="color-scheme", content="light dark"),
        void("meta", name="referrer", content="no-referrer"),
        Markup(GENERATOR),
        tag("title", _title(facts)),
        tag("style", Markup(STYLE)),
    )
    page = tag("html", head, tag("body", body, tag("script", Markup(SCRIPT))), lang="en")
    return f"<!doctype html>\n{page}\n"


def _policy() -> str:
    """Nothing but our own style sheet and script, by their hashes: a text that slipped through could do nothing."""
    style, script = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (STYLE, SCRIPT)
    )
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; "
        "form-action 'none'"
    )


def _title(facts: ReportFacts) -> str:
    return f"Metadata log of cluster {facts.log.cluster_id or 'unknown'}"


def _header(facts: ReportFacts) -> Markup:
    window = facts.window
    if window is None:
        when = "no records in this time"
    else:
        when = f"{stretch(window.start_ms, window.end_ms)} UTC ({duration(window.duration_ms)})"
    node = "" if facts.log.node_id is None else f"log of node {facts.log.node_id}, "
    return tag("header", tag("h1", _title(facts)), tag("p", node + when, class_="sub"))


def _highlights(facts: ReportFacts) -> Markup:
    items = (
        tag("li", each.text, " ", tag("a", "more", href=f"#{each.section}"), class_=f"is-{each.weight}")
        for each in highlights(facts)
    )
    return tag("ul", *items, class_="highlights")


def _facts(facts: ReportFacts) -> Markup:
    log, state = facts.log, facts.state
    serving = sum(broker.state == "unfenced" for broker in facts.brokers)
    registered = sum(broker.state != "unregistered" for broker in facts.brokers)
    if facts.window is None:
        brokers_known, of_them = "not known", ""
    elif facts.brokers_total > len(facts.brokers):
        brokers_known, of_them = count(facts.brokers_total), "in this time"
    else:
        brokers_known, of_them = count(registered), f"{count(serving)} unfenced at the end"
    extent = "none" if log.start_offset is None else f"{log.start_offset}\u2013{(log.end_offset or 0) - 1}"
    idle_gaps = facts.idle_gaps.total
    shown: list[tuple[str, str, str]] = [
        ("offsets", extent, counted(log.records, "record")),
        ("epochs", count(facts.epochs_total), counted(idle_gaps, "idle gap") if idle_gaps else ""),
        ("brokers", brokers_known, of_them),
        ("topics", count(state.topics), "at the end"),
        (
            "partitions",
            count(state.partitions),
            f"{count(state.under_replicated)} under-replicated at the end",
        ),
        (
            "leader changes",
            count(facts.leader_changes.total),
            f"{count(facts.leader_changes.unclean_total)} unclean",
        ),
        ("metadata.version", _version(facts), "at the end"),
        ("damage", count(log.damage_total), "places" if log.damage_total != 1 else "place"),
    ]
    return tag("dl", *(_fact(*each) for each in shown), class_="facts")


def _fact(name: str, value: Content, note: str) -> Markup:
    return tag("div", tag("dt", name), tag("dd", value, *((tag("small", note),) if note else ())))


def _version(facts: ReportFacts) -> str:
    return str(dict(facts.log.features).get("metadata.version", "not known"))


def _timeline(facts: ReportFacts) -> Markup:
    drawn = timeline(facts)
    return section("timeline", "What happened when", drawn, lead=_LEAD) if drawn else Markup()


def _footer(facts: ReportFacts) -> Markup:
    notes: list[Content] = ["Written by kquorum audit report from one log, as its controllers wrote it."]
    if facts.window is not None:
        notes.append(
            f" Columns are per {bucket_name(facts.window)}; where a number is a level, the highest counts. Times are "
            f"those of the controllers' clocks; the first record shown is of {moment(facts.window.start_ms)}."
        )
    if facts.brokers_total > len([each for each in facts.brokers if each.spans is not None]):
        notes.append(" Bars are drawn for the brokers that were fenced most often or longest out of service.")
    if facts.epochs_total > len(facts.epochs):
        notes.append(f" Only the longest {count(len(facts.epochs))} epochs are drawn.")
    if facts.idle_gaps.total > len(facts.idle_gaps.longest):
        notes.append(f" Only the longest {count(len(facts.idle_gaps.longest))} idle gaps are drawn.")
    return tag("footer", tag("p", joined(notes)))
