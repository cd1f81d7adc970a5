from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Consistency(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONSISTENCY_UNSPECIFIED: _ClassVar[Consistency]
    LINEARIZABLE: _ClassVar[Consistency]
    COMMITTED: _ClassVar[Consistency]
    LOCAL: _ClassVar[Consistency]

class ChangeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHANGE_KIND_UNSPECIFIED: _ClassVar[ChangeKind]
    INITIAL_STATE: _ClassVar[ChangeKind]
    BROKER_REGISTERED: _ClassVar[ChangeKind]
    BROKER_FENCED: _ClassVar[ChangeKind]
    BROKER_UNFENCED: _ClassVar[ChangeKind]
    BROKER_IN_CONTROLLED_SHUTDOWN: _ClassVar[ChangeKind]
    BROKER_REMOVED: _ClassVar[ChangeKind]
    TOPIC_CREATED: _ClassVar[ChangeKind]
    TOPIC_DELETED: _ClassVar[ChangeKind]
    PARTITION_CREATED: _ClassVar[ChangeKind]
    PARTITION_CHANGED: _ClassVar[ChangeKind]
    LEADER_ELECTED: _ClassVar[ChangeKind]
    VOTERS_CHANGED: _ClassVar[ChangeKind]
CONSISTENCY_UNSPECIFIED: Consistency
LINEARIZABLE: Consistency
COMMITTED: Consistency
LOCAL: Consistency
CHANGE_KIND_UNSPECIFIED: ChangeKind
INITIAL_STATE: ChangeKind
BROKER_REGISTERED: ChangeKind
BROKER_FENCED: ChangeKind
BROKER_UNFENCED: ChangeKind
BROKER_IN_CONTROLLED_SHUTDOWN: ChangeKind
BROKER_REMOVED: ChangeKind
TOPIC_CREATED: ChangeKind
TOPIC_DELETED: ChangeKind
PARTITION_CREATED: ChangeKind
PARTITION_CHANGED: ChangeKind
LEADER_ELECTED: ChangeKind
VOTERS_CHANGED: ChangeKind

class ReadLogRequest(_message.Message):
    __slots__ = ("from_offset", "to_offset", "follow", "include_control", "types", "consistency")
    FROM_OFFSET_FIELD_NUMBER: _ClassVar[int]
    TO_OFFSET_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_CONTROL_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    CONSISTENCY_FIELD_NUMBER: _ClassVar[int]
    from_offset: int
    to_offset: int
    follow: bool
    include_control: bool
    types: _containers.RepeatedScalarFieldContainer[str]
    consistency: Consistency
    def __init__(self, from_offset: _Optional[int] = ..., to_offset: _Optional[int] = ..., follow: _Optional[bool] = ..., include_control: _Optional[bool] = ..., types: _Optional[_Iterable[str]] = ..., consistency: _Optional[_Union[Consistency, str]] = ...) -> None: ...

class LogRecord(_message.Message):
    __slots__ = ("offset", "leader_epoch", "timestamp_ms", "type", "api_key", "version", "is_control", "json", "value", "problem", "high_watermark")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    API_KEY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    IS_CONTROL_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    offset: int
    leader_epoch: int
    timestamp_ms: int
    type: str
    api_key: int
    version: int
    is_control: bool
    json: str
    value: bytes
    problem: str
    high_watermark: int
    def __init__(self, offset: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., timestamp_ms: _Optional[int] = ..., type: _Optional[str] = ..., api_key: _Optional[int] = ..., version: _Optional[int] = ..., is_control: _Optional[bool] = ..., json: _Optional[str] = ..., value: _Optional[bytes] = ..., problem: _Optional[str] = ..., high_watermark: _Optional[int] = ...) -> None: ...

class ImageRequest(_message.Message):
    __slots__ = ("topics", "consistency")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    CONSISTENCY_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedScalarFieldContainer[str]
    consistency: Consistency
    def __init__(self, topics: _Optional[_Iterable[str]] = ..., consistency: _Optional[_Union[Consistency, str]] = ...) -> None: ...

class ImageChunk(_message.Message):
    __slots__ = ("header", "topics", "is_last")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    IS_LAST_FIELD_NUMBER: _ClassVar[int]
    header: ImageHeader
    topics: TopicChunk
    is_last: bool
    def __init__(self, header: _Optional[_Union[ImageHeader, _Mapping]] = ..., topics: _Optional[_Union[TopicChunk, _Mapping]] = ..., is_last: _Optional[bool] = ...) -> None: ...

class ImageHeader(_message.Message):
    __slots__ = ("provenance", "cluster_id", "node_id", "features", "brokers", "controllers", "topic_count", "partition_count", "ms_since_commit", "is_cut_off")
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    BROKERS_FIELD_NUMBER: _ClassVar[int]
    CONTROLLERS_FIELD_NUMBER: _ClassVar[int]
    TOPIC_COUNT_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    MS_SINCE_COMMIT_FIELD_NUMBER: _ClassVar[int]
    IS_CUT_OFF_FIELD_NUMBER: _ClassVar[int]
    provenance: Provenance
    cluster_id: str
    node_id: int
    features: _containers.RepeatedCompositeFieldContainer[Feature]
    brokers: _containers.RepeatedCompositeFieldContainer[Broker]
    controllers: _containers.RepeatedCompositeFieldContainer[Controller]
    topic_count: int
    partition_count: int
    ms_since_commit: int
    is_cut_off: bool
    def __init__(self, provenance: _Optional[_Union[Provenance, _Mapping]] = ..., cluster_id: _Optional[str] = ..., node_id: _Optional[int] = ..., features: _Optional[_Iterable[_Union[Feature, _Mapping]]] = ..., brokers: _Optional[_Iterable[_Union[Broker, _Mapping]]] = ..., controllers: _Optional[_Iterable[_Union[Controller, _Mapping]]] = ..., topic_count: _Optional[int] = ..., partition_count: _Optional[int] = ..., ms_since_commit: _Optional[int] = ..., is_cut_off: _Optional[bool] = ...) -> None: ...

class Provenance(_message.Message):
    __slots__ = ("offset", "epoch", "timestamp_ms")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    offset: int
    epoch: int
    timestamp_ms: int
    def __init__(self, offset: _Optional[int] = ..., epoch: _Optional[int] = ..., timestamp_ms: _Optional[int] = ...) -> None: ...

class Feature(_message.Message):
    __slots__ = ("name", "level")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    level: int
    def __init__(self, name: _Optional[str] = ..., level: _Optional[int] = ...) -> None: ...

class Endpoint(_message.Message):
    __slots__ = ("name", "host", "port", "security_protocol")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    SECURITY_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    name: str
    host: str
    port: int
    security_protocol: int
    def __init__(self, name: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., security_protocol: _Optional[int] = ...) -> None: ...

class Broker(_message.Message):
    __slots__ = ("id", "epoch", "incarnation_id", "endpoints", "rack", "fenced", "in_controlled_shutdown")
    ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    FENCED_FIELD_NUMBER: _ClassVar[int]
    IN_CONTROLLED_SHUTDOWN_FIELD_NUMBER: _ClassVar[int]
    id: int
    epoch: int
    incarnation_id: str
    endpoints: _containers.RepeatedCompositeFieldContainer[Endpoint]
    rack: str
    fenced: bool
    in_controlled_shutdown: bool
    def __init__(self, id: _Optional[int] = ..., epoch: _Optional[int] = ..., incarnation_id: _Optional[str] = ..., endpoints: _Optional[_Iterable[_Union[Endpoint, _Mapping]]] = ..., rack: _Optional[str] = ..., fenced: _Optional[bool] = ..., in_controlled_shutdown: _Optional[bool] = ...) -> None: ...

class Controller(_message.Message):
    __slots__ = ("id", "incarnation_id", "endpoints")
    ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    id: int
    incarnation_id: str
    endpoints: _containers.RepeatedCompositeFieldContainer[Endpoint]
    def __init__(self, id: _Optional[int] = ..., incarnation_id: _Optional[str] = ..., endpoints: _Optional[_Iterable[_Union[Endpoint, _Mapping]]] = ...) -> None: ...

class TopicChunk(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedCompositeFieldContainer[Topic]
    def __init__(self, topics: _Optional[_Iterable[_Union[Topic, _Mapping]]] = ...) -> None: ...

class Topic(_message.Message):
    __slots__ = ("name", "id", "partitions", "min_insync_replicas")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    MIN_INSYNC_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    name: str
    id: str
    partitions: _containers.RepeatedCompositeFieldContainer[Partition]
    min_insync_replicas: int
    def __init__(self, name: _Optional[str] = ..., id: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[Partition, _Mapping]]] = ..., min_insync_replicas: _Optional[int] = ...) -> None: ...

class Partition(_message.Message):
    __slots__ = ("topic", "topic_id", "partition_id", "leader", "leader_epoch", "partition_epoch", "replicas", "isr", "adding_replicas", "removing_replicas", "is_recovering", "eligible_leader_replicas", "last_known_leader_replicas")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    ADDING_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    REMOVING_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    IS_RECOVERING_FIELD_NUMBER: _ClassVar[int]
    ELIGIBLE_LEADER_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    LAST_KNOWN_LEADER_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    partition_id: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: _containers.RepeatedScalarFieldContainer[int]
    isr: _containers.RepeatedScalarFieldContainer[int]
    adding_replicas: _containers.RepeatedScalarFieldContainer[int]
    removing_replicas: _containers.RepeatedScalarFieldContainer[int]
    is_recovering: bool
    eligible_leader_replicas: _containers.RepeatedScalarFieldContainer[int]
    last_known_leader_replicas: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ..., partition_id: _Optional[int] = ..., leader: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., replicas: _Optional[_Iterable[int]] = ..., isr: _Optional[_Iterable[int]] = ..., adding_replicas: _Optional[_Iterable[int]] = ..., removing_replicas: _Optional[_Iterable[int]] = ..., is_recovering: _Optional[bool] = ..., eligible_leader_replicas: _Optional[_Iterable[int]] = ..., last_known_leader_replicas: _Optional[_Iterable[int]] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("from_offset", "kinds")
    FROM_OFFSET_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    from_offset: int
    kinds: _containers.RepeatedScalarFieldContainer[ChangeKind]
    def __init__(self, from_offset: _Optional[int] = ..., kinds: _Optional[_Iterable[_Union[ChangeKind, str]]] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("kind", "offset", "epoch", "timestamp_ms", "initial_state", "broker", "topic", "partition", "leader", "voters", "previous")
    KIND_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    INITIAL_STATE_FIELD_NUMBER: _ClassVar[int]
    BROKER_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    kind: ChangeKind
    offset: int
    epoch: int
    timestamp_ms: int
    initial_state: InitialState
    broker: Broker
    topic: Topic
    partition: Partition
    leader: Leader
    voters: Voters
    previous: Partition
    def __init__(self, kind: _Optional[_Union[ChangeKind, str]] = ..., offset: _Optional[int] = ..., epoch: _Optional[int] = ..., timestamp_ms: _Optional[int] = ..., initial_state: _Optional[_Union[InitialState, _Mapping]] = ..., broker: _Optional[_Union[Broker, _Mapping]] = ..., topic: _Optional[_Union[Topic, _Mapping]] = ..., partition: _Optional[_Union[Partition, _Mapping]] = ..., leader: _Optional[_Union[Leader, _Mapping]] = ..., voters: _Optional[_Union[Voters, _Mapping]] = ..., previous: _Optional[_Union[Partition, _Mapping]] = ...) -> None: ...

class InitialState(_message.Message):
    __slots__ = ("cluster_id", "node_id", "next_offset", "high_watermark", "leader_id", "leader_epoch")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    node_id: int
    next_offset: int
    high_watermark: int
    leader_id: int
    leader_epoch: int
    def __init__(self, cluster_id: _Optional[str] = ..., node_id: _Optional[int] = ..., next_offset: _Optional[int] = ..., high_watermark: _Optional[int] = ..., leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class Leader(_message.Message):
    __slots__ = ("id", "voters", "granting_voters")
    ID_FIELD_NUMBER: _ClassVar[int]
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    GRANTING_VOTERS_FIELD_NUMBER: _ClassVar[int]
    id: int
    voters: _containers.RepeatedScalarFieldContainer[int]
    granting_voters: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, id: _Optional[int] = ..., voters: _Optional[_Iterable[int]] = ..., granting_voters: _Optional[_Iterable[int]] = ...) -> None: ...

class Voters(_message.Message):
    __slots__ = ("voters",)
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    voters: _containers.RepeatedCompositeFieldContainer[Voter]
    def __init__(self, voters: _Optional[_Iterable[_Union[Voter, _Mapping]]] = ...) -> None: ...

class Voter(_message.Message):
    __slots__ = ("id", "directory_id", "endpoints")
    ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    id: int
    directory_id: str
    endpoints: _containers.RepeatedCompositeFieldContainer[Endpoint]
    def __init__(self, id: _Optional[int] = ..., directory_id: _Optional[str] = ..., endpoints: _Optional[_Iterable[_Union[Endpoint, _Mapping]]] = ...) -> None: ...

class CopyLogRequest(_message.Message):
    __slots__ = ("from_offset", "follow")
    FROM_OFFSET_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    from_offset: int
    follow: bool
    def __init__(self, from_offset: _Optional[int] = ..., follow: _Optional[bool] = ...) -> None: ...

class LogCopy(_message.Message):
    __slots__ = ("files", "batches", "high_watermark")
    FILES_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    files: LogFiles
    batches: bytes
    high_watermark: int
    def __init__(self, files: _Optional[_Union[LogFiles, _Mapping]] = ..., batches: _Optional[bytes] = ..., high_watermark: _Optional[int] = ...) -> None: ...

class LogFiles(_message.Message):
    __slots__ = ("cluster_id", "node_id", "log_start_offset", "snapshots")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    node_id: int
    log_start_offset: int
    snapshots: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, cluster_id: _Optional[str] = ..., node_id: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., snapshots: _Optional[_Iterable[str]] = ...) -> None: ...

class CopySnapshotRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class FileChunk(_message.Message):
    __slots__ = ("position", "size_in_bytes", "data")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    SIZE_IN_BYTES_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    position: int
    size_in_bytes: int
    data: bytes
    def __init__(self, position: _Optional[int] = ..., size_in_bytes: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...
