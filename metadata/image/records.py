"""An image as the records that recreate it: what a snapshot holds, in a snapshot's order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kquorum.metadata.image.cluster import BrokerRegistration, ClusterImage, ControllerRegistration
from kquorum.metadata.image.configs import ConfigsImage
from kquorum.metadata.image.directories import MIGRATING
from kquorum.metadata.image.features import FeaturesImage
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.loading import delta_from_values
from kquorum.metadata.image.metadata_version import (
    DIRECTORIES,
    METADATA_VERSION,
    partition_record_version,
    record_version,
)
from kquorum.metadata.image.partition_records import partition_values
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.partitions import PartitionTable
from kquorum.metadata.image.quotas import ClientQuotasImage, ProducerIdsImage
from kquorum.metadata.image.security import DelegationToken, SecurityImage
from kquorum.metadata.image.topics import TopicImage, TopicsImage
from kquorum.wire.metadata_records.cluster import (
    BrokerEndpoint,
    BrokerFeature,
    ControllerEndpoint,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from kquorum.wire.metadata_records.configs import ClientQuotaRecord, ConfigRecord, EntityData
from kquorum.wire.metadata_records.features import (
    FeatureLevelRecord,
    ProducerIdsRecord,
    ZkMigrationStateRecord,
)
from kquorum.wire.metadata_records.security import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
)
from kquorum.wire.metadata_records.topics import PartitionRecord, TopicRecord
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord

_PARTITIONS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some partitions of a topic; `is_first` for those that the topic's own record precedes."""

    topic: TopicImage
    partitions: PartitionTable
    is_first: bool


def topic_values(image: TopicsImage, metadata_version: int) -> Iterator[Sequence[bytes]]:
    """The topics by name, each with its partitions; as many together as have some thousand."""
    some: list[_Piece] = []
    count = 0
    for piece in _pieces(image):
        some.append(piece)
        count += len(piece.partitions)
        if count >= _PARTITIONS_AT_ONCE:
            yield from _values_of(some, metadata_version)
            some, count = [], 0
    yield from _values_of(some, metadata_version)


def _pieces(image: TopicsImage) -> Iterator[_Piece]:
    for _, topic in sorted(image.by_name.items()):
        yield _Piece(topic, topic.partitions.part(0, _PARTITIONS_AT_ONCE), is_first=True)
        for start in range(_PARTITIONS_AT_ONCE, len(topic.partitions), _PARTITIONS_AT_ONCE):
            part = topic.partitions.part(start, start + _PARTITIONS_AT_ONCE)
            yield _Piece(topic, part, is_first=False)


def values_of_partitions(
    topic: TopicImage, partitions: PartitionTable, metadata_version: int
) -> Sequence[bytes]:
    """The values of the records of these partitions of the topic."""
    (values,) = _values_of([_Piece(topic, partitions, is_first=False)], metadata_version)
    return values


def _values_of(pieces: Sequence[_Piece], metadata_version: int) -> Iterator[Sequence[bytes]]:
    version = partition_record_version(metadata_version)
    columns: Iterator[Sequence[bytes | None]]
    if version == 0 and any(each != MIGRATING for piece in pieces for each in piece.partitions.directory_ids):
        # Either the codec refuses what the level has no field for, or no partition uses these directories any more.
        columns = iter([[None] * len(piece.partitions) for piece in pieces])
    else:
        columns = partition_values([(piece.topic.id, piece.partitions) for piece in pieces], version)
    for piece, values in zip(pieces, columns, strict=True):
        if piece.is_first:
            yield [encode_record(TopicRecord(name=piece.topic.name, topic_id=piece.topic.id), 0)]
        yield _completed(piece, values, metadata_version)


def _completed(piece: _Piece, values: Sequence[bytes | None], metadata_version: int) -> Sequence[bytes]:
    """The values with those of rare partitions put in."""
    done = [value for value in values if value is not None]
    if len(done) == len(values):
        return done
    version = partition_record_version(metadata_version)
    return [
        encode_record(partition_record(piece.topic, partition_id, state, metadata_version), version)
        if value is None
        else value
        for (partition_id, state), value in zip(piece.partitions.items(), values, strict=True)
    ]


def partition_record(
    topic: TopicImage, partition_id: int, state: PartitionState, metadata_version: int
) -> PartitionRecord:
    """Directories are left out only where the level has no field for them and none of them says anything."""
    has_directories = metadata_version >= DIRECTORIES or any(each != MIGRATING for each in state.directories)
    return PartitionRecord(
        partition_id=partition_id,
        topic_id=topic.id,
        replicas=state.replicas,
        isr=state.isr,
        removing_replicas=state.removing_replicas,
        adding_replicas=state.adding_replicas,
        leader=state.leader,
        leader_recovery_state=state.leader_recovery_state,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        directories=state.directories if has_directories else (),
        eligible_leader_replicas=state.elr or None,
        last_known_elr=state.last_known_elr or None,
    )


# Callers find both ways between an image and its records here.
__all__ = [
    "delta_from_values",
    "image_values",
    "partition_record",
    "records_after_topics",
    "records_before_topics",
    "values_of_partitions",
]


def image_values(image: MetadataImage) -> Iterator[bytes]:
    """Replayed into an empty image, these make an equal one (but for the provenance). They have the record versions of
    the image's metadata.version.

    Streams: some thousand partitions are encoded at a time. Raises UnsupportedVersion when that level
    has no room for something in the image.
    """
    level = image.metadata_version
    for record in records_before_topics(image):
        yield encode_record(record, record_version(record, level))
    for values in topic_values(image.topics, level):
        yield from values
    for record in records_after_topics(image):
        yield encode_record(record, record_version(record, level))


def records_before_topics(image: MetadataImage) -> Iterator[MetadataRecord]:
    yield from _features(image.features)
    yield from _cluster(image.cluster)


def records_after_topics(image: MetadataImage) -> Iterator[MetadataRecord]:
    yield from _configs(image.configs)
    yield from _client_quotas(image.client_quotas)
    yield from _producer_ids(image.producer_ids)
    yield from _security(image.security)


def _features(image: FeaturesImage) -> Iterator[MetadataRecord]:
    """metadata.version leads: the versions of all other records follow from it."""
    for name, level in sorted(
        image.finalized.items(), key=lambda item: (item[0] != METADATA_VERSION, item[0])
    ):
        yield FeatureLevelRecord(name=name, feature_level=level)
    if image.zk_migration_state is not None:
        yield ZkMigrationStateRecord(zk_migration_state=image.zk_migration_state)


def _cluster(image: ClusterImage) -> Iterator[MetadataRecord]:
    for _, broker in sorted(image.brokers.items()):
        yield broker_record(broker)
    for _, controller in sorted(image.controllers.items()):
        yield controller_record(controller)


def broker_record(broker: BrokerRegistration) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=tuple(
            BrokerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in broker.end_points
        ),
        features=tuple(
            BrokerFeature(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in broker.features
        ),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=broker.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs,
    )


def delegation_token_record(token: DelegationToken) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=token.renewers,
        issue_timestamp=token.issue_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        expiration_timestamp=token.expiration_timestamp_ms,
        token_id=token.token_id,
    )


def controller_record(controller: ControllerRegistration) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=tuple(
            ControllerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in controller.end_points
        ),
        features=tuple(
            ControllerFeature(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in controller.features
        ),
    )


def _configs(image: ConfigsImage) -> Iterator[MetadataRecord]:
    for resource, values in sorted(image.resources.items(), key=lambda item: item[0]):
        for name, value in sorted(values.items()):
            yield ConfigRecord(
                resource_type=resource.type, resource_name=resource.name, name=name, value=value
            )


def _client_quotas(image: ClientQuotasImage) -> Iterator[MetadataRecord]:
    for entity, quotas in sorted(image.entities.items(), key=lambda item: repr(item[0])):
        data = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
        for key, value in sorted(quotas.items()):
            yield ClientQuotaRecord(entity=data, key=key, value=value, remove=False)


def _producer_ids(image: ProducerIdsImage) -> Iterator[MetadataRecord]:
    if not image.is_empty:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)


def _security(image: SecurityImage) -> Iterator[MetadataRecord]:
    for _, entry in sorted(image.acls.items()):
        yield AccessControlEntryRecord(
            id=entry.id,
            resource_type=entry.resource_type,
            resource_name=entry.resource_name,
            pattern_type=entry.pattern_type,
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission_type=entry.permission_type,
        )
    for user, credential in sorted(image.scram.items(), key=lambda item: item[0]):
        yield UserScramCredentialRecord(
            name=user.name,
            mechanism=user.mechanism,
            salt=credential.salt,
            stored_key=credential.stored_key,
            server_key=credential.server_key,
            iterations=credential.iterations,
        )
    for _, token in sorted(image.delegation_tokens.items()):
        yield delegation_token_record(token)
