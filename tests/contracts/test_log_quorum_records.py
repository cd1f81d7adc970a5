"""What every LogStore tells of kraft.version and voters (LogSummary.quorum_records): files and the fake alike."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest
from crc32c import crc32c

from kquorum.raft.adapters.errors import QuorumRecordUnreadable
from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.quorum_checkpoint import read_quorum_checkpoint, write_quorum_checkpoint
from kquorum.raft.batches import leader_change_batch, quorum_batch
from kquorum.raft.voters import (
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
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.storage.segment import SegmentLimits
from kquorum.wire.control_records import KRaftVersionRecord
from kquorum.wire.log_batch import LogBatch, build_batch
from tests.support.fault_file_system import FaultFileSystem
from tests.support.memory_log import MemoryLog

Log = FileLog | MemoryLog


def voter(node_id: int, port: int = 9093) -> Voter:
    key = ReplicaKey(node_id, UUID(int=100 + node_id))
    return Voter(key, (Endpoint("CONTROLLER", f"c{node_id}", port),), VersionRange(0, 1))


FIRST = VoterSet.of(voter(1), voter(2))
SECOND = FIRST.with_voter(voter(3))
THIRD = SECOND.without(voter(2).key)
VERSION = KRaftVersionRecord(k_raft_version=1)
BOOTSTRAP: tuple[QuorumRecord, ...] = (KRaftVersionAt(-1, 1), VotersAt(-1, FIRST))


def data(offset: int, epoch: int = 1, records: int = 2) -> LogBatch:
    return build_batch(offset, epoch, 1000, [(None, b"v" * 20)] * records)


def voters_batch(offset: int, voters: VoterSet, epoch: int = 1) -> LogBatch:
    return quorum_batch(offset, epoch, 1000, [voters_record(voters)])


def a_log() -> list[LogBatch]:
    """A first epoch that takes the bootstrap checkpoint into the log (offsets 1 and 2), then two changes (5, 6)."""
    records = (VERSION, voters_record(FIRST))
    first = leader_change_batch(0, 1, 1000, 1, (1, 2), (1, 2), records)
    return [first, data(3), voters_batch(5, SECOND), voters_batch(6, THIRD), data(7)]


EXPECTED = (KRaftVersionAt(1, 1), VotersAt(2, FIRST), VotersAt(5, SECOND), VotersAt(6, THIRD))


@dataclass
class Place:
    """One and the same log, however often it is opened, and the voters that are put into its folder before."""

    kind: str
    folder: Path
    fs: FileSystem
    opened: list[Log] = field(default_factory=list)

    def begin_with(self, voters: VoterSet) -> None:
        write_quorum_checkpoint(self.folder, voters, 1000, self.fs)

    def __call__(self) -> Log:
        if self.kind != "memory":
            limits = SegmentLimits(segment_bytes=1_000_000 if self.kind == "files" else 300)
            self.opened.append(FileLog(self.folder, limits, fs=self.fs))
        elif not self.opened:
            self.opened.append(MemoryLog(read_quorum_checkpoint(self.folder)))
        return self.opened[-1]


@pytest.fixture(params=["memory", "files", "small segments", "fault disk"])
def open_log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "fault disk":
        place = Place(request.param, Path("/disk/log"), FaultFileSystem(Path("/disk")))
    else:
        place = Place(request.param, tmp_path, POSIX)
    yield place
    if place.opened:
        place.opened[-1].close()


def test_an_empty_log_of_a_static_quorum_says_nothing(open_log: Place) -> None:
    log = open_log()
    assert log.summary().quorum_records == log.quorum_records() == ()


def test_the_bootstrap_checkpoint_stands_before_the_log(open_log: Place) -> None:
    open_log.begin_with(FIRST)
    log = open_log()
    assert log.summary().quorum_records == BOOTSTRAP
    log.append(a_log())
    assert log.summary().quorum_records == (*BOOTSTRAP, *EXPECTED)


def test_records_stand_at_their_own_offsets_and_ascend(open_log: Place) -> None:
    log = open_log()
    written = a_log()
    log.append(written[:3])
    assert log.quorum_records() == EXPECTED[:3]
    log.append(written[3:])
    assert log.quorum_records() == EXPECTED
    assert VoterHistory.of(VoterSet({}), log.quorum_records()).voters == THIRD


def test_the_next_process_finds_the_same(open_log: Place) -> None:
    open_log.begin_with(FIRST)
    log = open_log()
    log.append(a_log())
    log.close()
    assert open_log().summary().quorum_records == (*BOOTSTRAP, *EXPECTED)


@pytest.mark.parametrize(("cut", "left"), [(7, 4), (6, 3), (5, 2), (3, 2), (0, 0)])
def test_a_cut_takes_back_what_stood_there_but_not_the_checkpoint(
    open_log: Place, cut: int, left: int
) -> None:
    open_log.begin_with(FIRST)
    log = open_log()
    log.append(a_log())
    log.truncate_to(cut)
    assert log.quorum_records() == (*BOOTSTRAP, *EXPECTED[:left])
    log.append([voters_batch(cut, SECOND, epoch=2)])
    expected = (*BOOTSTRAP, *EXPECTED[:left], VotersAt(cut, SECOND))
    assert log.quorum_records() == expected
    log.close()
    assert open_log().quorum_records() == expected


def test_random_changes_cuts_and_restarts_match_a_list(open_log: Place) -> None:
    random_source = random.Random(11)
    log = open_log()
    model: list[LogBatch] = []
    sets: dict[int, VoterSet] = {}
    for step in range(200):
        end = model[-1].next_offset if model else 0
        choice = random_source.random()
        if choice < 0.4:
            voters = VoterSet.of(voter(1), voter(2, port=step + 1))
            model.append(voters_batch(end, voters))
            sets[end] = voters
            log.append(model[-1:])
        elif choice < 0.8:
            model.append(data(end, records=random_source.randint(1, 4)))
            log.append(model[-1:])
        elif choice < 0.92:
            model = model[: random_source.randint(max(0, len(model) - 6), len(model))]
            log.truncate_to(model[-1].next_offset if model else 0)
        else:
            log.close()
            log = open_log()
        end = model[-1].next_offset if model else 0
        sets = {offset: voters for offset, voters in sets.items() if offset < end}
        assert log.quorum_records() == tuple(VotersAt(offset, voters) for offset, voters in sets.items())


def test_what_was_not_flushed_is_forgotten_by_a_crash() -> None:
    log = MemoryLog(BOOTSTRAP)
    written = a_log()
    log.append(written[:3])
    log.flush()
    log.append(written[3:])
    log.crash()
    assert log.quorum_records() == (*BOOTSTRAP, *EXPECTED[:3])


def test_a_torn_change_of_voters_is_cut_with_its_batch(tmp_path: Path) -> None:
    log = FileLog(tmp_path)
    log.append(a_log()[:4])
    log.close()
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-10])
    (tmp_path / "recovery-point").unlink()  # or it would say that all of this was durable
    reopened = FileLog(tmp_path)
    assert reopened.recovered_cut_bytes > 0
    assert reopened.quorum_records() == EXPECTED[:3]
    reopened.close()


def test_a_control_batch_that_makes_no_sense_is_damage_and_not_passed_over(tmp_path: Path) -> None:
    """Its checksum is right, so no crash wrote it; going on with the voters before it could be wrong."""
    log = FileLog(tmp_path)
    log.append([data(0)])
    log.close()
    broken = bytearray(voters_batch(2, SECOND).data)
    # Two records are announced where there is one; the checksum is made right for it.
    broken[57:61] = (2).to_bytes(4, "big")
    broken[17:21] = crc32c(bytes(broken[21:])).to_bytes(4, "big")
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(path.read_bytes() + broken)
    with pytest.raises(QuorumRecordUnreadable, match=r"valid checksum.*if the other voters are healthy"):
        FileLog(tmp_path)
