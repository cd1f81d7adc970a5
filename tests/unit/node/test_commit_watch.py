"""A node that no longer hears of commits says so: at once when asked, and in the log once each way."""

import asyncio
import logging
from dataclasses import dataclass, replace

import pytest

from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.node.commit_watch import CATCHING_UP_AFTER_MS, CUT_OFF_AFTER_MS, CommitWatch

START_MS = 1_700_000_000_000


@dataclass
class Member:
    idle_interval_ms: int = 500
    time_ms: int = START_MS
    commit_ms: int | None = None
    hears_a_leader: bool = True

    def now_ms(self) -> int:
        return self.time_ms

    def ms_since_commit(self) -> int | None:
        return None if self.commit_ms is None else self.time_ms - self.commit_ms

    def is_led(self) -> bool:
        return self.hears_a_leader


def image_at(timestamp_ms: int) -> MetadataImage:
    at = Provenance(last_contained_offset=77, last_contained_epoch=4, timestamp_ms=timestamp_ms)
    return replace(MetadataImage.empty(), provenance=at)


def watch(member: Member, *, warns: bool = True, timestamp_ms: int = START_MS) -> CommitWatch:
    return CommitWatch(member, lambda: image_at(timestamp_ms), warns=warns)


def test_a_node_is_not_ready_before_its_first_commit_and_not_cut_off_either() -> None:
    now = watch(Member()).freshness()
    assert not now.is_ready
    assert not now.is_cut_off
    assert "since this node started" in now.reason


@pytest.mark.parametrize(
    ("since_ms", "is_ready"), [(0, True), (CUT_OFF_AFTER_MS - 1, True), (CUT_OFF_AFTER_MS, False)]
)
def test_ready_is_who_saw_a_commit_within_the_bound(since_ms: int, is_ready: bool) -> None:
    member = Member(commit_ms=START_MS, time_ms=START_MS + since_ms)
    now = watch(member).freshness()
    assert (now.is_ready, now.is_cut_off) == (is_ready, not is_ready)
    assert (now.offset, now.leader_epoch, now.ms_since_commit) == (77, 4, since_ms)


def test_the_bound_grows_with_the_pause_between_commits_that_no_client_requested() -> None:
    assert watch(Member(idle_interval_ms=2_000)).bound_ms == 20_000


def test_where_an_idle_quorum_commits_nothing_its_leader_must_be_heard() -> None:
    member = Member(idle_interval_ms=0, commit_ms=START_MS, time_ms=START_MS + 3_600_000)
    assert watch(member).freshness().is_ready
    member.hears_a_leader = False
    assert watch(member).freshness().is_cut_off


def test_history_that_is_read_again_makes_no_node_ready() -> None:
    member = Member(commit_ms=START_MS)
    old = watch(member, timestamp_ms=START_MS - CATCHING_UP_AFTER_MS - 1_000).freshness()
    assert not old.is_ready
    assert not old.is_cut_off
    assert "still being read: its newest record is 61 s old" in old.reason


def lines_of(caplog: pytest.LogCaptureFixture, *, warns: bool) -> list[str]:
    async def main() -> None:
        member = Member(commit_ms=START_MS)
        watched = watch(member, warns=warns)
        for since_ms in (100, 6_000, 6_250, 9_000):
            member.time_ms = START_MS + since_ms
            watched.look()
        member.commit_ms = member.time_ms = START_MS + 12_000
        for _ in range(2):
            watched.look()
        watched.close()

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    return [record.getMessage() for record in caplog.records if "asyncio" not in record.name]


def test_a_broker_says_once_that_it_is_cut_off_and_once_that_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = lines_of(caplog, warns=True)
    assert first.startswith("cut off from the quorum: no commit was seen for 6.0 s")
    assert "up to offset 77" in first
    assert second.startswith("commits are seen again after 12.0 s: the metadata is up to offset 77")


def test_a_controller_leaves_that_to_the_watch_for_its_leader(caplog: pytest.LogCaptureFixture) -> None:
    assert lines_of(caplog, warns=False) == []
