"""From static voters to dynamic ones: kraft.version 0 to 1 (KIP-853; rule R11.5)."""

from dataclasses import replace
from uuid import UUID

import pytest

from kquorum.raft.errors import NotLeaderError
from kquorum.raft.messages import ChangeVotersResponse, UpdateRaftVoterRequest
from kquorum.raft.ready import VotersChanged
from kquorum.raft.voters import KRaftVersionAt, ReplicaKey, VersionRange, VotersAt, quorum_records
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.raft.context import LOCAL, RaftContext, key_of
from tests.support.raft.dynamic import BOTH, DynamicContext, endpoints_of, set_of

THREE = set_of(1, 2, 3)


@pytest.fixture
def leader() -> RaftContext:
    """Of a static quorum, with something committed in its epoch."""
    context = RaftContext(endpoints=endpoints_of(LOCAL))
    epoch = context.become_leader()
    context.receive(context.fetch(2, 1, epoch))
    return context


def report(context: RaftContext, *node_ids: int, versions: VersionRange = BOTH) -> None:
    for node_id in node_ids:
        request = UpdateRaftVoterRequest(
            cluster_id=None,
            current_leader_epoch=context.node.leader_epoch,
            voter=key_of(node_id),
            endpoints=endpoints_of(node_id),
            kraft_versions=versions,
        )
        response = context.receive(request)
        assert isinstance(response, ChangeVotersResponse)
        assert response.error is ErrorCode.none


def upgrade(context: RaftContext, version: int = 1, *, validate_only: bool = False) -> str | None:
    return context.node.upgrade_kraft_version(
        context.now_ms, context.node.leader_epoch, version, validate_only=validate_only
    )


def test_the_voters_that_reported_themselves_are_written_with_the_version_in_one_batch(
    leader: RaftContext,
) -> None:
    report(leader, 2, 3)
    assert upgrade(leader) is None
    assert leader.node.kraft_version == 1, "in force at once"
    ready = leader.node.take_ready(leader.now_ms)
    (written,) = ready.append
    assert list(quorum_records(written)) == [KRaftVersionAt(1, 1), VotersAt(2, THREE)]
    assert ready.voters_changed == VotersChanged(THREE, 1)


def test_a_voter_that_fetches_from_another_disk_than_it_reported_is_not_written_with_the_old_one(
    leader: RaftContext,
) -> None:
    """It came back with a replaced disk, and has not reported that yet: it would be no voter any more."""
    report(leader, 2, 3)
    fetch = leader.fetch(2, 1, leader.node.leader_epoch)
    leader.receive(replace(fetch, replica=ReplicaKey(2, UUID(int=99))))
    refusal = upgrade(leader)
    assert refusal is not None
    assert "node 2 fetches from another metadata folder" in refusal
    assert leader.node.kraft_version == 0
    leader.receive(replace(fetch, replica=ReplicaKey(2)))
    assert upgrade(leader, validate_only=True) is None, "releases before 3.9 do not name it"
    leader.receive(fetch)
    assert upgrade(leader) is None


def test_what_the_leader_knew_of_its_static_voters_it_knows_of_the_same_ones_with_a_key(
    leader: RaftContext,
) -> None:
    """LeaderStateTest.testUpdateVotersFromNoDirectoryIdToDirectoryId"""
    report(leader, 2, 3)
    upgrade(leader)
    leader.turn()
    ends = {status.replica_id: status.log_end_offset for status in leader.describe().current_voters}
    assert ends == {1: 3, 2: 1, 3: -1}
    leader.receive(leader.fetch(2, 3, leader.node.leader_epoch))
    assert leader.node.high_watermark == 3
    assert leader.describe().observers == ()


def test_afterwards_the_voters_can_be_changed(leader: RaftContext) -> None:
    report(leader, 2, 3)
    upgrade(leader)
    leader.turn()
    leader.receive(leader.fetch(2, 3, leader.node.leader_epoch))
    dynamic = DynamicContext(log=leader.log, voters=(), state=leader.state)
    assert dynamic.node.voters == THREE, "and they are what the next start reads"


def test_asking_whether_it_would_work_writes_nothing(leader: RaftContext) -> None:
    report(leader, 2, 3)
    assert upgrade(leader, validate_only=True) is None
    assert leader.turn().append == ()
    assert leader.node.kraft_version == 0


def test_the_version_in_force_is_no_change(leader: RaftContext) -> None:
    assert upgrade(leader, 0) is None
    assert leader.turn().append == ()


def test_a_voter_that_never_reported_itself_stands_in_the_way(leader: RaftContext) -> None:
    report(leader, 2)
    problem = upgrade(leader)
    assert problem is not None
    assert "node 3" in problem
    assert leader.node.kraft_version == 0


def test_a_voter_that_does_not_support_it_stands_in_the_way(leader: RaftContext) -> None:
    report(leader, 2)
    report(leader, 3, versions=VersionRange(0, 0))
    problem = upgrade(leader)
    assert problem is not None
    assert "node 3" in problem


@pytest.mark.parametrize("version", [-1, 2])
def test_unknown_versions_are_refused(leader: RaftContext, version: int) -> None:
    report(leader, 2, 3)
    assert upgrade(leader, version) is not None


def test_there_is_no_way_back() -> None:
    context = DynamicContext()
    context.lead()
    problem = upgrade(context, 0)
    assert problem is not None
    assert "back" in problem


def test_nothing_is_upgraded_before_a_record_of_the_epoch_is_committed() -> None:
    context = RaftContext(endpoints=endpoints_of(LOCAL))
    context.become_leader()
    report(context, 2, 3)
    assert upgrade(context) is not None


def test_only_the_leader_of_the_epoch_upgrades(leader: RaftContext) -> None:
    with pytest.raises(NotLeaderError):
        leader.node.upgrade_kraft_version(leader.now_ms, leader.node.leader_epoch - 1, 1)
    leader.begin(2, leader.node.leader_epoch + 1)
    with pytest.raises(NotLeaderError):
        upgrade(leader)


def test_a_report_is_forgotten_with_the_epoch(leader: RaftContext) -> None:
    """The next leader hears it itself."""
    report(leader, 2, 3)
    leader.begin(2, leader.node.leader_epoch + 1)
    leader.requests.clear()
    epoch = leader.become_leader()
    leader.receive(leader.fetch(2, leader.log_end_offset, epoch))
    assert upgrade(leader) is not None


def test_a_cut_takes_version_and_voters_back_together() -> None:
    leader = RaftContext(endpoints=endpoints_of(LOCAL))
    epoch = leader.become_leader()
    leader.receive(leader.fetch(2, 1, epoch))
    report(leader, 2, 3)
    upgrade(leader)
    leader.turn()
    assert leader.node.kraft_version == 1
    fetch = leader.follow(2, epoch + 1)
    leader.answer(fetch, leader.fetched(diverging=OffsetAndEpoch(1, epoch)))
    assert (leader.node.kraft_version, leader.node.voters.voters[2].endpoints) == (0, ())
