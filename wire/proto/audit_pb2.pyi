from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class AuditNote(_message.Message):
    __slots__ = ("principal", "client_id", "client_address", "api_key", "correlation_id", "reason", "previous_note_hash", "covered_records", "operator_reason", "forwarding_id", "is_whole")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    API_KEY_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_NOTE_HASH_FIELD_NUMBER: _ClassVar[int]
    COVERED_RECORDS_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_REASON_FIELD_NUMBER: _ClassVar[int]
    FORWARDING_ID_FIELD_NUMBER: _ClassVar[int]
    IS_WHOLE_FIELD_NUMBER: _ClassVar[int]
    principal: str
    client_id: str
    client_address: str
    api_key: int
    correlation_id: int
    reason: str
    previous_note_hash: bytes
    covered_records: int
    operator_reason: str
    forwarding_id: bytes
    is_whole: bool
    def __init__(self, principal: _Optional[str] = ..., client_id: _Optional[str] = ..., client_address: _Optional[str] = ..., api_key: _Optional[int] = ..., correlation_id: _Optional[int] = ..., reason: _Optional[str] = ..., previous_note_hash: _Optional[bytes] = ..., covered_records: _Optional[int] = ..., operator_reason: _Optional[str] = ..., forwarding_id: _Optional[bytes] = ..., is_whole: _Optional[bool] = ...) -> None: ...
