"""What the state machine hears, and when: commits in order, and a leadership only after all before it (rule R12.1).

A real core and a real commit feed; the rest of the quorum is played by the test.
"""

from typing import Any

import pytest

from kquorum.raft.adapters.delivery import CommitFeed
from kquorum.raft.inputs import ResignRequested
from kquorum.raft.messages import FetchRequest
from kquorum.raft.ready import QuorumState, Ready
from kquorum.wire.log_batch import LogBatch
from tests.support.memory_log import MemoryLog
from tests.support.raft.context import LOCAL, RaftContext, batch
from tests.support.state_machines import RecordingStateMachine


class HearingContext(RaftContext):
    """Carries each Ready out to a log and a commit feed as the driver does; `is_slow` holds the deliveries back."""

    def __init__(self, *args: Any, is_slow: bool = False, **kwargs: Any) -> None:
        self.store = MemoryLog()
        self.store.append(kwargs.get("log", ()))
        self.machine = RecordingStateMachine()
        self.feed_ = CommitFeed(self.store, self.machine, LOCAL, applied_offset=0)
        self.is_slow = is_slow
        super().__init__(*args, **kwargs)

    def carry_out(self, ready: Ready) -> None:
        super().carry_out(ready)
        if ready.truncate_to is not None:
            self.store.truncate_to(ready.truncate_to)
        self.store.append(ready.append)
        if ready.high_watermark is not None:
            self.feed_.advance(ready.high_watermark)
        if not self.is_slow:
            self.feed_.deliver(self.now_ms)
        if ready.leader is not None:
            self.feed_.lead_changed(self.now_ms, ready.leader)

    def hear(self) -> list[tuple[object, ...]]:
        """What was heard since the last call."""
        heard, self.machine.heard = self.machine.heard, []
        return heard

    def deliver_all(self) -> None:
        while self.feed_.has_more:
            self.feed_.deliver(self.now_ms)

    def fetch_answer(self, *batches: LogBatch, high_watermark: int) -> None:
        (fetch,) = self.sent(FetchRequest)[-1:]
        self.answer(fetch, self.fetched(*batches, high_watermark=high_watermark))


def leading(**options: Any) -> tuple[HearingContext, int]:
    context = HearingContext(**options)
    epoch = context.become_leader()
    context.hear()
    return context, epoch


# Leaders


def test_a_leaders_proposals_are_heard_when_a_followers_fetch_covers_them() -> None:
    context, epoch = leading()
    context.node.propose(context.now_ms, epoch, [b"a", b"b", b"c"])
    context.turn()
    context.receive(context.fetch(2, offset=0, last_epoch=0))
    assert (context.node.high_watermark, context.hear()) == (-1, [])
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    assert context.hear() == [("commit", 0, []), ("leader", 1, epoch)]
    context.receive(context.fetch(2, offset=4, last_epoch=epoch))
    assert context.hear() == [("commit", 1, [b"a", b"b", b"c"])]
    context.receive(context.fetch(3, offset=4, last_epoch=epoch))
    assert context.hear() == []


def test_a_leadership_is_announced_after_the_epochs_first_record_on_an_empty_log() -> None:
    context, epoch = leading()
    context.receive(context.fetch(2, offset=0, last_epoch=0))
    context.receive(context.fetch(50, offset=1, last_epoch=epoch))
    assert context.hear() == []
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    assert context.hear() == [("commit", 0, []), ("leader", 1, epoch)]


def test_a_leadership_is_announced_after_all_earlier_records() -> None:
    log = [batch(0, 2, count=3), batch(3, 3, count=3), batch(6, 3, count=3)]
    context, epoch = leading(log=log, state=QuorumState(leader_epoch=3))
    context.receive(context.fetch(2, offset=3, last_epoch=2))
    assert (context.node.high_watermark, context.hear()) == (-1, [])
    context.receive(context.fetch(2, offset=10, last_epoch=epoch))
    value = [b"value"] * 3
    assert context.hear() == [
        ("commit", 0, value),
        ("commit", 3, value),
        ("commit", 6, value),
        ("commit", 9, []),
        ("leader", 1, epoch),
    ]


def test_a_slow_state_machine_hears_of_its_leadership_when_it_has_caught_up() -> None:
    context, epoch = leading(is_slow=True)
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    assert (context.node.high_watermark, context.hear()) == (1, [])
    context.deliver_all()
    assert context.hear() == [("commit", 0, []), ("leader", 1, epoch)]


def test_an_unconfirmed_leadership_is_never_announced() -> None:
    context, epoch = leading()
    context.begin(leader_id=2, epoch=epoch + 1)
    context.fetch_answer(batch(1, epoch + 1), high_watermark=2)
    assert context.hear() == [("leader", 2, epoch + 1), ("commit", 0, []), ("commit", 1, [b"value"])]


def test_a_leader_that_resigns_tells_its_state_machine_that_there_is_no_leader() -> None:
    context, epoch = leading()
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    context.hear()
    context.feed(ResignRequested(epoch))
    assert context.hear() == [("leader", -1, epoch)]
    context.turn()
    assert context.hear() == []


def test_a_restarted_leader_is_not_announced_as_a_leader() -> None:
    context = HearingContext(state=QuorumState(leader_epoch=2, leader_id=1))
    assert context.node.role == "resigned"
    context.advance(100)
    assert context.hear() == [("leader", -1, 2)]


# Followers, and those in between


def test_a_follower_hears_only_what_the_leaders_high_watermark_covers() -> None:
    context = HearingContext(state=QuorumState(leader_epoch=5, leader_id=2))
    assert context.hear() == [("leader", 2, 5)]
    context.fetch_answer(batch(0, 5, count=2), high_watermark=0)
    assert context.hear() == []
    context.fetch_answer(batch(2, 5), high_watermark=2)
    assert context.hear() == [("commit", 0, [b"value"] * 2)]
    context.fetch_answer(high_watermark=3)
    assert context.hear() == [("commit", 2, [b"value"])]


def follower_with_commits() -> HearingContext:
    """Three records committed, none delivered to its slow state machine yet."""
    context = HearingContext(state=QuorumState(leader_epoch=5, leader_id=2), is_slow=True)
    context.fetch_answer(batch(0, 5, count=3), high_watermark=3)
    assert context.node.high_watermark == 3
    return context


def become_voted(context: HearingContext) -> None:
    assert context.ask_for_vote(3, epoch=6).vote_granted
    assert context.standing == ("unattached", 6, -1)


def become_candidate(context: HearingContext) -> None:
    context.become_candidate()
    assert context.standing == ("candidate", 6, -1)


@pytest.mark.parametrize("change", [become_voted, become_candidate])
def test_committed_records_are_delivered_also_without_a_leader(change: Any) -> None:
    context = follower_with_commits()
    change(context)
    assert context.node.high_watermark == 3
    context.deliver_all()
    assert context.hear() == [("leader", 2, 5), ("leader", -1, 6), ("commit", 0, [b"value"] * 3)]


def test_a_leaders_high_watermark_survives_its_leadership() -> None:
    context, epoch = leading(voters=(1, 2))
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    context.ask_for_pre_vote(2, epoch + 1)
    assert (context.standing, context.node.high_watermark) == (("unattached", epoch + 1, -1), 1)
    context.become_candidate()
    assert (context.standing, context.node.high_watermark) == (("candidate", epoch + 2, -1), 1)


def test_each_leader_is_announced_once_and_epochs_only_rise() -> None:
    context = HearingContext()
    context.begin(leader_id=2, epoch=3)
    context.begin(leader_id=2, epoch=3)
    context.ask_for_pre_vote(3, epoch=4)
    context.begin(leader_id=3, epoch=4)
    assert [entry[1:] for entry in context.hear()] == [(-1, 0), (2, 3), (-1, 4), (3, 4)]
