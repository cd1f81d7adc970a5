"""What `log verify` finds in the folders that nodes left counts against a run."""

from pathlib import Path

import pytest

from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict, check_safely
from tests.jepsen.checkers.verified import Verified
from tests.jepsen.core.history import History
from tests.jepsen.core.members import Members
from tests.support.images import broker_record, isr_change, partition_record, topic_records
from tests.support.sample_logs import LogBuilder

MEMBERS = Members.of(controllers=2, brokers=1)
BROKER = 11
WORLD: tuple[MetadataRecord, ...] = (
    broker_record(1),
    broker_record(2),
    *topic_records(7, "orders", partition_record(7, 0, (1, 2))),
)


class Run:
    """The folder of a run in which every node has the same log, and a snapshot at the end of its first batch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        log = LogBuilder().records(1000, *WORLD).records(2000, NoOpRecord()).records(3000, NoOpRecord())
        for node in MEMBERS.all:
            self.log_of(node).parent.mkdir(parents=True)
            self.log_of(node).write_bytes(log.data)
            self.seal(node, *WORLD)

    def log_of(self, node: int) -> Path:
        return self.path / "nodes" / str(node) / "data" / FOLDER_NAME / f"{0:020d}.log"

    def seal(self, node: int, *records: MetadataRecord, end_offset: int = len(WORLD)) -> None:
        """The snapshot of the state that these records make."""
        snapshot_id = SnapshotId(end_offset, 1)
        writer = SnapshotWriter(snapshot_id, timestamp_ms=5000, last_contained_log_timestamp_ms=1000)
        path = self.log_of(node).parent / snapshot_id.file_name
        path.write_bytes(b"".join(writer.write(map(encode_record, records))))

    def judged(self, *, disks_were_hurt: bool = False) -> Results:
        return check_safely(Verified(self.path, MEMBERS, disks_were_hurt=disks_were_hurt), History())


@pytest.fixture
def stored(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_sound_folders_are_valid(stored: Run) -> None:
    results = stored.judged()
    assert results[VALID_KEY] is Verdict.VALID, results
    assert results["records"] == len(MEMBERS.all) * (len(WORLD) + 2)


def test_a_snapshot_that_is_not_what_the_log_leads_to_is_a_violation(stored: Run) -> None:
    stored.seal(BROKER, *WORLD, isr_change(7, 0, (1,)))
    for disks_were_hurt in (False, True):
        results = stored.judged(disks_were_hurt=disks_were_hurt)
        assert results[VALID_KEY] is Verdict.INVALID
        assert (results["violation_count"], results["damaged_count"]) == (1, 0)
        assert results["violations"][0].startswith(f"node {BROKER}: snapshot = replay: ")


def test_a_record_that_the_state_before_it_refuses_is_a_violation(stored: Run) -> None:
    log = LogBuilder().records(1000, *WORLD).records(2000, isr_change(8, 0, (1,)))
    stored.log_of(1).write_bytes(log.data)
    results = stored.judged()
    assert (results[VALID_KEY], results["violation_count"]) == (Verdict.INVALID, 1)
    assert results["violations"][0].startswith("node 1: replay: ")


def test_damage_is_invalid_unless_disks_were_hurt_on_purpose(stored: Run) -> None:
    log = stored.log_of(2)
    content = bytearray(log.read_bytes())
    content[-10] ^= 1
    log.write_bytes(content + content[-70:])
    results = stored.judged()
    assert (results[VALID_KEY], results["violation_count"]) == (Verdict.INVALID, 0)
    assert results["damaged_count"] > 0
    assert all(each.startswith("node 2: ") for each in results["damaged"])
    assert stored.judged(disks_were_hurt=True) == results | {VALID_KEY: Verdict.VALID}


def test_more_findings_than_are_kept_are_counted(stored: Run) -> None:
    log = LogBuilder().records(1000, *WORLD)
    for _ in range(8):
        log.records(2000, isr_change(8, 0, (1,)))
    stored.log_of(1).write_bytes(log.data)
    results = stored.judged()
    assert (results["violation_count"], len(results["violations"])) == (8, 8)


def with_many_snapshots(run: Run, start: int, *wrong_at: int) -> Results:
    """A node whose log begins at `start`, with a snapshot at each offset from 4 to 15; some hold another state."""
    log = LogBuilder().records(1000, *WORLD)
    begins_at = 0
    while log.next_offset < 15:
        if log.next_offset == start:
            begins_at = len(log.data)
        log.records(1000, NoOpRecord())
    old = run.log_of(1)
    old.unlink()
    old.with_name(f"{start:020d}.log").write_bytes(log.data[begins_at:])
    for end_offset in range(len(WORLD), 16):
        wrong = (isr_change(7, 0, (1,)),) if end_offset in wrong_at else ()
        run.seal(1, *WORLD, *wrong, end_offset=end_offset)
    return run.judged()


def test_of_many_snapshots_the_oldest_the_newest_and_some_between_are_looked_at(stored: Run) -> None:
    results = with_many_snapshots(stored, 0, 4, 11, 15)
    assert (results[VALID_KEY], results["snapshots"]) == (Verdict.INVALID, 4 + 2)
    assert [each.split(": ")[2][18:20] for each in results["violations"]] == ["04", "11", "15"]


def test_of_many_snapshots_the_one_that_the_replay_begins_with_is_looked_at(stored: Run) -> None:
    results = with_many_snapshots(stored, 8, 8, 9)
    # What follows is compared with what that one led to, and differs.
    assert results["snapshots"] == 5 + 2
    assert results["violation_count"] > 1


def test_without_any_records_nothing_is_proved(stored: Run) -> None:
    for node in MEMBERS.all:
        folder = stored.log_of(node).parent
        for path in folder.iterdir():
            path.unlink()
        stored.log_of(node).write_bytes(b"")
    assert stored.judged()[VALID_KEY] is Verdict.UNKNOWN


def test_a_run_without_folders_of_nodes_is_unknown(tmp_path: Path) -> None:
    assert check_safely(Verified(tmp_path, MEMBERS), History())[VALID_KEY] is Verdict.UNKNOWN
