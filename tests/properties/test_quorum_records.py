"""The records that say who votes, between values and bytes."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kquorum.raft.batches import leader_change_batch, quorum_batch
from kquorum.raft.voters import (
    Endpoint,
    KRaftVersionAt,
    ReplicaKey,
    VersionRange,
    Voter,
    VotersAt,
    VoterSet,
    quorum_records,
    voters_record,
)
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.control_records import KRaftVersionRecord
from kquorum.wire.log_batch import build_batch, parse_batches

INT16 = st.integers(-(2**15), 2**15 - 1)
ANY_VOTER = st.builds(
    Voter,
    st.builds(ReplicaKey, st.integers(0, 2**31 - 1), st.uuids()),
    st.lists(
        st.builds(Endpoint, st.text(max_size=9), st.text(max_size=20), st.integers(0, 65535)), max_size=3
    ).map(tuple),
    st.builds(VersionRange, INT16, INT16),
)
ANY_VOTERS = st.lists(ANY_VOTER, max_size=6, unique_by=lambda item: item.key.id).map(
    lambda them: VoterSet.of(*them)
)


@given(
    base_offset=st.integers(0, 2**60),
    changes=st.lists(ANY_VOTERS | st.integers(0, 2**15 - 1), min_size=1, max_size=4),
)
def test_what_a_batch_says_of_the_quorum_survives_the_bytes(
    base_offset: int, changes: list[VoterSet | int]
) -> None:
    written = quorum_batch(
        base_offset,
        3,
        1,
        [
            KRaftVersionRecord(k_raft_version=change) if isinstance(change, int) else voters_record(change)
            for change in changes
        ],
    )
    (read,) = parse_batches(written.data)
    expected = [
        KRaftVersionAt(offset, change) if isinstance(change, int) else VotersAt(offset, change)
        for offset, change in enumerate(changes, start=base_offset)
    ]
    assert list(quorum_records(read)) == expected


@given(voters=ANY_VOTERS, codec=st.sampled_from([CompressionCodec.NONE, CompressionCodec.LZ4]))
def test_data_and_other_control_records_say_nothing_of_the_quorum(
    voters: VoterSet, codec: CompressionCodec
) -> None:
    control = quorum_batch(0, 1, 1, [voters_record(voters)])
    same_bytes_as_data = build_batch(
        0, 1, 1, [(item.key, item.value) for item in control.records], codec=codec
    )
    assert list(quorum_records(same_bytes_as_data)) == []
    assert list(quorum_records(leader_change_batch(0, 1, 1, 1, [1, 2], [1]))) == []
    assert list(quorum_records(leader_change_batch(5, 1, 1, 1, [1], [1], [voters_record(voters)]))) == [
        VotersAt(6, voters)
    ]


@given(voters=st.lists(ANY_VOTER, max_size=6, unique_by=lambda item: item.key.id))
def test_voters_come_in_ascending_order_whatever_order_they_were_named_in(voters: list[Voter]) -> None:
    assert VoterSet.of(*voters) == VoterSet.of(*reversed(voters))
    assert list(VoterSet.of(*voters).ids) == sorted(item.key.id for item in voters)
    moved = [replace(item, endpoints=()) for item in voters]
    assert VoterSet.of(*voters).overlaps_majority_of(VoterSet.of(*moved)), "endpoints are no change of voters"
