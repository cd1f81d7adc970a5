"""Tells the operator which leader this node follows and, without a leader, which peers are silent."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from kquorum.node.logs import log as notable_log
from kquorum.node.peers import Answer, Heard
from kquorum.raft.messages import MAX_EPOCH
from kquorum.raft.ready import RoleChanged
from kquorum.raft.voters import Endpoint, VoterSet
from kquorum.wire.wording import counted

FIRST_WARNING_MS: Final = 5_000
NEXT_WARNING_MS: Final = 30_000
LOOK_AGAIN_MS: Final = 500
log = logging.getLogger("node.leader_watch")

HeardFrom = Callable[[int], Heard | None]
Place = Callable[[int], Endpoint | None]


class LeaderWatch:
    """Made and used on the loop; call `handle_role` at each change of role.

    A replica that could not win goes back to the leader that it had given up, so a role alone does not prove that
    there is a leader: there is one when this node is it, or has fetched from it.
    """

    def __init__(
        self,
        is_led: Callable[[], bool],
        describe: Callable[[], str],
        first_ms: int = FIRST_WARNING_MS,
        next_ms: int = NEXT_WARNING_MS,
    ) -> None:
        """`describe` names the silent peers at the time of the call (`who_is_missing`)."""
        self._is_led = is_led
        self._describe = describe
        self._first_s = first_ms / 1000
        self._next_s = next_ms / 1000
        self._look_again_s = min(LOOK_AGAIN_MS, first_ms) / 1000
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._since = self._due = 0.0
        self._told: tuple[int, int] | None = None
        self._told_before_warning: tuple[int, int] | None = None

    def start(self) -> None:
        """From now on a leader is missed, until there is one."""
        if self._timer is None and not self._is_closed:
            self._since = self._loop.time()
            self._due = self._since + self._first_s
            self._look_later()

    def close(self) -> None:
        """No leader is missed any more: the node leaves."""
        self._is_closed = True
        self._disarm()

    def handle_role(self, change: RoleChanged, leader_id: int) -> None:
        self.start()
        if change.role == "follower":
            is_news = self._told != (leader_id, change.epoch)
            self._told = (leader_id, change.epoch)
            message = f"follows {leader_id} in epoch {change.epoch}: {change.cause}"
        else:
            is_news = change.role in ("leader", "resigned")
            self._told = None if change.role == "leader" else self._told
            message = f"{change.role} in epoch {change.epoch}: {change.cause}"
        (notable_log if is_news else log).info("%s", message)

    def _look(self) -> None:
        now = self._loop.time()
        if self._is_led():
            self._disarm()
            self._tell_end()
            return
        if now >= self._due:
            log.warning("waiting for a leader for %.0f s: %s", now - self._since, self._describe())
            self._told_before_warning = self._told
            self._due = now + self._next_s
        self._look_later()

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(self._look_again_s, self._look)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell_end(self) -> None:
        """A leader that was missed aloud and is back in its old epoch was announced long ago."""
        before, self._told_before_warning = self._told_before_warning, None
        if before is not None and before == self._told:
            notable_log.info("follows %d in epoch %d again", *before)


def why_no_election(epoch: int) -> str | None:
    """Why no node can be elected any more, however many answer; None where epochs are left."""
    if epoch < MAX_EPOCH:
        return None
    return (
        f"epoch {epoch} is the last one there is, so that no node can be elected any more; a voter that claimed such "
        'an epoch is broken or hostile, and kquorum.log names it (docs/troubleshooting.md, "The epochs are used up")'
    )


def who_is_missing(
    node_id: int, voters: VoterSet, servers: tuple[int, ...], place: Place, heard_from: HeardFrom
) -> str:
    """Which voters (or bootstrap servers, while no voter is known) do not answer, and how many are needed.

    `servers` are the ids of the bootstrap servers (-2, -3, ...); `place` gives a peer's address.
    """
    by_reason: dict[str, list[str]] = {}
    for peer_id in voters.others(node_id) if len(voters) else servers:
        heard = heard_from(peer_id)
        what = "not asked yet:" if heard is None else _WORDS[heard.answer]
        why = "" if heard is None else heard.why_not
        by_reason.setdefault(what, []).append(_peer(peer_id, why, place))
    parts = [f"{what} {', '.join(peers)}" for what, peers in sorted(by_reason.items(), key=_order)]
    if len(voters):
        parts.append(
            f"{voters.majority} of {counted(len(voters), 'voter')} {'is' if len(voters) == 1 else 'are'} needed"
        )
    else:
        parts.append("the voters are not known yet")
    return "; ".join(parts)


_WORDS: Final = {
    Answer.NONE: "no answer from",
    Answer.FOREIGN: "of another cluster:",
    Answer.USEFUL: "answering:",
}


def _order(by_reason: tuple[str, list[str]]) -> int:
    """Silent peers come first."""
    words = list(_WORDS.values())
    return words.index(by_reason[0]) if by_reason[0] in words else len(words)


def _peer(peer_id: int, why: str, place: Place) -> str:
    where = named_peer(peer_id, place(peer_id))
    return f"{where[:-1]}: {why})" if why and where.endswith(")") else f"{where} ({why})" if why else where


def named_peer(peer_id: int, endpoint: Endpoint | None) -> str:
    """`2 (host:port)`; a bootstrap server has no id but an address."""
    address = "address unknown" if endpoint is None else f"{endpoint.host}:{endpoint.port}"
    return f"{peer_id} ({address})" if peer_id >= 0 else address
