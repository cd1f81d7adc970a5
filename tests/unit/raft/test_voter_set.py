"""Voter sets and their history by example, after Kafka's VoterSetTest, VoterSetHistoryTest and
KRaftControlRecordStateMachineTest (rule R11.1). Random histories: tests/properties."""

from uuid import UUID

import pytest

from kquorum.raft.batches import quorum_batch
from kquorum.raft.voters import (
    NO_VOTERS,
    KRaftVersionAt,
    ReplicaKey,
    Voter,
    VoterHistory,
    VotersAt,
    VoterSet,
    voters_record,
)
from tests.support.raft.context import key_of
from tests.support.raft.dynamic import bootstrap, endpoints_of, set_of, voter_of

STATIC = VoterSet.of(*(Voter(ReplicaKey(node_id)) for node_id in (1, 2, 3)))


# VoterSetTest


def test_a_set_knows_its_voters_by_id_and_by_key() -> None:
    """testVoterNode, testVoterIds, testEndpoints"""
    voters = set_of(3, 1, 2)
    assert voters.ids == (1, 2, 3)
    assert voters.keys == {key_of(1), key_of(2), key_of(3)}
    assert voters.voters[2].endpoints == endpoints_of(2)
    assert 9 not in voters.voters
    assert voters.others(2) == (1, 3)
    assert voters.others(9) == (1, 2, 3)


@pytest.mark.parametrize(("size", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4)])
def test_a_majority_is_more_than_half(size: int, majority: int) -> None:
    assert set_of(*range(1, size + 1)).majority == majority


def test_a_voter_is_added_once() -> None:
    """testAddVoter"""
    assert set_of(1, 2).with_voter(voter_of(3)) == set_of(1, 2, 3)
    for directory in (2, 99):
        with pytest.raises(AssertionError):
            set_of(1, 2).with_voter(voter_of(2, directory))


def test_a_voter_is_removed_by_its_whole_key_and_the_last_one_stays() -> None:
    """testRemoveVoter, testCannotRemoveToEmptyVoterSet"""
    assert set_of(1, 2, 3).without(key_of(3)) == set_of(1, 2)
    for key in (key_of(9), ReplicaKey(3, UUID(int=99))):
        with pytest.raises(AssertionError):
            set_of(1, 2, 3).without(key)
    with pytest.raises(AssertionError):
        set_of(1).without(key_of(1))


def test_a_voter_is_updated_by_its_whole_key() -> None:
    """testUpdateVoter"""
    moved = Voter(key_of(2), endpoints_of(2, 1))
    assert set_of(1, 2).updated(moved).voters == {1: voter_of(1), 2: moved}
    for key in (key_of(9), ReplicaKey(2, UUID(int=99))):
        with pytest.raises(AssertionError):
            set_of(1, 2).updated(Voter(key, endpoints_of(2, 1)))


def test_a_voter_with_a_directory_is_matched_by_it_and_one_without_by_id() -> None:
    """testIsVoterWithDirectoryId, testIsVoterWithoutDirectoryId"""
    assert set_of(1).contains(key_of(1))
    assert not set_of(1).contains(ReplicaKey(1))
    assert not set_of(1).contains(ReplicaKey(1, UUID(int=99)))
    assert not set_of(1).contains(key_of(2))
    assert STATIC.contains(ReplicaKey(1))
    assert STATIC.contains(ReplicaKey(1, UUID(int=99)))
    assert not STATIC.contains(ReplicaKey(9, UUID(int=1)))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (set_of(1, 2, 3), set_of(1, 2, 3), True),
        (set_of(1, 2, 3), set_of(1, 2), True),
        (set_of(1, 2, 3), set_of(1, 2, 3, 4), True),
        (set_of(1, 2, 3), set_of(1, 2, 4), True),
        (set_of(1), set_of(2), True),
        (set_of(1, 2, 3), set_of(1), False),
        (set_of(1, 2, 3), set_of(1, 2, 3, 4, 5), False),
        (set_of(1, 2, 3), set_of(1, 4, 5), False),
        (set_of(1, 2, 3), VoterSet.of(voter_of(1), voter_of(2, 98), voter_of(3, 99)), False),
    ],
)
def test_one_voter_may_come_and_one_may_go(one: VoterSet, other: VoterSet, expected: bool) -> None:
    """testOverlappingMajority, testNonoverlappingMajority: the same id on another disk is another voter."""
    assert one.overlaps_majority_of(other) is expected
    assert other.overlaps_majority_of(one) is expected


# VoterSetHistoryTest


def test_the_static_set_counts_until_the_log_has_one() -> None:
    """testStaticVoterSet"""
    history = VoterHistory(STATIC)
    assert (history.voters, history.voters_offset, history.voters_at(1000)) == (STATIC, -1, STATIC)
    history.add(VotersAt(100, set_of(1, 2, 4)))
    assert history.voters_at(99) == STATIC
    assert history.voters == history.voters_at(100) == set_of(1, 2, 4)


def test_without_a_static_set_there_is_none() -> None:
    """TestNoStaticVoterSet, testEmptyPartitionWithNoStaticVoters"""
    history = VoterHistory()
    assert (history.voters, history.kraft_version) == (NO_VOTERS, 0)
    history.add(VotersAt(100, set_of(1, 2, 3)))
    history.truncate_to(100)
    assert history.voters == NO_VOTERS


def test_sets_are_added_in_ascending_order() -> None:
    """testAddAt"""
    history = VoterHistory(STATIC)
    history.add(VotersAt(100, set_of(1, 2, 3)))
    for offset in (99, 100, -1):
        with pytest.raises(AssertionError):
            history.add(VotersAt(offset, set_of(1, 2)))
    history.add(VotersAt(101, set_of(1, 2)))
    assert [history.voters_at(offset).ids for offset in (100, 101, 200)] == [(1, 2, 3), (1, 2), (1, 2)]


@pytest.mark.parametrize("before", [VoterHistory(STATIC), VoterHistory.of(NO_VOTERS, bootstrap((1, 2, 3)))])
def test_what_stood_before_the_log_is_no_predecessor(before: VoterHistory) -> None:
    """testNonoverlappingFromStaticVoterSet, testBootstrapAddAt"""
    before.add(VotersAt(0, set_of(4, 5, 6)))
    assert before.voters == set_of(4, 5, 6)


def test_two_sets_of_the_log_differ_by_one_change() -> None:
    """testAddAtNonOverlapping"""
    history = VoterHistory(STATIC)
    history.add(VotersAt(100, set_of(1, 2, 3)))
    for voters in (set_of(1), set_of(1, 2, 3, 4, 5), set_of(1, 4, 5)):
        with pytest.raises(AssertionError):
            history.add(VotersAt(200, voters))
        batch = quorum_batch(200, 1, 1, [voters_record(voters)])
        assert not history.accepts([], batch), "and from a peer it is not taken"
    assert history.voters == set_of(1, 2, 3)


def test_a_peers_batch_is_judged_by_what_stands_before_it_in_the_same_answer() -> None:
    history = VoterHistory.of(NO_VOTERS, [VotersAt(0, set_of(1, 2, 3))])
    first = quorum_batch(1, 1, 1, [voters_record(set_of(1, 2))])
    second = quorum_batch(2, 1, 1, [voters_record(set_of(1))])
    assert history.accepts([], first)
    assert history.accepts([first], second)
    assert not history.accepts([], second)
    assert not history.accepts([], quorum_batch(1, 1, 1, [voters_record(NO_VOTERS)]))


def test_a_cut_takes_back_what_stood_at_and_above_it() -> None:
    """testTruncateTo"""
    for end_offset, expected in (
        (251, (1,)),
        (250, (1, 2)),
        (201, (1, 2)),
        (200, (1, 2, 3)),
        (100, (1, 2, 3)),
    ):
        history = VoterHistory(STATIC)
        for offset, voters in ((100, set_of(1, 2, 3)), (200, set_of(1, 2)), (250, set_of(1))):
            history.add(VotersAt(offset, voters))
        history.truncate_to(end_offset)
        assert history.voters.ids == expected, end_offset
        assert (history.voters == STATIC) is (end_offset == 100)


def test_a_trim_keeps_what_is_in_force_where_the_log_begins() -> None:
    """testTrimPrefixTo"""
    history = VoterHistory(STATIC)
    for offset, voters in ((100, set_of(1, 2, 3)), (200, set_of(1, 2)), (250, set_of(1))):
        history.add(VotersAt(offset, voters))
    history.trim_to(199)
    assert history.voters_at(198) == set_of(1, 2, 3)
    history.trim_to(250)
    assert history.voters_at(249) == set_of(1, 2), "the snapshot's, should the record at 250 be cut off"
    history.truncate_to(250)
    assert history.voters == set_of(1, 2)


# KRaftControlRecordStateMachineTest


def test_the_log_overrides_what_a_snapshot_says_and_falls_back_on_it() -> None:
    """testUpdateWithSnapshot, testUpdateWithSnapshotAndLogOverride"""
    snapshot = [KRaftVersionAt(99, 1), VotersAt(99, set_of(1, 2, 3))]
    history = VoterHistory.of(STATIC, [*snapshot, VotersAt(150, set_of(1, 2))])
    assert (history.voters, history.kraft_version) == (set_of(1, 2), 1)
    assert (history.voters_at(149), history.kraft_version_at(99), history.kraft_version_at(98)) == (
        set_of(1, 2, 3),
        1,
        0,
    )
    history.truncate_to(150)
    assert history.voters == set_of(1, 2, 3)


def test_version_and_voters_come_and_go_with_their_own_records() -> None:
    """testUpdateWithoutSnapshot, testTruncateTo, testTrimPrefixTo"""
    history = VoterHistory(STATIC)
    history.add(KRaftVersionAt(10, 1))
    history.add(VotersAt(11, set_of(1, 2, 3)))
    history.truncate_to(11)
    assert (history.kraft_version, history.voters) == (1, STATIC)
    history.truncate_to(10)
    assert (history.kraft_version, history.kraft_version_offset) == (0, -1)
