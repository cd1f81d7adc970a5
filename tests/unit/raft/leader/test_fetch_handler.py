"""How a leader serves a Fetch: how much, when at once and when later (KIP-1166; rule R6.4)."""

from dataclasses import replace

import pytest

from kquorum.raft.messages import FetchResponse, LogSlice
from kquorum.raft.ready import QuorumState
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, parse_batches
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.memory_log import MemoryLog
from tests.support.raft.context import RaftContext, batch

FOREVER_MS = 2**31 - 1
OBSERVER = 50


def leading(**config: int) -> tuple[RaftContext, int]:
    """A leader of two voters; its log holds two batches of three records, and its LeaderChange at offset 6."""
    log = [batch(0, 2, count=3), batch(3, 2, count=3)]
    context = RaftContext(voters=(1, 2), log=log, state=QuorumState(leader_epoch=2), **config)
    epoch = context.become_leader()
    assert context.log_end_offset == 7
    return context, epoch


def observe(context: RaftContext, known_high_watermark: int | None) -> FetchResponse | None:
    """A caught-up observer asks for more, and would wait for ever."""
    request = context.fetch(OBSERVER, context.log_end_offset, context.node.leader_epoch)
    response = context.receive(replace(request, max_wait_ms=FOREVER_MS, high_watermark=known_high_watermark))
    assert response is None or isinstance(response, FetchResponse)
    return response


# How much


def served(context: RaftContext, offset: int, max_bytes: int) -> tuple[LogBatch, ...]:
    """The batches that a voter at `offset` is sent, read off a log as the adapter reads them."""
    response = context.receive(replace(context.fetch(2, offset, last_epoch=2), max_bytes=max_bytes))
    assert isinstance(response.records, LogSlice)
    log = MemoryLog()
    log.append(context.log)
    data = log.read(response.records.start_offset, response.records.max_bytes)
    batches = parse_batches(data)
    assert sum(len(each.data) for each in batches) == len(data), "only whole batches"
    return batches


def test_a_fetch_without_a_bound_is_served_the_whole_log() -> None:
    context, _ = leading()
    assert [each.base_offset for each in served(context, 1, max_bytes=2**31 - 1)] == [0, 3, 6]


@pytest.mark.parametrize("max_bytes", [0, 1])
def test_a_fetch_of_next_to_nothing_is_served_one_batch(max_bytes: int) -> None:
    context, _ = leading()
    (only,) = served(context, 1, max_bytes)
    assert (only.base_offset, only.next_offset) == (0, 3)


def test_a_fetch_is_served_the_batches_that_fit() -> None:
    context, _ = leading()
    room = sum(len(each.data) for each in context.log[:2])
    assert [each.base_offset for each in served(context, 1, room)] == [0, 3]
    assert [each.base_offset for each in served(context, 1, room - 1)] == [0]


def test_a_fetch_is_served_no_more_than_the_leaders_own_bound() -> None:
    """Kafka takes the requester's word alone; here no peer may make a leader read gigabytes."""
    context, _ = leading(max_fetch_bytes=1)
    assert [each.base_offset for each in served(context, 1, max_bytes=2**31 - 1)] == [0]


# When


@pytest.mark.parametrize("known", [None, 7], ids=["a version that cannot say", "the same high watermark"])
def test_a_fetch_that_could_learn_nothing_waits(known: int | None) -> None:
    context, epoch = leading()
    context.receive(context.fetch(2, offset=7, last_epoch=epoch))
    assert context.node.high_watermark == 7
    assert observe(context, known) is None
    for _ in range(10):
        context.turn()
    assert context.last_request_id not in context.responses


def test_a_fetch_waits_while_neither_side_knows_a_high_watermark() -> None:
    context, _ = leading()
    assert context.node.high_watermark == -1
    assert observe(context, -1) is None


def test_a_new_leader_tells_no_high_watermark_before_its_epoch_has_committed() -> None:
    """It may have heard of an older one than others did, and a Kafka broker that hears of a lower one ends itself."""
    context = RaftContext(voters=(1, 2, 3), log=[batch(0, 2, count=3)], state=QuorumState(leader_epoch=2))
    context.answer(context.follow(3, 3), context.fetched(high_watermark=2))
    assert context.node.high_watermark == 2
    epoch = context.become_leader()
    told = context.receive(context.fetch(3, offset=3, last_epoch=2, known_high_watermark=3))
    assert (told.error, told.high_watermark) == (ErrorCode.none, -1)
    # What an observer could learn later is nothing that it may learn now.
    assert observe(context, 1) is None
    waiting = context.last_request_id
    told = context.receive(context.fetch(3, offset=4, last_epoch=epoch, known_high_watermark=3))
    assert told.high_watermark == 4
    answer = context.responses[waiting]
    assert isinstance(answer, FetchResponse)
    assert answer.high_watermark == 4


@pytest.mark.parametrize("known", [-1, 6])
def test_a_fetch_that_knows_an_older_high_watermark_is_answered_at_once(known: int) -> None:
    context, epoch = leading()
    context.receive(context.fetch(2, offset=7, last_epoch=epoch))
    response = observe(context, known)
    assert response is not None
    assert (response.error, response.high_watermark, response.records) == (ErrorCode.none, 7, b"")
    assert response.leader_epoch == epoch


def test_a_new_high_watermark_answers_all_who_wait() -> None:
    context, epoch = leading()
    context.receive(context.fetch(2, offset=7, last_epoch=epoch))
    context.node.propose(context.now_ms, epoch, [b"value"])
    context.turn()
    waiting = []
    for observer in (8, 9):
        request = context.fetch(observer, offset=8, last_epoch=epoch, known_high_watermark=7)
        assert context.receive(request) is None
        waiting.append(context.last_request_id)
    context.receive(context.fetch(2, offset=8, last_epoch=epoch, known_high_watermark=7))
    answers = [context.responses[request_id] for request_id in (*waiting, context.last_request_id)]
    assert [answer.high_watermark for answer in answers if isinstance(answer, FetchResponse)] == [8, 8, 8]


def test_a_voter_hears_of_a_commit_a_little_later_unless_records_come_first() -> None:
    context, epoch = leading(commit_notice_delay_ms=5)
    context.receive(context.fetch(2, offset=7, last_epoch=epoch))
    voters_fetch = context.last_request_id
    context.receive(context.fetch(2, offset=7, last_epoch=epoch, known_high_watermark=6))
    voters_fetch = context.last_request_id
    assert voters_fetch not in context.responses
    observers = context.receive(context.fetch(8, offset=7, last_epoch=epoch, known_high_watermark=6))
    assert isinstance(observers, FetchResponse)
    assert observers.high_watermark == 7
    context.advance(4)
    assert voters_fetch not in context.responses
    context.advance(1)
    answer = context.responses[voters_fetch]
    assert isinstance(answer, FetchResponse)
    assert (answer.high_watermark, answer.records) == (7, b"")


def test_records_come_with_the_high_watermark_that_a_voters_fetch_was_kept_for() -> None:
    context, epoch = leading(commit_notice_delay_ms=5)
    context.receive(context.fetch(2, offset=7, last_epoch=epoch, known_high_watermark=6))
    request_id = context.last_request_id
    assert context.node.high_watermark == 7
    assert request_id not in context.responses
    context.node.propose(context.now_ms, epoch, [b"value"])
    context.turn()
    answer = context.responses[request_id]
    assert isinstance(answer, FetchResponse)
    assert answer.high_watermark == 7
    assert answer.records


def test_a_diverging_fetch_is_never_parked() -> None:
    """The worked example: epochs 1 from 0, 3 from 3, 5 from 6, and a follower at offset 6 of epoch 2."""
    log = [batch(0, 1, count=3), batch(3, 3, count=3), batch(6, 5, count=3)]
    context = RaftContext(log=log, state=QuorumState(leader_epoch=5))
    context.become_leader()
    response = context.receive(context.fetch(2, offset=6, last_epoch=2))
    assert (response.error, response.diverging) == (ErrorCode.none, OffsetAndEpoch(3, 1))
    assert response.records == b""


def test_a_fetch_that_will_not_wait_is_answered_at_once() -> None:
    context, epoch = leading()
    request = context.fetch(2, offset=7, last_epoch=epoch, known_high_watermark=7)
    response = context.receive(replace(request, max_wait_ms=0))
    assert (response.error, response.records) == (ErrorCode.none, b"")


def test_a_replica_that_fetches_again_gives_its_earlier_fetch_up() -> None:
    context, epoch = leading()
    end_offset = context.node.log_end_offset
    request = context.fetch(2, offset=end_offset, last_epoch=epoch, known_high_watermark=end_offset)
    context.receive(request)
    for _ in range(100):
        assert context.receive(request) is None
        earlier = context.responses[context.last_request_id - 1]
        assert isinstance(earlier, FetchResponse)
        assert (earlier.error, earlier.records) == (ErrorCode.none, b"")
