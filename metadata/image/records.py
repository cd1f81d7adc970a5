"""An image as the records that recreate it: what a snapshot holds, in a snapshot's order."""

from collections.abc import Iterator

from metadata.image.cluster import BrokerRegistration, ClusterImage, ControllerRegistration
from metadata.image.configs import ConfigsImage
from metadata.image.features import FeaturesImage
from metadata.image.image import MetadataImage, Provenance
from metadata.image.loading import delta_from_values
from metadata.image.metadata_version import (
    METADATA_VERSION,
    record_version,
)
from metadata.image.quotas import ClientQuotasImage, ProducerIdsImage
from metadata.image.security import DelegationToken, SecurityImage
from metadata.image.topic_records import partition_record, topic_records, topic_values, values_of_partitions
from wire.metadata_records.cluster import (
    BrokerEndpoint,
    BrokerFeature,
    ControllerEndpoint,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from wire.metadata_records.configs import ClientQuotaRecord, ConfigRecord, EntityData
from wire.metadata_records.features import FeatureLevelRecord, ProducerIdsRecord, ZkMigrationStateRecord
from wire.metadata_records.security import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
)
from wire.record_frame import encode_record
from wire.schema import MetadataRecord

# Callers find both ways between an image and its records here.
__all__ = [
    "delta_from_values",
    "image_from_values",
    "image_records",
    "image_values",
    "partition_record",
    "values_of_partitions",
]


def image_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Replayed into an empty image, these make an equal one (but for the provenance)."""
    yield from _before_topics(image)
    yield from topic_records(image.topics, image.metadata_version)
    yield from _after_topics(image)


def image_values(image: MetadataImage) -> Iterator[bytes]:
    """The same, encoded in the record versions of the image's metadata.version.

    Streams: some thousand partitions are encoded at a time. Raises UnsupportedVersion when that level
    has no room for something in the image.
    """
    level = image.metadata_version
    for record in _before_topics(image):
        yield encode_record(record, record_version(record, level))
    for values in topic_values(image.topics, level):
        yield from values
    for record in _after_topics(image):
        yield encode_record(record, record_version(record, level))


def image_from_values(values: Iterator[bytes], provenance: Provenance) -> MetadataImage:
    """Load a snapshot's record values; raises DecodeError and ReplayError (its offset is the record's ordinal)."""
    return delta_from_values(values).apply(provenance)


def _before_topics(image: MetadataImage) -> Iterator[MetadataRecord]:
    yield from _features(image.features)
    yield from _cluster(image.cluster)


def _after_topics(image: MetadataImage) -> Iterator[MetadataRecord]:
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
