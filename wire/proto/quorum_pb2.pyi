from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BrokerStanding(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BROKER_STANDING_UNSPECIFIED: _ClassVar[BrokerStanding]
    FENCED: _ClassVar[BrokerStanding]
    ACTIVE: _ClassVar[BrokerStanding]
    IN_CONTROLLED_SHUTDOWN: _ClassVar[BrokerStanding]
BROKER_STANDING_UNSPECIFIED: BrokerStanding
FENCED: BrokerStanding
ACTIVE: BrokerStanding
IN_CONTROLLED_SHUTDOWN: BrokerStanding

class DescribeNodeRequest(_message.Message):
    __slots__ = ("with_host",)
    WITH_HOST_FIELD_NUMBER: _ClassVar[int]
    with_host: bool
    def __init__(self, with_host: _Optional[bool] = ...) -> None: ...

class DescribeNodeResponse(_message.Message):
    __slots__ = ("node_id", "cluster_id", "roles", "is_ready", "reason", "is_cut_off", "ms_since_commit", "offset", "epoch", "timestamp_ms", "leader_id", "broker", "host")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    IS_READY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    IS_CUT_OFF_FIELD_NUMBER: _ClassVar[int]
    MS_SINCE_COMMIT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    cluster_id: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    is_ready: bool
    reason: str
    is_cut_off: bool
    ms_since_commit: int
    offset: int
    epoch: int
    timestamp_ms: int
    leader_id: int
    broker: BrokerLife
    host: HostFacts
    def __init__(self, node_id: _Optional[int] = ..., cluster_id: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ..., is_ready: _Optional[bool] = ..., reason: _Optional[str] = ..., is_cut_off: _Optional[bool] = ..., ms_since_commit: _Optional[int] = ..., offset: _Optional[int] = ..., epoch: _Optional[int] = ..., timestamp_ms: _Optional[int] = ..., leader_id: _Optional[int] = ..., broker: _Optional[_Union[BrokerLife, _Mapping]] = ..., host: _Optional[_Union[HostFacts, _Mapping]] = ...) -> None: ...

class HostFacts(_message.Message):
    __slots__ = ("now_ms", "version", "open_files", "max_open_files", "folders")
    NOW_MS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    OPEN_FILES_FIELD_NUMBER: _ClassVar[int]
    MAX_OPEN_FILES_FIELD_NUMBER: _ClassVar[int]
    FOLDERS_FIELD_NUMBER: _ClassVar[int]
    now_ms: int
    version: str
    open_files: int
    max_open_files: int
    folders: _containers.RepeatedCompositeFieldContainer[FolderSpace]
    def __init__(self, now_ms: _Optional[int] = ..., version: _Optional[str] = ..., open_files: _Optional[int] = ..., max_open_files: _Optional[int] = ..., folders: _Optional[_Iterable[_Union[FolderSpace, _Mapping]]] = ...) -> None: ...

class FolderSpace(_message.Message):
    __slots__ = ("path", "total_bytes", "usable_bytes", "total_inodes", "usable_inodes", "fault")
    PATH_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    USABLE_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_INODES_FIELD_NUMBER: _ClassVar[int]
    USABLE_INODES_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    path: str
    total_bytes: int
    usable_bytes: int
    total_inodes: int
    usable_inodes: int
    fault: str
    def __init__(self, path: _Optional[str] = ..., total_bytes: _Optional[int] = ..., usable_bytes: _Optional[int] = ..., total_inodes: _Optional[int] = ..., usable_inodes: _Optional[int] = ..., fault: _Optional[str] = ...) -> None: ...

class BrokerLife(_message.Message):
    __slots__ = ("state", "epoch", "is_fenced")
    STATE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    IS_FENCED_FIELD_NUMBER: _ClassVar[int]
    state: str
    epoch: int
    is_fenced: bool
    def __init__(self, state: _Optional[str] = ..., epoch: _Optional[int] = ..., is_fenced: _Optional[bool] = ...) -> None: ...

class DescribeBrokersRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeBrokersResponse(_message.Message):
    __slots__ = ("leader_id", "leader_epoch", "committed_offset", "brokers", "cluster_id")
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    BROKERS_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    leader_id: int
    leader_epoch: int
    committed_offset: int
    brokers: _containers.RepeatedCompositeFieldContainer[BrokerProgress]
    cluster_id: str
    def __init__(self, leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., committed_offset: _Optional[int] = ..., brokers: _Optional[_Iterable[_Union[BrokerProgress, _Mapping]]] = ..., cluster_id: _Optional[str] = ...) -> None: ...

class BrokerProgress(_message.Message):
    __slots__ = ("broker_id", "standing", "epoch", "endpoints", "rack", "applied_offset", "lag", "silent_ms", "directories")
    BROKER_ID_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    APPLIED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    SILENT_MS_FIELD_NUMBER: _ClassVar[int]
    DIRECTORIES_FIELD_NUMBER: _ClassVar[int]
    broker_id: int
    standing: BrokerStanding
    epoch: int
    endpoints: _containers.RepeatedCompositeFieldContainer[BrokerEndpoint]
    rack: str
    applied_offset: int
    lag: int
    silent_ms: int
    directories: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, broker_id: _Optional[int] = ..., standing: _Optional[_Union[BrokerStanding, str]] = ..., epoch: _Optional[int] = ..., endpoints: _Optional[_Iterable[_Union[BrokerEndpoint, _Mapping]]] = ..., rack: _Optional[str] = ..., applied_offset: _Optional[int] = ..., lag: _Optional[int] = ..., silent_ms: _Optional[int] = ..., directories: _Optional[_Iterable[bytes]] = ...) -> None: ...

class BrokerEndpoint(_message.Message):
    __slots__ = ("name", "host", "port")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    name: str
    host: str
    port: int
    def __init__(self, name: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class WaitAppliedRequest(_message.Message):
    __slots__ = ("offset", "timeout_ms")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    offset: int
    timeout_ms: int
    def __init__(self, offset: _Optional[int] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class WaitAppliedResponse(_message.Message):
    __slots__ = ("offset", "is_applied", "lagging", "fenced")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    IS_APPLIED_FIELD_NUMBER: _ClassVar[int]
    LAGGING_FIELD_NUMBER: _ClassVar[int]
    FENCED_FIELD_NUMBER: _ClassVar[int]
    offset: int
    is_applied: bool
    lagging: _containers.RepeatedCompositeFieldContainer[BrokerProgress]
    fenced: _containers.RepeatedCompositeFieldContainer[BrokerProgress]
    def __init__(self, offset: _Optional[int] = ..., is_applied: _Optional[bool] = ..., lagging: _Optional[_Iterable[_Union[BrokerProgress, _Mapping]]] = ..., fenced: _Optional[_Iterable[_Union[BrokerProgress, _Mapping]]] = ...) -> None: ...

class DescribeQuorumRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeQuorumResponse(_message.Message):
    __slots__ = ("node_id", "leader_id", "leader_epoch", "high_watermark", "states", "replicas")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    leader_id: int
    leader_epoch: int
    high_watermark: int
    states: StateReports
    replicas: _containers.RepeatedCompositeFieldContainer[QuorumReplica]
    def __init__(self, node_id: _Optional[int] = ..., leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ..., high_watermark: _Optional[int] = ..., states: _Optional[_Union[StateReports, _Mapping]] = ..., replicas: _Optional[_Iterable[_Union[QuorumReplica, _Mapping]]] = ...) -> None: ...

class QuorumReplica(_message.Message):
    __slots__ = ("replica_id", "directory_id", "is_voter", "log_end_offset", "last_fetch_timestamp_ms", "last_caught_up_timestamp_ms")
    REPLICA_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    IS_VOTER_FIELD_NUMBER: _ClassVar[int]
    LOG_END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_FETCH_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_CAUGHT_UP_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    replica_id: int
    directory_id: bytes
    is_voter: bool
    log_end_offset: int
    last_fetch_timestamp_ms: int
    last_caught_up_timestamp_ms: int
    def __init__(self, replica_id: _Optional[int] = ..., directory_id: _Optional[bytes] = ..., is_voter: _Optional[bool] = ..., log_end_offset: _Optional[int] = ..., last_fetch_timestamp_ms: _Optional[int] = ..., last_caught_up_timestamp_ms: _Optional[int] = ...) -> None: ...

class StateAt(_message.Message):
    __slots__ = ("offset", "hash")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    offset: int
    hash: bytes
    def __init__(self, offset: _Optional[int] = ..., hash: _Optional[bytes] = ...) -> None: ...

class StateReports(_message.Message):
    __slots__ = ("own", "replicas")
    OWN_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    own: StateAt
    replicas: _containers.RepeatedCompositeFieldContainer[StateReport]
    def __init__(self, own: _Optional[_Union[StateAt, _Mapping]] = ..., replicas: _Optional[_Iterable[_Union[StateReport, _Mapping]]] = ...) -> None: ...

class StateReport(_message.Message):
    __slots__ = ("replica_id", "directory_id", "newest", "agreed_offset", "mismatch")
    REPLICA_ID_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_ID_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    AGREED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    MISMATCH_FIELD_NUMBER: _ClassVar[int]
    replica_id: int
    directory_id: bytes
    newest: StateAt
    agreed_offset: int
    mismatch: StateMismatch
    def __init__(self, replica_id: _Optional[int] = ..., directory_id: _Optional[bytes] = ..., newest: _Optional[_Union[StateAt, _Mapping]] = ..., agreed_offset: _Optional[int] = ..., mismatch: _Optional[_Union[StateMismatch, _Mapping]] = ...) -> None: ...

class StateMismatch(_message.Message):
    __slots__ = ("offset", "own_hash", "hash", "found_ms")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    OWN_HASH_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    FOUND_MS_FIELD_NUMBER: _ClassVar[int]
    offset: int
    own_hash: bytes
    hash: bytes
    found_ms: int
    def __init__(self, offset: _Optional[int] = ..., own_hash: _Optional[bytes] = ..., hash: _Optional[bytes] = ..., found_ms: _Optional[int] = ...) -> None: ...

class TransferLeadershipRequest(_message.Message):
    __slots__ = ("target_id",)
    TARGET_ID_FIELD_NUMBER: _ClassVar[int]
    target_id: int
    def __init__(self, target_id: _Optional[int] = ...) -> None: ...

class TransferLeadershipResponse(_message.Message):
    __slots__ = ("leader_id", "leader_epoch")
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    LEADER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    leader_id: int
    leader_epoch: int
    def __init__(self, leader_id: _Optional[int] = ..., leader_epoch: _Optional[int] = ...) -> None: ...

class GetElectionsRequest(_message.Message):
    __slots__ = ("from_epoch",)
    FROM_EPOCH_FIELD_NUMBER: _ClassVar[int]
    from_epoch: int
    def __init__(self, from_epoch: _Optional[int] = ...) -> None: ...

class GetElectionsResponse(_message.Message):
    __slots__ = ("node_id", "events", "leader_changes")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    LEADER_CHANGES_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    events: _containers.RepeatedCompositeFieldContainer[RoleEvent]
    leader_changes: _containers.RepeatedCompositeFieldContainer[LeaderChange]
    def __init__(self, node_id: _Optional[int] = ..., events: _Optional[_Iterable[_Union[RoleEvent, _Mapping]]] = ..., leader_changes: _Optional[_Iterable[_Union[LeaderChange, _Mapping]]] = ...) -> None: ...

class RoleEvent(_message.Message):
    __slots__ = ("timestamp_ms", "role", "epoch", "cause")
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    timestamp_ms: int
    role: str
    epoch: int
    cause: str
    def __init__(self, timestamp_ms: _Optional[int] = ..., role: _Optional[str] = ..., epoch: _Optional[int] = ..., cause: _Optional[str] = ...) -> None: ...

class LeaderChange(_message.Message):
    __slots__ = ("offset", "epoch", "leader_id", "timestamp_ms", "voters", "granting_voters", "previous_ms")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LEADER_ID_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    GRANTING_VOTERS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_MS_FIELD_NUMBER: _ClassVar[int]
    offset: int
    epoch: int
    leader_id: int
    timestamp_ms: int
    voters: _containers.RepeatedScalarFieldContainer[int]
    granting_voters: _containers.RepeatedScalarFieldContainer[int]
    previous_ms: int
    def __init__(self, offset: _Optional[int] = ..., epoch: _Optional[int] = ..., leader_id: _Optional[int] = ..., timestamp_ms: _Optional[int] = ..., voters: _Optional[_Iterable[int]] = ..., granting_voters: _Optional[_Iterable[int]] = ..., previous_ms: _Optional[int] = ...) -> None: ...
