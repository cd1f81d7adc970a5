"""Records about dynamic configs and client quotas."""

from kquorum.wire.schema import MetadataRecord, Struct, kafka, metadata_record, struct


@metadata_record(api_key=4, versions=(0, 0))
class ConfigRecord(MetadataRecord):
    """One config key is set, or deleted where `value` is null.

    `resource_type`: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group. `resource_name` is a
    topic's name or a broker's id as text; empty is the default of all brokers.
    """

    resource_type: int = kafka("int8")
    resource_name: str = kafka("string")
    name: str = kafka("string")
    value: str | None = kafka("string", nullable=True)


@struct
class EntityData(Struct):
    """Whom a quota is for. `entity_type`: "user", "client-id" or "ip"; a null name is the default entity."""

    entity_type: str = kafka("string")
    entity_name: str | None = kafka("string", nullable=True)


@metadata_record(api_key=14, versions=(0, 0))
class ClientQuotaRecord(MetadataRecord):
    """A client quota is set or, with `remove`, taken away (`value` then means nothing)."""

    entity: tuple[EntityData, ...] = kafka([EntityData])
    key: str = kafka("string")
    value: float = kafka("float64")
    remove: bool = kafka("bool", default=False)
