"""Whether this node still hears of commits. A broker that does not is cut off: it says so, once when that begins and
once when it ends, and goes on serving the image that it has, which is then as old as the last commit it heard of."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from kquorum.metadata.image.image import MetadataImage
from kquorum.node.logs import log as notable_log

# Without a commit for so long, a node whose quorum commits all the time (metadata.max.idle.interval.ms) is cut off.
CUT_OFF_AFTER_MS: Final = 5_000
CUT_OFF_AFTER_INTERVALS: Final = 10
# Records this old are history that is being read again, unless clocks differ that much.
CATCHING_UP_AFTER_MS: Final = 60_000
LOOK_EVERY_MS: Final = 250
log = logging.getLogger("node.commit_watch")


class Member(Protocol):
    """Of node.quorum_member.QuorumMember, what is watched here."""

    @property
    def idle_interval_ms(self) -> int: ...

    def now_ms(self) -> int: ...

    def ms_since_commit(self) -> int | None: ...

    def is_led(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """`reason` is why the node is not ready, empty where it is. `is_cut_off` is only said of a node that had heard of
    commits before. `offset` is the last in the image."""

    reason: str
    is_cut_off: bool
    ms_since_commit: int | None
    offset: int
    leader_epoch: int
    timestamp_ms: int

    @property
    def is_ready(self) -> bool:
        return not self.reason


class CommitWatch:
    """Made and used on the loop."""

    def __init__(self, member: Member, image: Callable[[], MetadataImage], *, warns: bool) -> None:
        """`warns`: this node serves clients, so it warns the operator (a controller already logs which peers are
        silent)."""
        self._member = member
        self._image = image
        self._warns = warns
        self._cut_off_at_ms: int | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def bound_ms(self) -> int:
        """How old the last commit may be."""
        return max(CUT_OFF_AFTER_MS, CUT_OFF_AFTER_INTERVALS * self._member.idle_interval_ms)

    def freshness(self) -> Freshness:
        """As of now."""
        since_ms = self._member.ms_since_commit()
        provenance = self._image().provenance
        is_cut_off = self._is_cut_off(since_ms)
        return Freshness(
            reason=self._why_not_ready(since_ms, provenance.timestamp_ms, is_cut_off=is_cut_off),
            is_cut_off=is_cut_off,
            ms_since_commit=since_ms,
            offset=provenance.last_contained_offset,
            leader_epoch=provenance.last_contained_epoch,
            timestamp_ms=provenance.timestamp_ms,
        )

    def start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY_MS / 1000, self.look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _is_cut_off(self, since_ms: int | None) -> bool:
        """Where nothing is committed for want of work, a leader that is heard says as much."""
        if since_ms is None or since_ms < self.bound_ms:
            return False
        return self._member.idle_interval_ms > 0 or not self._member.is_led()

    def _why_not_ready(self, since_ms: int | None, timestamp_ms: int, *, is_cut_off: bool) -> str:
        if since_ms is None:
            return "no commit was seen since this node started"
        if is_cut_off:
            return f"no commit was seen for {since_ms} ms, and {self.bound_ms} ms is the most that may pass"
        age_ms = self._member.now_ms() - timestamp_ms
        if timestamp_ms >= 0 and self._member.idle_interval_ms > 0 and age_ms > CATCHING_UP_AFTER_MS:
            return f"the metadata is still being read: its newest record is {age_ms // 1000} s old"
        return ""

    def look(self) -> None:
        """Tell what has changed, and look again soon."""
        now = self.freshness()
        if now.is_cut_off and self._cut_off_at_ms is None:
            self._begin(now)
        elif not now.is_cut_off and self._cut_off_at_ms is not None:
            self._end(now)
        self.start()

    def _begin(self, now: Freshness) -> None:
        since_ms = now.ms_since_commit or 0
        self._cut_off_at_ms = self._member.now_ms() - since_ms
        if self._warns:
            log.warning(
                "cut off from the quorum: no commit was seen for %.1f s. Clients are served the metadata as it was "
                "then, up to offset %d; what they ask to be changed has to wait",
                since_ms / 1000,
                now.offset,
            )

    def _end(self, now: Freshness) -> None:
        assert self._cut_off_at_ms is not None, "what did not begin cannot end"
        if self._warns:
            lasted_s = (self._member.now_ms() - self._cut_off_at_ms) / 1000
            notable_log.info(
                "commits are seen again after %.1f s: the metadata is up to offset %d", lasted_s, now.offset
            )
        self._cut_off_at_ms = None
