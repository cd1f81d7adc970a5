"""What the demo says of the records that were acknowledged while a broker died."""

import sys

import pytest

from kquorum.cli.commands.demo import record_feed
from kquorum.cli.commands.demo.record_feed import KEYS, RECORDS_AT_A_TIME, RecordFeed
from kquorum.cli.processes import wait_until

# It answers as `kquorum produce --json` does: each line is appended by itself.
PRODUCES = """
import json, sys
for number, line in enumerate(sys.stdin):
    print(json.dumps({"partition": 0, "first_offset": number, "last_offset": number}), flush=True)
"""
STALLS = "import sys, threading; sys.stdin.read(); threading.Event().wait()"
GIVES_UP = "import sys; sys.stdin.readline(); sys.stderr.write('no leader\\n'); sys.exit(1)"


@pytest.fixture(scope="module")
def fed() -> RecordFeed:
    with RecordFeed([sys.executable, "-c", PRODUCES]) as feed:
        assert wait_until(lambda: feed.acknowledged >= RECORDS_AT_A_TIME, 30.0)
    return feed


def consumed(feed: RecordFeed) -> list[str]:
    return [f"key {number % KEYS}\t{number}" for number in range(feed.sent)]


def test_all_that_was_sent_is_there(fed: RecordFeed) -> None:
    assert fed.sent == fed.acknowledged >= RECORDS_AT_A_TIME
    assert fed.wrong(consumed(fed)) is None


def test_a_lost_a_doubled_and_a_displaced_record_are_said(fed: RecordFeed) -> None:
    lines = consumed(fed)
    for spoiled in (
        lines[:-1],
        [*lines, lines[5]],
        [lines[KEYS], *lines[1:KEYS], lines[0], *lines[KEYS + 1 :]],
    ):
        assert "are there, or in another order" in (fed.wrong(spoiled) or "")


def test_a_producer_that_gives_up_is_said() -> None:
    with RecordFeed([sys.executable, "-c", GIVES_UP]) as feed:
        assert wait_until(lambda: feed.error is not None, 30.0)
    assert "0 of" in (feed.wrong([]) or "")
    assert feed.error == "no leader"


def test_a_producer_that_stalls_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_feed, "_STALLED_AFTER_S", 0.2)
    with RecordFeed([sys.executable, "-c", STALLS]) as feed:
        assert wait_until(lambda: feed.sent > 0, 30.0)
    assert "got no acknowledgement" in (feed.wrong([]) or "")
