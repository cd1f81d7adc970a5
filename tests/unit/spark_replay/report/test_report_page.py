"""The page of a report: whole HTML that needs nothing from elsewhere, whatever stands in the log."""

import base64
import hashlib
import html
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from kquorum.spark_replay.report.facts import BrokerFacts, ReportFacts
from kquorum.spark_replay.report.html import escaped, tag
from kquorum.spark_replay.report.page import render
from tests.support.report_facts import (
    END,
    HOSTILE,
    START,
    empty_facts,
    facts_of_one_record,
    full_facts,
)

VOID = {"meta", "br", "rect", "line", "path"}


class Reader(HTMLParser):
    """Reads a page strictly: what is opened is closed, in order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID, f"<{tag}/> is no element without content"
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    def values(self, name: str) -> list[str]:
        return [
            value for _, attributes in self.tags for key, value in attributes.items() if key == name and value
        ]


PAGES: dict[str, Callable[[], ReportFacts]] = {
    "empty": empty_facts,
    "one record": facts_of_one_record,
    "full": full_facts,
    "hostile": lambda: full_facts(HOSTILE),
    "without brokers": lambda: replace(full_facts(), brokers=(), brokers_total=0),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_whole_and_needs_nothing_from_elsewhere(name: str) -> None:
    page = render(PAGES[name]())
    reader = Reader(page)
    assert "http:" not in page
    assert "https:" not in page
    assert not re.search(r"url\((?!#)", page)
    attributes = {key for _, found in reader.tags for key in found}
    assert not attributes & {"src", "style", "srcset", "action", "xlink:href"}
    assert not [key for key in attributes if key.startswith("on")]
    identifiers = reader.values("id")
    assert len(identifiers) == len(set(identifiers))
    assert {link.removeprefix("#") for link in reader.values("href")} <= set(identifiers)
    assert set(reader.values("aria-labelledby")) <= set(identifiers)


@pytest.mark.parametrize("name", PAGES)
def test_only_our_own_style_sheet_and_script_may_run(name: str) -> None:
    page = render(PAGES[name]())
    reader = Reader(page)
    (policy,) = [
        attributes["content"]
        for _, attributes in reader.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    for kind in ("style", "script"):
        (content,) = re.findall(f"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in str(policy)
    assert "default-src 'none'" in str(policy)
    assert "unsafe" not in str(policy)
    # The policy is the first thing after the character set: nothing is parsed without it.
    assert [tag for tag, _ in reader.tags][:4] == ["html", "head", "meta", "meta"]


def test_what_stands_in_a_log_is_text_and_nothing_else() -> None:
    hostile, plain = Reader(render(full_facts(HOSTILE))), Reader(render(full_facts("orders")))
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in plain.tags]
    told = "".join(hostile.texts)
    assert "<script>alert(1)</script>" in told
    assert "\\u202etxt.exe\\x1b[31m\\x00" in told
    assert not {"\u202e", "\x1b", "\x00"} & set(told)
    # Nothing that a log may hold is left out: it is to be seen as often as a harmless name.
    assert told.count("txt.exe") == "".join(plain.texts).count("orders")


def test_attributes_are_escaped_and_long_texts_cut() -> None:
    assert tag("a", "x", href='"><b>', class_=None) == '<a href="&quot;&gt;&lt;b&gt;">x</a>'
    assert escaped("ü & 1 < 2") == "ü &amp; 1 &lt; 2"
    assert len(html.unescape(escaped("&" * 2000))) == 1000


def test_an_empty_log_says_so() -> None:
    told = "".join(Reader(render(empty_facts())).texts)
    assert "The log holds no records of this time." in told
    assert "What happened when" not in told


def test_a_log_of_one_record_has_a_picture() -> None:
    page = render(facts_of_one_record())
    assert "controller 1: led 1 epoch" in page
    assert "nan" not in page.lower().replace("finance", "")
    assert "One epoch: controller 1 led all the time." in page


def test_a_damaged_log_does_not_show_that_nothing_happened() -> None:
    facts = facts_of_one_record()
    said = "the log is damaged at offset 1 and cannot be read beyond"
    damaged = replace(facts, log=replace(facts.log, damage_total=1, limits=(said,)))
    page = render(damaged)
    items = re.findall(r'<li class="is-(\w+)">(.*?)<a', page)
    assert items[0] == ("bad", "The log is damaged at offset 1 and cannot be read beyond. ")
    assert "led all the time" not in page
    assert "None in this time" not in page
    assert "No damage, no partition without a leader" not in page
    silent = replace(damaged, idle_gaps=replace(facts.idle_gaps, longer_than_ms=5000))
    assert re.search("no idle gap longer than [^<]*, as far as it can be read", render(silent))


def test_damage_is_reported_first() -> None:
    page = render(full_facts())
    items = re.findall(r'<li class="is-(\w+)">(.*?)<a', page)
    assert items[0] == ("bad", "The log is damaged in 2 places: what stood there is not on this page. ")
    order = ["bad", "warn", "note", "good"]
    assert [kind for kind, _ in items] == sorted((kind for kind, _ in items), key=order.index)


def test_authors_are_called_unknown_only_where_the_log_has_no_notes() -> None:
    noted = full_facts()
    page = render(noted)
    assert "Largest requests" in page
    assert "Largest batches without a note" in page
    assert "Authors are unknown" not in page
    unnamed = tuple(change for change in noted.large_changes if change.principal is None)
    without = render(replace(noted, log=replace(noted.log, has_notes=False), large_changes=unnamed))
    assert "Authors are unknown: Kafka&#x27;s own controllers" in without
    assert "Largest requests" not in without


def test_of_very_many_brokers_those_with_trouble_are_drawn_and_the_rest_counted() -> None:
    drawn = full_facts().brokers[0]
    others = tuple(
        BrokerFacts(
            broker_id=number,
            rack=None,
            state="unfenced",
            registrations=0,
            fencings=0,
            shutdowns=0,
            unfenced_ms=END - START,
            out_ms=0,
        )
        for number in range(2, 201)
    )
    page = render(replace(full_facts(), brokers=(drawn, *others), brokers_total=200))
    assert page.count('aria-label="broker ') == 1
    assert "199 other brokers" in page
    assert "199 of them never fenced" in page
