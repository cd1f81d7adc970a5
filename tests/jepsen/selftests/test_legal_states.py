"""Logs made by hand: which states of a cluster no controller may make."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from kquorum.metadata.image.configs import ConfigsDelta
from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.wire.metadata_records.cluster import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, RemoveTopicRecord, TopicRecord
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.jepsen.checkers.lawful import Lawful
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict, check_safely
from tests.jepsen.core.history import History
from tests.jepsen.core.members import Members
from tests.support.images import broker_record, fencing, partition_record, topic_id, topic_records
from tests.support.sample_logs import LogBuilder

MEMBERS = Members.of(controllers=3, brokers=0)
BROKERS = (1, 2, 3)
# Of the partitions of this topic each test changes one.
TOPIC = 7
BOTH, ALONE, ELIGIBLE = range(3)
WORLD: Sequence[MetadataRecord] = (
    *map(broker_record, BROKERS),
    *topic_records(
        TOPIC,
        "orders",
        partition_record(TOPIC, BOTH, (1, 2)),
        partition_record(TOPIC, ALONE, (1, 2), isr=(1,)),
    ),
)


class Run:
    """The folder of a run; its log begins with three brokers and a topic."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = LogBuilder().records(1000, *WORLD)

    def then(self, *records: MetadataRecord) -> "Run":
        """In one batch."""
        self.log.records(2000, *records)
        return self

    def judged(self) -> Results:
        for node in MEMBERS.all:
            self.write(node, bytes(self.log.data))
        return self.verdict()

    def write(self, node: int, data: bytes, from_offset: int = 0) -> Path:
        folder = self.path / "nodes" / str(node) / "data" / FOLDER_NAME
        folder.mkdir(parents=True)
        (folder / f"{from_offset:020d}.log").write_bytes(data)
        return folder

    def verdict(self) -> Results:
        return check_safely(Lawful(self.path, MEMBERS), History())


@pytest.fixture
def stored(tmp_path: Path) -> Run:
    return Run(tmp_path)


def change(partition_id: int = BOTH, **changed: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=partition_id, topic_id=topic_id(TOPIC), **changed)  # type: ignore[arg-type]


def put(partition_epoch: int, leader_epoch: int, leader: int) -> MetadataRecord:
    """The partition with both in sync, as no change record can make it."""
    record = partition_record(TOPIC, BOTH, (1, 2), leader=leader)
    return replace(record, partition_epoch=partition_epoch, leader_epoch=leader_epoch)


def is_valid(results: Results) -> bool:
    assert results["violations"] == []
    return results[VALID_KEY] is Verdict.VALID


def only(what: str, results: Results, where: str = "orders-0") -> None:
    """One violation, which says so, at the last offset of the log."""
    (found,) = results["violations"]
    assert (found["where"], found["offset"]) == (where, results["end_offset"] - 1), results
    assert what in found["what"], results
    assert (results[VALID_KEY], results["violation_count"]) == (Verdict.INVALID, 1)


def test_what_a_sound_controller_does_is_valid(stored: Run) -> None:
    stored.then(change(isr=(2,), leader=2)).then(change(ALONE, leader=-1), fencing(1, fenced=True))
    stored.then(fencing(1, fenced=False), change(ALONE, leader=1)).then(change(isr=(2, 1)), change(leader=1))
    stored.then(ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5"))
    stored.then(RemoveTopicRecord(topic_id=topic_id(TOPIC)))
    stored.then(*topic_records(8, "orders", partition_record(8, 0, (3,))))
    stored.then(UnregisterBrokerRecord(broker_id=2, broker_epoch=20), broker_record(2, epoch=21, fenced=True))
    results = stored.judged()
    assert is_valid(results)
    assert (results["states"], results["from_offset"], results["partition_changes"]) == (9, 0, 7)


# The state


def test_a_leader_outside_its_isr_is_invalid(stored: Run) -> None:
    only("its leader 1 is not in the ISR (2,)", stored.then(change(isr=(2,))).judged())


@pytest.mark.parametrize(
    "gone", [fencing(1, fenced=True), UnregisterBrokerRecord(broker_id=1, broker_epoch=10)]
)
def test_a_leader_that_is_fenced_or_not_registered_is_invalid(stored: Run, gone: MetadataRecord) -> None:
    results = stored.then(change(isr=(2,), leader=2)).then(gone).judged()
    only("its leader 1 is fenced or not registered", results, "orders-1")


def test_an_isr_beyond_the_replicas_is_invalid(stored: Run) -> None:
    only("[3] are in the ISR, and no replicas", stored.then(change(isr=(1, 2, 3))).judged())


def test_a_fenced_member_of_an_isr_of_several_is_invalid(stored: Run) -> None:
    only("[2] of the ISR (1, 2) are fenced", stored.then(fencing(2, fenced=True)).judged())


def test_the_last_member_of_an_isr_without_a_leader_may_be_fenced(stored: Run) -> None:
    stored.then(change(isr=(2,), leader=2), change(ALONE, leader=-1), fencing(1, fenced=True))
    assert is_valid(stored.judged())


def test_a_broker_is_not_missed_in_partitions_that_changed_long_ago(stored: Run) -> None:
    stored.then(change(isr=(1,))).then(change(isr=(1, 2))).then(fencing(3, fenced=True))
    only("[2] of the ISR", stored.then(fencing(2, fenced=True)).judged())


# The step


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (put(6, 3, leader=2), "leader 1 gave way to 2 in leader epoch 3"),
        (put(6, 2, leader=1), "its leader epoch went back from 3 to 2"),
        (put(5, 4, leader=2), "it changed in partition epoch 5, and has 5 since"),
        (put(4, 4, leader=1), "it changed in partition epoch 5, and has 4 since"),
    ],
)
def test_epochs_that_do_not_grow_are_invalid(stored: Run, record: MetadataRecord, what: str) -> None:
    only(what, stored.then(record).judged())


def test_a_new_leader_from_outside_the_isr_is_invalid(stored: Run) -> None:
    results = stored.then(change(ALONE, leader=2, isr=(2,))).judged()
    only("its new leader 2 was not in the ISR (1,), and does not recover", results, "orders-1")


LAWFUL_LEADERS: dict[str, Callable[[Run], Run]] = {
    "unclean, and recovering": lambda run: run.then(
        change(ALONE, leader=2, isr=(2,), leader_recovery_state=1)
    ),
    "eligible": lambda run: run.then(change(ALONE, eligible_leader_replicas=(2,))).then(
        change(ALONE, leader=2, isr=(2,), eligible_leader_replicas=())
    ),
    "in sync since an earlier change in the batch": lambda run: run.then(
        change(ALONE, isr=(1, 2)), change(ALONE, leader=2)
    ),
    "brought in by the end of a reassignment": lambda run: run.then(
        change(ALONE, replicas=(2, 1), adding_replicas=(2,), removing_replicas=(1,))
    ).then(
        change(ALONE, leader=2, isr=(2,), replicas=(2,), adding_replicas=(), removing_replicas=()),
    ),
    "taken in by a leader that shuts down": lambda run: run.then(
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, in_controlled_shutdown=1)
    ).then(change(ALONE, leader=2, isr=(1, 2))),
}


@pytest.mark.parametrize("how", LAWFUL_LEADERS)
def test_a_new_leader_may_be(stored: Run, how: str) -> None:
    assert is_valid(LAWFUL_LEADERS[how](stored).judged())


def test_a_leader_that_stays_cannot_make_another_the_leader(stored: Run) -> None:
    only("its new leader 2", stored.then(change(ALONE, leader=2, isr=(1, 2))).judged(), "orders-1")


# Topics, configs and brokers


def test_configs_of_a_topic_that_is_not_there_are_invalid(stored: Run) -> None:
    record = ConfigRecord(resource_type=2, resource_name="gone", name="retention.ms", value="5")
    only("there are configs of it", stored.then(record).judged(), "gone")


def test_configs_that_survive_their_topic_are_invalid(stored: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConfigsDelta, "remove_topic", lambda delta, name: None)
    stored.then(ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5"))
    results = stored.then(RemoveTopicRecord(topic_id=topic_id(TOPIC))).judged()
    only("there are configs of it", results, "orders")


def test_an_id_of_a_topic_that_is_used_again_is_invalid(stored: Run) -> None:
    stored.then(RemoveTopicRecord(topic_id=topic_id(TOPIC)))
    only("was that of a topic before", stored.then(*topic_records(TOPIC, "other")).judged(), "other")


def test_a_second_topic_of_the_same_name_is_invalid(stored: Run) -> None:
    results = stored.then(TopicRecord(name="orders", topic_id=topic_id(8))).judged()
    only("cannot be replayed: topic 'orders' exists already", results, "a TopicRecord")


def registration(broker_id: int, epoch: int, incarnation: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        broker_epoch=epoch,
        incarnation_id=UUID(int=incarnation),
        rack=None,
        log_dirs=(),
        fenced=True,
    )


@pytest.mark.parametrize(
    ("epoch", "what"), [(29, "epoch 29 after epoch 30"), (30, "epoch 30 after epoch 30"), (31, None)]
)
def test_another_process_of_a_broker_has_a_new_epoch(stored: Run, epoch: int, what: str | None) -> None:
    results = stored.then(registration(3, epoch, incarnation=99)).judged()
    if what is None:
        assert is_valid(results)
    else:
        only(what, results, "broker 3")


def test_the_epochs_of_a_broker_grow_although_it_was_unregistered(stored: Run) -> None:
    stored.then(UnregisterBrokerRecord(broker_id=3, broker_epoch=30))
    only("epoch 5 after epoch 30", stored.then(registration(3, 5, incarnation=99)).judged(), "broker 3")


def test_a_broker_whose_epoch_went_back_has_to_reach_its_highest_again(stored: Run) -> None:
    stored.then(registration(3, 5, incarnation=98)).then(registration(3, 6, incarnation=99))
    found = [each["what"] for each in stored.judged()["violations"]]
    assert found == [f"another process of it has epoch {epoch} after epoch 30" for epoch in (5, 6)]


# Which log is judged


def with_snapshot(run: Run, node: int, *records: MetadataRecord) -> Path:
    """A log that begins at offset 100, behind a snapshot of the world."""
    log = LogBuilder(next_offset=100).records(2000, *records)
    folder = run.write(node, bytes(log.data), from_offset=100)
    snapshot_id = SnapshotId(100, 1)
    writer = SnapshotWriter(snapshot_id, timestamp_ms=1000, last_contained_log_timestamp_ms=1000)
    path = folder / snapshot_id.file_name
    path.write_bytes(b"".join(writer.write(map(encode_record, WORLD))))
    return path


def test_a_log_that_begins_later_is_judged_from_its_snapshot_on(stored: Run) -> None:
    for node in MEMBERS.all:
        with_snapshot(stored, node, fencing(2, fenced=True))
    results = stored.verdict()
    only("[2] of the ISR (1, 2) are fenced", results)
    assert results["from_offset"] == 100


def test_a_log_that_begins_later_and_has_no_snapshot_leaves_doubt(stored: Run) -> None:
    for node in MEMBERS.all:
        with_snapshot(stored, node, change(isr=(2,), leader=2)).unlink()
    results = stored.verdict()
    assert results == {VALID_KEY: Verdict.UNKNOWN, "states": 0}


def test_the_longest_log_is_judged_and_no_damaged_one(stored: Run) -> None:
    short = bytes(stored.log.data)
    long = bytes(stored.then(change(isr=(2,), leader=2)).log.data)
    longest = bytearray(stored.then(change(isr=(1,))).then(change(isr=(2,))).log.data)
    longest[len(short) + 70] ^= 1
    for node, data in zip(MEMBERS.all, (short, bytes(longest), long), strict=True):
        stored.write(node, data)
    results = stored.verdict()
    assert is_valid(results)
    assert (results["log"], results["end_offset"]) == (3, len(WORLD) + 1)


def test_of_damaged_logs_what_is_before_the_damage_is_judged(stored: Run) -> None:
    sound = len(stored.then(change(isr=(2,))).log.data)
    broken = bytearray(stored.then(change(leader=2)).then(change(ALONE, isr=(2,))).log.data)
    broken[sound + 70] ^= 1
    for node in MEMBERS.all:
        stored.write(node, bytes(broken))
    only("its leader 1 is not in the ISR (2,)", stored.verdict())


def test_without_any_records_nothing_is_proved(stored: Run) -> None:
    for node in MEMBERS.all:
        stored.write(node, b"")
    assert stored.verdict()[VALID_KEY] is Verdict.UNKNOWN


def test_a_run_without_folders_of_nodes_is_unknown(stored: Run) -> None:
    assert stored.verdict()[VALID_KEY] is Verdict.UNKNOWN
