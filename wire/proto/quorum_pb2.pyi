from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

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
