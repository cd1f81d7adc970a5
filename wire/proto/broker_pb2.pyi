from kquorum.wire.proto import inspect_pb2 as _inspect_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RegisterRequest(_message.Message):
    __slots__ = ("broker_id", "incarnation_id", "endpoints", "rack", "cluster_id", "directories", "features", "previous_broker_epoch")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_ID_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    incarnation_id: bytes
    endpoints: _containers.RepeatedCompositeFieldContainer[_inspect_pb2.Endpoint]
    rack: str
    cluster_id: str
    directories: _containers.RepeatedScalarFieldContainer[bytes]
    features: _containers.RepeatedCompositeFieldContainer[SupportedFeature]
    previous_broker_epoch: int
    def __init__(self, broker_id: _Optional[int] = ..., incarnation_id: _Optional[bytes] = ..., endpoints: _Optional[_Iterable[_Union[_inspect_pb2.Endpoint, _Mapping]]] = ..., rack: _Optional[str] = ..., cluster_id: _Optional[str] = ..., directories: _Optional[_Iterable[bytes]] = ..., features: _Optional[_Iterable[_Union[SupportedFeature, _Mapping]]] = ..., previous_broker_epoch: _Optional[int] = ...) -> None: ...

class SupportedFeature(_message.Message):
    __slots__ = ("name", "min_level", "max_level")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MIN_LEVEL_FIELD_NUMBER: _ClassVar[int]
    MAX_LEVEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    min_level: int
    max_level: int
    def __init__(self, name: _Optional[str] = ..., min_level: _Optional[int] = ..., max_level: _Optional[int] = ...) -> None: ...

class RegisterResponse(_message.Message):
    __slots__ = ("broker_epoch", "cluster_id", "heartbeat_interval_ms", "session_timeout_ms")
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    SESSION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    broker_epoch: int
    cluster_id: str
    heartbeat_interval_ms: int
    session_timeout_ms: int
    def __init__(self, broker_epoch: _Optional[int] = ..., cluster_id: _Optional[str] = ..., heartbeat_interval_ms: _Optional[int] = ..., session_timeout_ms: _Optional[int] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "applied_offset", "want_fence", "want_shut_down", "failed_directories")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    APPLIED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    WANT_FENCE_FIELD_NUMBER: _ClassVar[int]
    WANT_SHUT_DOWN_FIELD_NUMBER: _ClassVar[int]
    FAILED_DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    applied_offset: int
    want_fence: bool
    want_shut_down: bool
    failed_directories: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., applied_offset: _Optional[int] = ..., want_fence: _Optional[bool] = ..., want_shut_down: _Optional[bool] = ..., failed_directories: _Optional[_Iterable[bytes]] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("is_caught_up", "is_fenced", "should_shut_down")
    IS_CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    IS_FENCED_FIELD_NUMBER: _ClassVar[int]
    SHOULD_SHUT_DOWN_FIELD_NUMBER: _ClassVar[int]
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool
    def __init__(self, is_caught_up: _Optional[bool] = ..., is_fenced: _Optional[bool] = ..., should_shut_down: _Optional[bool] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("broker_id", "all_topics", "from_offset")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    ALL_TOPICS_FIELD_NUMBER: _ClassVar[int]
    FROM_OFFSET_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    all_topics: bool
    from_offset: int
    def __init__(self, broker_id: _Optional[int] = ..., all_topics: _Optional[bool] = ..., from_offset: _Optional[int] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("offset", "is_state", "is_complete", "brokers", "removed_brokers", "partitions", "removed_partitions", "removed_topics")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    IS_STATE_FIELD_NUMBER: _ClassVar[int]
    IS_COMPLETE_FIELD_NUMBER: _ClassVar[int]
    BROKERS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_BROKERS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_TOPICS_FIELD_NUMBER: _ClassVar[int]
    offset: int
    is_state: bool
    is_complete: bool
    brokers: _containers.RepeatedCompositeFieldContainer[_inspect_pb2.Broker]
    removed_brokers: _containers.RepeatedScalarFieldContainer[int]
    partitions: _containers.RepeatedCompositeFieldContainer[_inspect_pb2.Partition]
    removed_partitions: _containers.RepeatedCompositeFieldContainer[RemovedPartition]
    removed_topics: _containers.RepeatedCompositeFieldContainer[RemovedTopic]
    def __init__(self, offset: _Optional[int] = ..., is_state: _Optional[bool] = ..., is_complete: _Optional[bool] = ..., brokers: _Optional[_Iterable[_Union[_inspect_pb2.Broker, _Mapping]]] = ..., removed_brokers: _Optional[_Iterable[int]] = ..., partitions: _Optional[_Iterable[_Union[_inspect_pb2.Partition, _Mapping]]] = ..., removed_partitions: _Optional[_Iterable[_Union[RemovedPartition, _Mapping]]] = ..., removed_topics: _Optional[_Iterable[_Union[RemovedTopic, _Mapping]]] = ...) -> None: ...

class RemovedPartition(_message.Message):
    __slots__ = ("topic", "topic_id", "partition_id")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_ID_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    partition_id: int
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ..., partition_id: _Optional[int] = ...) -> None: ...

class RemovedTopic(_message.Message):
    __slots__ = ("topic", "topic_id")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    topic: str
    topic_id: str
    def __init__(self, topic: _Optional[str] = ..., topic_id: _Optional[str] = ...) -> None: ...

class AlterPartitionRequest(_message.Message):
    __slots__ = ("broker_id", "broker_epoch", "partitions")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionChange]
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[PartitionChange, _Mapping]]] = ...) -> None: ...

class PartitionChange(_message.Message):
    __slots__ = ("topic_id", "partition_id", "leader_epoch", "partition_epoch", "isr", "is_recovering")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    IS_RECOVERING_FIELD_NUMBER: _ClassVar[int]
    topic_id: str
    partition_id: int
    leader_epoch: int
    partition_epoch: int
    isr: _containers.RepeatedCompositeFieldContainer[InSyncReplica]
    is_recovering: bool
    def __init__(self, topic_id: _Optional[str] = ..., partition_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., isr: _Optional[_Iterable[_Union[InSyncReplica, _Mapping]]] = ..., is_recovering: _Optional[bool] = ...) -> None: ...

class InSyncReplica(_message.Message):
    __slots__ = ("broker_id", "broker_epoch")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    broker_epoch: int
    def __init__(self, broker_id: _Optional[int] = ..., broker_epoch: _Optional[int] = ...) -> None: ...

class AlterPartitionResponse(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionOutcome]
    def __init__(self, partitions: _Optional[_Iterable[_Union[PartitionOutcome, _Mapping]]] = ...) -> None: ...

class PartitionOutcome(_message.Message):
    __slots__ = ("topic_id", "partition_id", "error_code", "error", "message", "leader", "leader_epoch", "partition_epoch", "isr", "is_recovering")
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ISR_FIELD_NUMBER: _ClassVar[int]
    IS_RECOVERING_FIELD_NUMBER: _ClassVar[int]
    topic_id: str
    partition_id: int
    error_code: int
    error: str
    message: str
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: _containers.RepeatedScalarFieldContainer[int]
    is_recovering: bool
    def __init__(self, topic_id: _Optional[str] = ..., partition_id: _Optional[int] = ..., error_code: _Optional[int] = ..., error: _Optional[str] = ..., message: _Optional[str] = ..., leader: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., partition_epoch: _Optional[int] = ..., isr: _Optional[_Iterable[int]] = ..., is_recovering: _Optional[bool] = ...) -> None: ...

class UnregisterRequest(_message.Message):
    __slots__ = ("broker_id",)
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    def __init__(self, broker_id: _Optional[int] = ...) -> None: ...

class UnregisterResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
