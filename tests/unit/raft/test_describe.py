"""DescribeQuorum: what the leader knows of everybody, and who forgets whom (KIP-595, KIP-836; rule R14)."""

from dataclasses import replace
from uuid import UUID

import pytest

from kquorum.raft.messages import DescribeQuorumResponse, ReplicaStatus
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import ReplicaKey
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import RaftContext

OBSERVER = 50
UNNAMED = ReplicaKey(-1)
# Fetch and check-quorum timeouts so long that time may pass.
PATIENT = 10_000_000


def leading(**config: int) -> tuple[RaftContext, int]:
    context = RaftContext(**config)
    epoch = context.become_leader()
    return context, epoch


def voter(response: DescribeQuorumResponse, replica_id: int) -> ReplicaStatus:
    return next(status for status in response.current_voters if status.replica_id == replica_id)


def progress(status: ReplicaStatus, start_ms: int) -> tuple[int, int, int]:
    """Log end offset and the two timestamps as milliseconds since `start_ms`; -1 stays -1."""
    times = (status.last_fetch_timestamp_ms, status.last_caught_up_timestamp_ms)
    return status.log_end_offset, *(time if time == -1 else time - start_ms for time in times)


@pytest.mark.parametrize(
    "state",
    [
        QuorumState(leader_epoch=3),
        QuorumState(leader_epoch=3, leader_id=2),
        QuorumState(leader_epoch=3, leader_id=1),
    ],
    ids=["unattached", "follower", "resigned"],
)
def test_only_a_leader_describes_the_quorum(state: QuorumState) -> None:
    response = RaftContext(state=state).describe()
    assert (response.error, response.is_top_level) == (ErrorCode.not_leader_or_follower, False)
    assert response.current_voters == ()


def test_a_new_leader_knows_only_its_own_offset() -> None:
    context, epoch = leading()
    context.now_ms += 25
    response = context.describe()
    assert (response.error, response.leader_id, response.leader_epoch) == (ErrorCode.none, 1, epoch)
    assert (response.high_watermark, response.observers) == (-1, ())
    assert response.current_voters == (
        ReplicaStatus(
            replica_id=1,
            log_end_offset=1,
            last_fetch_timestamp_ms=context.now_ms,
            last_caught_up_timestamp_ms=context.now_ms,
        ),
        ReplicaStatus(replica_id=2),
        ReplicaStatus(replica_id=3),
    )
    assert {status.directory_id for status in response.current_voters} == {UUID(int=0)}, "static voters"


def test_each_fetch_of_a_follower_shows() -> None:
    context, epoch = leading(fetch_timeout_ms=1_000)
    start_ms = context.now_ms
    context.receive(context.fetch(2, offset=0, last_epoch=0))
    response = context.describe()
    assert (progress(voter(response, 2), start_ms), response.high_watermark) == ((0, 0, -1), -1)

    context.now_ms += 100
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    response = context.describe()
    assert (progress(voter(response, 2), start_ms), response.high_watermark) == ((1, 100, 100), 1)

    context.now_ms += 100
    context.node.propose(context.now_ms, epoch, [b"a", b"b"])
    context.turn()
    context.receive(context.fetch(3, offset=1, last_epoch=epoch))
    response = context.describe()
    assert progress(voter(response, 3), start_ms) == (1, 200, -1)
    assert progress(voter(response, 2), start_ms) == (1, 100, 100)

    context.now_ms += 100
    context.receive(context.fetch(3, offset=3, last_epoch=epoch))
    response = context.describe()
    assert (progress(voter(response, 3), start_ms), response.high_watermark) == ((3, 300, 300), 3)

    context.advance(context.config.check_quorum_timeout_ms)
    assert context.describe().error is ErrorCode.not_leader_or_follower


def test_a_follower_that_reaches_what_the_log_was_at_its_last_fetch_was_caught_up_then() -> None:
    context, epoch = leading()
    start_ms = context.now_ms
    context.receive(context.fetch(2, offset=0, last_epoch=0))
    context.node.propose(context.now_ms, epoch, [b"a", b"b"])
    context.turn()
    context.now_ms += 100
    context.receive(context.fetch(2, offset=1, last_epoch=epoch))
    assert progress(voter(context.describe(), 2), start_ms) == (1, 100, 0)


def test_a_follower_that_falls_back_shows_it_and_nothing_else_does() -> None:
    context, epoch = leading()
    start_ms = context.now_ms
    context.node.propose(context.now_ms, epoch, [b"a", b"b"])
    context.turn()
    context.receive(context.fetch(2, offset=3, last_epoch=epoch))
    context.now_ms += 100
    context.receive(context.fetch(2, offset=0, last_epoch=0))
    response = context.describe()
    assert (progress(voter(response, 2), start_ms), response.high_watermark) == ((0, 100, 0), 3)


def test_an_observer_is_listed_until_it_has_been_silent_for_five_minutes() -> None:
    context, epoch = leading(fetch_timeout_ms=PATIENT, request_timeout_ms=PATIENT)
    start_ms = context.now_ms
    context.receive(context.fetch(OBSERVER, offset=0, last_epoch=0))
    (observer,) = context.describe().observers
    assert (observer.replica_id, observer.directory_id) == (OBSERVER, UUID(int=OBSERVER))
    assert progress(observer, start_ms) == (0, 0, -1)
    context.now_ms += 100
    context.receive(context.fetch(OBSERVER, offset=1, last_epoch=epoch))
    (observer,) = context.describe().observers
    assert progress(observer, start_ms) == (1, 100, 100)
    context.now_ms += 299_999
    assert len(context.describe().observers) == 1
    context.now_ms += 1
    assert context.describe().observers == ()


def test_a_reader_without_an_id_is_served_and_never_listed() -> None:
    context, epoch = leading()
    anonymous = replace(context.fetch(OBSERVER, offset=0, last_epoch=0), replica=UNNAMED)
    response = context.receive(anonymous)
    assert (response.error, response.leader_epoch) == (ErrorCode.none, epoch)
    described = context.describe()
    assert (described.observers, len(described.current_voters)) == ((), 3)


def test_a_static_voter_is_known_by_its_id_whatever_its_directory() -> None:
    context, epoch = leading()
    moved = replace(context.fetch(2, offset=1, last_epoch=epoch), replica=ReplicaKey(2, UUID(int=77)))
    context.receive(moved)
    response = context.describe()
    assert (response.observers, voter(response, 2).log_end_offset) == ((), 1)
