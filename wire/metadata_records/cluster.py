"""Records about brokers and controllers."""

from uuid import UUID

from kquorum.wire.schema import MetadataRecord, Struct, kafka, metadata_record, struct


@struct
class BrokerEndpoint(Struct):
    """A listener of a broker. `security_protocol`: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    name: str = kafka("string")
    host: str = kafka("string")
    port: int = kafka("uint16")
    security_protocol: int = kafka("int16")


@struct
class BrokerFeature(Struct):
    """The range of levels of a feature that a broker supports."""

    name: str = kafka("string")
    min_supported_version: int = kafka("int16")
    max_supported_version: int = kafka("int16")


@metadata_record(api_key=0, versions=(0, 4))
class RegisterBrokerRecord(MetadataRecord):
    """A broker joins or rejoins. `log_dirs` are its online directories.

    `broker_epoch` is the log offset of the first record of the registering operation. `cordoned_log_dirs`
    (KIP-1066, version 4) are directories that take no new partitions. Its tag is what Kafka's schema compiler
    leaves open: the tags of a message must be contiguous from 0.
    """

    broker_id: int = kafka("int32")
    is_migrating_zk_broker: bool = kafka("bool", default=False, since=2)
    incarnation_id: UUID = kafka("uuid")
    broker_epoch: int = kafka("int64")
    end_points: tuple[BrokerEndpoint, ...] = kafka([BrokerEndpoint], default=())
    features: tuple[BrokerFeature, ...] = kafka([BrokerFeature], default=())
    rack: str | None = kafka("string", default=None, nullable=True)
    fenced: bool = kafka("bool", default=True)
    in_controlled_shutdown: bool = kafka("bool", default=False, since=1)
    log_dirs: tuple[UUID, ...] = kafka("[]uuid", default=(), since=3, tag=0)
    cordoned_log_dirs: tuple[UUID, ...] | None = kafka("[]uuid", default=None, since=4, tag=1, nullable=True)


@metadata_record(api_key=1, versions=(0, 0))
class UnregisterBrokerRecord(MetadataRecord):
    """A broker is removed from the cluster for good."""

    broker_id: int = kafka("int32")
    broker_epoch: int = kafka("int64")


@metadata_record(api_key=7, versions=(0, 0))
class FenceBrokerRecord(MetadataRecord):
    """A broker is fenced; written below metadata.version 6, `BrokerRegistrationChangeRecord` from there on."""

    id: int = kafka("int32")
    epoch: int = kafka("int64")


@metadata_record(api_key=8, versions=(0, 0))
class UnfenceBrokerRecord(MetadataRecord):
    """A broker is unfenced; written below metadata.version 6, `BrokerRegistrationChangeRecord` from there on."""

    id: int = kafka("int32")
    epoch: int = kafka("int64")


@metadata_record(api_key=17, versions=(0, 3))
class BrokerRegistrationChangeRecord(MetadataRecord):
    """Part of a broker's registration changes. The version follows the purpose, not metadata.version.

    `fenced`: 1 fenced, -1 unfenced, 0 no change. `in_controlled_shutdown`: 1 entered, 0 no change. `log_dirs`
    and `cordoned_log_dirs` replace the lists; an empty `log_dirs` and a null `cordoned_log_dirs` change
    nothing.
    """

    broker_id: int = kafka("int32")
    broker_epoch: int = kafka("int64")
    fenced: int = kafka("int8", default=0, tag=0)
    in_controlled_shutdown: int = kafka("int8", default=0, since=1, tag=1)
    log_dirs: tuple[UUID, ...] = kafka("[]uuid", default=(), since=2, tag=2)
    cordoned_log_dirs: tuple[UUID, ...] | None = kafka("[]uuid", default=None, since=3, tag=3, nullable=True)


@struct
class ControllerEndpoint(Struct):
    """A listener of a controller; `security_protocol` as in `BrokerEndpoint`."""

    name: str = kafka("string")
    host: str = kafka("string")
    port: int = kafka("uint16")
    security_protocol: int = kafka("int16")


@struct
class ControllerFeature(Struct):
    """The range of levels of a feature that a controller supports."""

    name: str = kafka("string")
    min_supported_version: int = kafka("int16")
    max_supported_version: int = kafka("int16")


@metadata_record(api_key=27, versions=(0, 0))
class RegisterControllerRecord(MetadataRecord):
    """A controller makes its listeners and supported features known (KIP-919)."""

    controller_id: int = kafka("int32")
    incarnation_id: UUID = kafka("uuid")
    zk_migration_ready: bool = kafka("bool", default=False)
    end_points: tuple[ControllerEndpoint, ...] = kafka([ControllerEndpoint], default=())
    features: tuple[ControllerFeature, ...] = kafka([ControllerFeature], default=())


@metadata_record(api_key=29, versions=(0, 0))
class UnregisterControllerRecord(MetadataRecord):
    """A controller's registration is removed."""

    controller_id: int = kafka("int32")
