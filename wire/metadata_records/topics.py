"""Records about topics and their partitions."""

from uuid import UUID

from kquorum.wire.schema import MetadataRecord, kafka, metadata_record


@metadata_record(api_key=2, versions=(0, 0))
class TopicRecord(MetadataRecord):
    """A topic is created; its `PartitionRecord`s follow."""

    name: str = kafka("string")
    topic_id: UUID = kafka("uuid")


@metadata_record(api_key=9, versions=(0, 0))
class RemoveTopicRecord(MetadataRecord):
    """A topic is removed with all its partitions."""

    topic_id: UUID = kafka("uuid")


@metadata_record(api_key=3, versions=(0, 2))
class PartitionRecord(MetadataRecord):
    """The full state of one partition.

    `replicas` are in order of preference, and `directories` (KIP-858) has one id for each of them, in their
    order. `leader` -1 is none. `leader_recovery_state`: 0 recovered, 1 recovering. The last two fields are of
    KIP-966.
    """

    partition_id: int = kafka("int32", default=-1)
    topic_id: UUID = kafka("uuid")
    replicas: tuple[int, ...] = kafka("[]int32", default=())
    isr: tuple[int, ...] = kafka("[]int32", default=())
    removing_replicas: tuple[int, ...] = kafka("[]int32", default=())
    adding_replicas: tuple[int, ...] = kafka("[]int32", default=())
    leader: int = kafka("int32", default=-1)
    leader_recovery_state: int = kafka("int8", default=0, tag=0)
    leader_epoch: int = kafka("int32", default=-1)
    partition_epoch: int = kafka("int32", default=-1)
    directories: tuple[UUID, ...] = kafka("[]uuid", default=(), since=1)
    eligible_leader_replicas: tuple[int, ...] | None = kafka(
        "[]int32", default=None, since=2, tag=1, nullable=True
    )
    last_known_elr: tuple[int, ...] | None = kafka("[]int32", default=None, since=2, tag=2, nullable=True)


@metadata_record(api_key=5, versions=(0, 2))
class PartitionChangeRecord(MetadataRecord):
    """What changes on one partition: null lists, leader -2 and recovery state -1 mean "as before"."""

    partition_id: int = kafka("int32", default=-1)
    topic_id: UUID = kafka("uuid")
    isr: tuple[int, ...] | None = kafka("[]int32", default=None, tag=0, nullable=True)
    leader: int = kafka("int32", default=-2, tag=1)
    replicas: tuple[int, ...] | None = kafka("[]int32", default=None, tag=2, nullable=True)
    removing_replicas: tuple[int, ...] | None = kafka("[]int32", default=None, tag=3, nullable=True)
    adding_replicas: tuple[int, ...] | None = kafka("[]int32", default=None, tag=4, nullable=True)
    leader_recovery_state: int = kafka("int8", default=-1, tag=5)
    directories: tuple[UUID, ...] | None = kafka("[]uuid", default=None, since=1, tag=8, nullable=True)
    eligible_leader_replicas: tuple[int, ...] | None = kafka(
        "[]int32", default=None, since=2, tag=6, nullable=True
    )
    last_known_elr: tuple[int, ...] | None = kafka("[]int32", default=None, since=2, tag=7, nullable=True)


@metadata_record(api_key=28, versions=(0, 0))
class ClearElrRecord(MetadataRecord):
    """The eligible leader replicas of a topic are forgotten; an empty name means every topic (KIP-966)."""

    topic_name: str = kafka("string")
