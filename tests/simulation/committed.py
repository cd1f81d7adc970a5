"""What was committed, in the order of the log, and what it makes of the state machine and of the voters."""

from bisect import bisect_left, bisect_right

from kquorum.raft.voters import NO_VOTERS, KRaftVersionAt, QuorumRecord, VotersAt, quorum_records
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch
from tests.simulation.errors import InvariantBroken
from tests.simulation.snapshot_files import next_state, quorum_records_at


class CommittedLog:
    """Known independent of the replicas' own memory; `epochs` says in which epoch each batch was committed, `states`
    what the state machine is after it."""

    def __init__(self) -> None:
        self.batches: list[LogBatch] = []
        self.ends: list[int] = []
        self.epochs: list[int] = []
        self.states: list[int] = []
        self.before: tuple[QuorumRecord, ...] = ()
        self._said: list[QuorumRecord] = []

    @property
    def end_offset(self) -> int:
        return self.ends[-1] if self.ends else 0

    def add(self, batch: LogBatch, leader_epoch: int) -> None:
        self.states.append(next_state(self.states[-1] if self.states else 0, batch))
        self.batches.append(batch)
        self.ends.append(batch.last_offset + 1)
        self.epochs.append(max(leader_epoch, self.epochs[-1] if self.epochs else 0))
        if batch.is_control:
            self._said.extend(quorum_records(batch))

    def position_of(self, offset: int) -> int:
        """Which batch holds this offset."""
        return bisect_right(self.ends, offset)

    def position_before_epoch(self, leader_epoch: int) -> int:
        """How many batches were committed in epochs before this one."""
        return bisect_left(self.epochs, leader_epoch)

    def state_at(self, end_offset: int) -> int:
        """The state machine after everything below an offset, which must end a committed batch."""
        return self.states[self._last_before(end_offset)] if end_offset else 0

    def id_at(self, end_offset: int) -> OffsetAndEpoch:
        return OffsetAndEpoch(end_offset, self.batches[self._last_before(end_offset)].leader_epoch)

    def _last_before(self, end_offset: int) -> int:
        position = bisect_left(self.ends, end_offset)
        if position == len(self.ends) or self.ends[position] != end_offset:
            raise InvariantBroken(f"no committed batch ends at offset {end_offset}")
        return position

    def quorum_at(self, end_offset: int) -> tuple[QuorumRecord, ...]:
        """What a snapshot that ends there must say of the quorum."""
        said = [*self.before, *(record for record in self._said if record.offset < end_offset)]
        versions = [record.kraft_version for record in said if isinstance(record, KRaftVersionAt)]
        sets = [record.voters for record in said if isinstance(record, VotersAt)]
        return quorum_records_at(end_offset, versions[-1] if versions else 0, sets[-1] if sets else NO_VOTERS)
