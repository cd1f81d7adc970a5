"""One partition's life in which its leader changes for every reason, in batches as Kafka's controller writes them."""

from pathlib import Path
from uuid import UUID

from kquorum.wire.metadata_records.cluster import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, TopicRecord
from kquorum.wire.schema import MetadataRecord
from tests.support.sample_logs import LogBuilder, broker, partition

TOPIC = UUID(int=77)
FENCED, UNFENCED = 1, -1

# (offset, old leader, new leader, unclean, cause, offset of the broker's record)
CAUSES = [
    (12, 1, 2, False, "fencing", 13),
    (16, 2, 1, False, "preferred", None),
    (18, 1, 2, False, "shutdown", 17),
    (19, 2, 1, False, "other", None),
    (20, 1, 3, False, "shutdown", 17),
    (21, 3, 2, False, "fencing", 22),
    (23, 2, -1, False, "fencing", 24),
    (26, -1, 2, False, "unfencing", 25),
    (28, 2, 1, False, "reassignment", None),
    (29, 1, -1, False, "unregistration", 30),
    (31, -1, 1, False, "recovery", None),
    (32, 1, 3, True, "unclean", None),
    (35, 3, 1, False, "directory_failure", 34),
    (37, 1, 3, False, "restart", 36),
]


def write_leader_history(folder: Path) -> Path:
    log = LogBuilder().leader(1000, 1, 1, 2, epoch=1)
    log.records(1100, *(broker(number, number) for number in (1, 2, 3)))
    log.records(1200, *(_changed(number, fenced=UNFENCED) for number in (1, 2, 3)))
    log.records(1300, TopicRecord(name="led", topic_id=TOPIC), partition(TOPIC, 0, 1, (1, 2, 3)))
    log.records(1400, partition(TOPIC, 1, 2, (2, 3)), partition(TOPIC, 2, 3, (3, 1)))
    log.records(1500, _moved(2, isr=(3,)))
    # Offset 12: the fence comes last in its batch.
    log.records(2000, _moved(leader=2, isr=(2, 3)), _changed(1, fenced=FENCED))
    log.records(2100, UnfenceBrokerRecord(id=1, epoch=1)).records(2200, _moved(isr=(2, 3, 1)))
    log.records(2300, _moved(leader=1))
    log.records(3000, _changed(1, in_controlled_shutdown=1), _moved(leader=2, isr=(2, 3, 1)))
    # Offset 19: a broker in controlled shutdown leads once more, and hands over later.
    log.records(3100, _moved(leader=1, isr=(1, 3))).records(3200, _moved(leader=3, isr=(2, 3)))
    # Offset 21: the fence is in the next batch, as where there are too many partitions for one.
    log.records(4000, _moved(leader=2, isr=(2,))).records(4003, FenceBrokerRecord(id=3, epoch=3))
    log.records(5000, _moved(leader=-1), _changed(2, fenced=FENCED))
    log.records(6000, _changed(2, fenced=UNFENCED), _moved(leader=2))
    # Offset 28: the last step of a reassignment lets the new replica in and makes it the leader.
    log.records(7000, _moved(replicas=(1, 2), removing_replicas=(2,)))
    log.records(7100, _moved(leader=1, isr=(1,), replicas=(1,), removing_replicas=()))
    log.records(8000, _moved(leader=-1), UnregisterBrokerRecord(broker_id=1, broker_epoch=1))
    log.records(8100, _moved(leader=1))
    log.records(8200, _moved(leader=3, isr=(3,), leader_recovery_state=1))
    log.records(8250, _moved(isr=(3, 1), replicas=(1, 3), leader_recovery_state=0))
    log.records(8300, _changed(3, log_dirs=(UUID(int=5),)), _moved(leader=1))
    log.records(8400, broker(1, 9), _moved(leader=3, isr=(3,)))
    log_folder = folder / "__cluster_metadata-0"
    log_folder.mkdir(parents=True)
    (log_folder / "00000000000000000000.log").write_bytes(log.data)
    return folder


def _changed(broker_id: int, **values: object) -> MetadataRecord:
    return BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker_id, **values)  # type: ignore[arg-type]


def _moved(number: int = 0, **values: object) -> MetadataRecord:
    return PartitionChangeRecord(partition_id=number, topic_id=TOPIC, **values)  # type: ignore[arg-type]
