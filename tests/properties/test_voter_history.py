"""The voters by offset under random histories, against a twin that keeps everything and recomputes each answer."""

from bisect import bisect_right
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run

from kquorum.raft.batches import leader_change_batch, quorum_batch
from kquorum.raft.voters import (
    ZERO_DIRECTORY,
    Endpoint,
    KRaftVersionAt,
    QuorumRecord,
    ReplicaKey,
    VersionRange,
    Voter,
    VoterHistory,
    VotersAt,
    VoterSet,
    voters_record,
)
from kquorum.wire.control_records import KRaftVersionRecord
from kquorum.wire.log_batch import build_batch

# Few ids and directories, so that replicas come back, also with another disk.
IDS = st.integers(1, 6)
DIRECTORIES = st.integers(1, 3).map(lambda number: UUID(int=number))
PORTS = st.sampled_from([0, 9093, 65535])
Twin = dict[int, Voter]
T = TypeVar("T")


def voter(node_id: int, directory_id: UUID, port: int) -> Voter:
    endpoints = (Endpoint("CONTROLLER", f"node{node_id}", port),)
    return Voter(ReplicaKey(node_id, directory_id), endpoints, VersionRange(0, 1))


def static_voter(node_id: int) -> Voter:
    return Voter(ReplicaKey(node_id))


VOTERS = st.builds(voter, IDS, DIRECTORIES, PORTS)
VOTER_SETS = st.lists(VOTERS, min_size=1, max_size=5, unique_by=lambda item: item.key.id)


class VoterHistoryMachine(RuleBasedStateMachine):
    """The twin: every (offset, set) and (offset, kraft.version) of the log as plain lists, trimmed by nothing.

    `start` is where the log begins. What is asked of the history reaches back to the offset before it: the voters of
    the snapshot that the log begins with.
    """

    make: Callable[[VoterSet], VoterHistory] = VoterHistory

    @initialize(
        static=st.none() | st.lists(IDS, min_size=1, max_size=4, unique=True),
        bootstrap=st.none() | VOTER_SETS,
    )
    def begin(self, static: list[int] | None, bootstrap: list[Voter] | None) -> None:
        self.static = {node_id: static_voter(node_id) for node_id in static or ()}
        self.history = type(self).make(VoterSet.of(*self.static.values()))
        self.sets: list[tuple[int, Twin]] = []
        self.versions: list[tuple[int, int]] = []
        self.start = 0
        self.end = 0
        self.epoch = 1
        if bootstrap is not None:
            self.add(KRaftVersionAt(-1, 1))
            self.add(VotersAt(-1, VoterSet.of(*bootstrap)))

    def add(self, record: QuorumRecord) -> None:
        self.history.add(record)
        self.note(record)

    def note(self, record: QuorumRecord) -> None:
        if isinstance(record, KRaftVersionAt):
            self.versions.append((record.offset, record.kraft_version))
        else:
            self.sets.append((record.offset, dict(record.voters.voters)))

    @property
    def voters(self) -> Twin:
        return self.sets[-1][1] if self.sets else self.static

    @property
    def is_first_in_log(self) -> bool:
        return not self.sets or self.sets[-1][0] == -1

    # What a log is made of

    @rule(records=st.integers(1, 3))
    def append_data(self, records: int) -> None:
        batch = build_batch(self.end, self.epoch, 1, [(None, b"value")] * records)
        self.history.append(batch)
        self.end = batch.next_offset

    @rule()
    def begin_epoch(self) -> None:
        self.epoch += 1
        batch = leader_change_batch(self.end, self.epoch, 1, 1, self.voters, [1])
        self.history.append(batch)
        self.end = batch.next_offset

    @precondition(lambda self: self.is_first_in_log)
    @rule(voters=VOTER_SETS)
    def write_first_set(self, voters: list[Voter]) -> None:
        """The first leader's batch: whatever stood before the log (static, bootstrap) is no predecessor."""
        self.epoch += 1
        changed = VoterSet.of(*voters)
        records = (KRaftVersionRecord(k_raft_version=1), voters_record(changed))
        batch = leader_change_batch(self.end, self.epoch, 1, 1, changed.ids, [1], records)
        self.history.append(batch)
        self.note(KRaftVersionAt(self.end + 1, 1))
        self.note(VotersAt(self.end + 2, changed))
        self.end = batch.next_offset

    def append_set(self, changed: VoterSet) -> None:
        batch = quorum_batch(self.end, self.epoch, 1, [voters_record(changed)])
        self.history.append(batch)
        self.note(VotersAt(self.end, changed))
        self.end = batch.next_offset

    @precondition(lambda self: not self.is_first_in_log)
    @rule(added=VOTERS)
    def add_voter(self, added: Voter) -> None:
        if added.key.id in self.voters:
            with pytest.raises(AssertionError):
                self.history.voters.with_voter(added)
            return
        self.append_set(self.history.voters.with_voter(added))
        assert self.voters[added.key.id] == added

    @precondition(lambda self: not self.is_first_in_log)
    @rule(data=st.data())
    def remove_voter(self, data: st.DataObject) -> None:
        node_id = data.draw(st.sampled_from(sorted(self.voters)))
        key = self.voters[node_id].key
        if len(self.voters) == 1:
            with pytest.raises(AssertionError):
                self.history.voters.without(key)
            return
        self.append_set(self.history.voters.without(key))
        assert node_id not in self.voters

    @precondition(lambda self: not self.is_first_in_log)
    @rule(data=st.data(), port=PORTS)
    def update_voter(self, data: st.DataObject, port: int) -> None:
        known = self.voters[data.draw(st.sampled_from(sorted(self.voters)))]
        before = {key for key in self.voters if key != known.key.id}
        self.append_set(self.history.voters.updated(voter(known.key.id, known.key.directory_id, port)))
        assert {key for key in self.voters if key != known.key.id} == before

    @precondition(lambda self: not self.is_first_in_log)
    @rule(voters=VOTER_SETS)
    def more_than_one_change_is_our_bug(self, voters: list[Voter]) -> None:
        changed = VoterSet.of(*voters)
        old, new = {item.key for item in self.voters.values()}, {item.key for item in voters}
        is_one_change = len(old - new) <= 1 and len(new - old) <= 1
        batch = quorum_batch(self.end, self.epoch, 1, [voters_record(changed)])
        assert self.history.accepts([], batch) == is_one_change, "what a peer sent is asked about first"
        if is_one_change:
            self.append_set(changed)
            return
        with pytest.raises(AssertionError):
            self.history.append(batch)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """An uncommitted tail goes, never what a snapshot holds."""
        self.end = data.draw(st.integers(self.start, self.end))
        self.history.truncate_to(self.end)
        self.sets = [entry for entry in self.sets if entry[0] < self.end]
        self.versions = [entry for entry in self.versions if entry[0] < self.end]

    @rule(data=st.data())
    def trim(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.history.trim_to(self.start)

    @rule()
    def restart(self) -> None:
        """What is read again at start: the newest of what the snapshot before the log holds, and the log's own."""
        records = sorted(
            [
                VotersAt(offset, VoterSet.of(*kept.values()))
                for offset, kept in retained(self.sets, self.start)
            ]
            + [KRaftVersionAt(offset, version) for offset, version in retained(self.versions, self.start)],
            key=lambda record: record.offset,
        )
        self.history = type(self).make(VoterSet.of(*self.static.values()))
        for record in records:
            self.history.add(record)

    # What must hold after every step

    @invariant()
    def the_newest_counts(self) -> None:
        assert dict(self.history.voters.voters) == self.voters
        assert self.history.voters_offset == (self.sets[-1][0] if self.sets else -1)
        assert self.history.kraft_version == (self.versions[-1][1] if self.versions else 0)
        assert self.history.kraft_version_offset == (self.versions[-1][0] if self.versions else -1)

    @invariant()
    def every_offset_has_the_voters_that_were_in_force(self) -> None:
        for offset in range(self.start - 1, self.end + 2):
            sets = [entry[1] for entry in self.sets if entry[0] <= offset]
            versions = [version for at, version in self.versions if at <= offset]
            assert dict(self.history.voters_at(offset).voters) == (sets[-1] if sets else self.static), offset
            assert self.history.kraft_version_at(offset) == (versions[-1] if versions else 0), offset

    @invariant()
    def a_replica_that_voted_and_does_not_is_known_as_removed(self) -> None:
        once = [kept for _, kept in retained(self.sets, self.start)]
        for node_id in range(1, 7):
            for number in range(1, 4):
                key = ReplicaKey(node_id, UUID(int=number))
                voted = any(key == kept[node_id].key for kept in once if node_id in kept)
                votes = is_voter(self.voters, key)
                assert self.history.was_removed(key) == (voted and not votes), key


def retained(entries: list[tuple[int, T]], start_offset: int) -> list[tuple[int, T]]:
    """What a log that begins at `start_offset` and the snapshot before it hold."""
    in_snapshot = [entry for entry in entries if entry[0] < start_offset][-1:]
    return in_snapshot + [entry for entry in entries if entry[0] >= start_offset]


def is_voter(voters: Twin, key: ReplicaKey) -> bool:
    known = voters.get(key.id)
    return known is not None and known.key.directory_id in (ZERO_DIRECTORY, key.directory_id)


class TruncatesOneTooLittle(VoterHistory):
    """The planted bug: the set that stood exactly at the cut is kept."""

    def truncate_to(self, end_offset: int) -> None:
        super().truncate_to(end_offset + 1)


class ForgetsWhatTheSnapshotHolds(VoterHistory):
    """The planted bug: all that stood below the log's start goes, also the set that was in force there."""

    def trim_to(self, start_offset: int) -> None:
        position = bisect_right(self._sets, start_offset - 1, key=lambda entry: entry.offset)
        del self._sets[:position]


class WaitsForTheCommit(VoterHistory):
    """The planted bug: the newest set of the log counts one step late."""

    def add(self, record: QuorumRecord) -> None:
        super().add(record)
        self.voters = self._sets[-2].voters if len(self._sets) > 1 else self.voters


def check(machine: type[VoterHistoryMachine], examples: int, *phases: Phase) -> None:
    run(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            database=None,
            phases=phases,
            # What is planted must be found by every run; what is not planted is looked for in other places each time.
            derandomize=Phase.shrink not in phases,
            report_multiple_bugs=False,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def test_any_history_answers_like_the_plain_list() -> None:
    check(VoterHistoryMachine, 150, Phase.generate, Phase.shrink)


@pytest.mark.parametrize("mutant", [TruncatesOneTooLittle, ForgetsWhatTheSnapshotHolds, WaitsForTheCommit])
def test_a_planted_bug_is_seen(mutant: type[VoterHistory]) -> None:
    class Machine(VoterHistoryMachine):
        make = mutant

    with pytest.raises(AssertionError):
        check(Machine, 500, Phase.generate)
