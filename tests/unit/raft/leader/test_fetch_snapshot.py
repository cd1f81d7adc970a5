"""What a leader answers to FetchSnapshot, after Kafka's KafkaRaftClientSnapshotTest (rule R10.4)."""

import pytest

from kquorum.raft.inputs import LogStartAdvanced, SnapshotWritten
from kquorum.raft.messages import SnapshotSlice
from kquorum.raft.ready import QuorumState
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import batch, key_of
from tests.support.raft.snapshots import SnapshotContext, leader_with

HERE = OffsetAndEpoch(1, 1)


def test_a_whole_snapshot_is_served_from_its_beginning() -> None:
    """testFetchSnapshotRequestAsLeader: written while it leads, and served from then on."""
    context = leader_with(log=[batch(0, 1), batch(1, 1, count=2)])
    assert context.ask(HERE).error is ErrorCode.snapshot_not_found
    context.feed(SnapshotWritten(HERE))
    response = context.ask(HERE)
    assert (response.error, response.snapshot_id, response.position) == (ErrorCode.none, HERE, 0)
    assert response.data == SnapshotSlice(HERE, 0, context.config.max_fetch_bytes)
    assert (response.leader_id, response.leader_epoch) == (1, context.node.leader_epoch)


def test_a_part_is_served_from_where_it_is_asked_for() -> None:
    """testPartialFetchSnapshotRequestAsLeader: the remainder needs no batch boundary to begin at."""
    context = leader_with(HERE)
    assert context.ask(HERE, max_bytes=70).data == SnapshotSlice(HERE, 0, 70)
    rest = context.ask(HERE, position=70)
    assert (rest.position, rest.data) == (70, SnapshotSlice(HERE, 70, context.config.max_fetch_bytes))


def test_at_least_one_byte_is_served() -> None:
    assert leader_with(HERE).ask(HERE, max_bytes=0).data == SnapshotSlice(HERE, 0, 1)


@pytest.mark.parametrize(
    "wanted", [OffsetAndEpoch(0, 0), OffsetAndEpoch(2, 1), OffsetAndEpoch(1, 0), OffsetAndEpoch(-1, -1)]
)
def test_a_snapshot_that_is_not_here_is_not_found(wanted: OffsetAndEpoch) -> None:
    """testFetchSnapshotRequestMissingSnapshot"""
    response = leader_with(HERE).ask(wanted)
    assert (response.error, response.data) == (ErrorCode.snapshot_not_found, b"")


def test_the_bootstrap_snapshot_is_here_and_not_found() -> None:
    """testFetchSnapshotRequestBootstrapSnapshot"""
    first_voters = OffsetAndEpoch(0, 0)
    context = leader_with(first_voters)
    assert context.node.replica.log.snapshots == (first_voters,)
    assert context.ask(first_voters).error is ErrorCode.snapshot_not_found


def test_one_that_was_given_up_is_not_found() -> None:
    newer = OffsetAndEpoch(3, 1)
    context = leader_with(HERE, newer)
    assert context.ask(HERE).error is ErrorCode.none
    context.feed(LogStartAdvanced(3))
    assert context.ask(HERE).error is ErrorCode.snapshot_not_found
    assert context.ask(newer).error is ErrorCode.none


def test_a_position_before_the_file_is_out_of_range() -> None:
    """testFetchSnapshotRequestWithInvalidPosition; where the file ends only the adapter knows."""
    context = leader_with(HERE)
    response = context.ask(HERE, position=-1)
    assert (response.error, response.data) == (ErrorCode.position_out_of_range, b"")
    assert (response.leader_id, response.leader_epoch) == (1, context.node.leader_epoch)


@pytest.mark.parametrize(
    ("difference", "error"), [(-1, ErrorCode.fenced_leader_epoch), (1, ErrorCode.unknown_leader_epoch)]
)
def test_a_request_of_another_epoch_gets_the_current_one(difference: int, error: ErrorCode) -> None:
    """testFetchSnapshotRequestWithOlderEpoch, testFetchSnapshotRequestWithNewerEpoch"""
    context = leader_with(HERE)
    epoch = context.node.leader_epoch
    response = context.ask(HERE, current_leader_epoch=epoch + difference)
    assert (response.error, response.leader_id, response.leader_epoch) == (error, 1, epoch)
    assert response.data == b""


def test_a_follower_serves_nothing_and_names_its_leader() -> None:
    """testFetchSnapshotRequestAsFollower"""
    context = SnapshotContext(log=[batch(0, 1, count=3)], snapshots=[HERE], state=QuorumState(leader_epoch=1))
    context.follow(2, 2)
    response = context.ask(HERE)
    assert (response.error, response.data) == (ErrorCode.not_leader_or_follower, b"")
    assert (response.leader_id, response.leader_epoch) == (2, 2)


@pytest.mark.parametrize("cluster_id", ["", "invalid-uuid"])
def test_another_cluster_is_refused_at_the_top(cluster_id: str) -> None:
    """testFetchSnapshotRequestClusterIdValidation"""
    response = leader_with(HERE).ask(HERE, cluster_id=cluster_id)
    assert (response.error, response.is_top_level) == (ErrorCode.inconsistent_cluster_id, True)


def test_a_request_without_a_cluster_id_is_served() -> None:
    """testFetchSnapshotRequestClusterIdValidation"""
    context = leader_with(HERE)
    for response in (context.ask(HERE), context.ask(HERE, cluster_id=None)):
        assert (response.error, response.is_top_level) == (ErrorCode.none, False)


def test_voters_that_fetch_a_snapshot_keep_their_leader_and_observers_do_not() -> None:
    """testLeaderShouldResignLeadershipIfNotGetFetchSnapshotRequestFromMajorityVoters"""
    context = leader_with(HERE)
    half_ms = context.config.check_quorum_timeout_ms // 2
    for fetcher in (2, 3, 4):
        context.advance(half_ms)
        assert context.node.role == "leader"
        assert context.ask(HERE, replica=key_of(fetcher)).error is ErrorCode.none
    context.advance(half_ms)
    assert context.node.role == "resigned"


def test_a_refused_fetch_does_not_keep_a_leader() -> None:
    context = leader_with(HERE)
    context.advance(context.config.check_quorum_timeout_ms - 1)
    assert context.ask(OffsetAndEpoch(2, 1)).error is ErrorCode.snapshot_not_found
    assert context.ask(HERE, position=-1).error is ErrorCode.position_out_of_range
    context.advance(1)
    assert context.node.role == "resigned"
