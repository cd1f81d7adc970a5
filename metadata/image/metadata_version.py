"""What a level of the `metadata.version` feature permits, and which record versions it asks for.

Levels and record versions: Apache Kafka's `MetadataVersion`; the thresholds are the only thing kept here.
"""

from functools import lru_cache

from kquorum.wire.metadata_records.cluster import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, PartitionRecord
from kquorum.wire.schema import MetadataRecord

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"

# A log that names no level was written by Kafka 3.0.
MINIMUM_METADATA_VERSION = 1
MINIMUM_BOOTSTRAP_METADATA_VERSION = 4
LATEST_METADATA_VERSION = 33  # 4.4-IV2

LEADER_RECOVERY = 3  # 3.2-IV0
NO_OP_RECORD = 5  # 3.3-IV1
BROKER_REGISTRATION_CHANGE_RECORD = 6  # 3.3-IV2
IN_CONTROLLED_SHUTDOWN_STATE = 7  # 3.3-IV3
SCRAM = 11  # 3.5-IV2
NO_LEADER_EPOCH_BUMP_ON_ISR_SHRINK = 12  # 3.6-IV0
TRANSACTIONS = 13  # 3.6-IV1
DELEGATION_TOKENS = 14  # 3.6-IV2
CONTROLLER_REGISTRATION = 15  # 3.7-IV0
DIRECTORIES = 17  # 3.7-IV2
DYNAMIC_QUORUM = 21  # 3.9-IV0
ELIGIBLE_LEADER_REPLICAS = 23  # 4.0-IV1
CORDONED_DIRECTORIES = 30  # 4.3-IV0

# The levels that brought records, or fields of records, which a controller below them cannot express.
_METADATA_CHANGES = frozenset(
    {1, 3, 5, 6, 7, 8, 11, 13, 14, 15, DIRECTORIES, ELIGIBLE_LEADER_REPLICAS, CORDONED_DIRECTORIES, 32, 33}
)


def loses_metadata(level: int, target: int) -> bool:
    """Whether a way down from `level` to `target` passes a level that changed the metadata."""
    return any(target < changed <= level for changed in _METADATA_CHANGES)


def record_version(record: MetadataRecord, metadata_version: int) -> int:
    """The schema version in which a controller at this level writes `record`."""
    if isinstance(record, RegisterBrokerRecord):
        return _by_threshold(metadata_version, (7, 8, DIRECTORIES, CORDONED_DIRECTORIES))
    if isinstance(record, PartitionRecord | PartitionChangeRecord):
        return partition_record_version(metadata_version)
    if isinstance(record, BrokerRegistrationChangeRecord):
        return _registration_change_version(record)
    return 0


def partition_record_version(metadata_version: int) -> int:
    return _by_threshold(metadata_version, (DIRECTORIES, ELIGIBLE_LEADER_REPLICAS))


@lru_cache(maxsize=256)
def _by_threshold(level: int, thresholds: tuple[int, ...]) -> int:
    return sum(level >= threshold for threshold in thresholds)


def _registration_change_version(record: BrokerRegistrationChangeRecord) -> int:
    """This record's version follows from what it changes, not from the level."""
    if record.cordoned_log_dirs is not None:
        return 3
    if record.log_dirs:
        return 2
    return 1 if record.in_controlled_shutdown else 0
