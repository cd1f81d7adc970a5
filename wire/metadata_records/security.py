"""Records about access control, SCRAM credentials and delegation tokens."""

from uuid import UUID

from kquorum.wire.schema import MetadataRecord, kafka, metadata_record


@metadata_record(api_key=10, versions=(0, 0))
class DelegationTokenRecord(MetadataRecord):
    """A delegation token; the secret is derived, never stored. Principals are "type:name", timestamps are ms."""

    owner: str = kafka("string")
    requester: str = kafka("string")
    renewers: tuple[str, ...] = kafka("[]string", default=())
    issue_timestamp: int = kafka("int64")
    max_timestamp: int = kafka("int64")
    expiration_timestamp: int = kafka("int64")
    token_id: str = kafka("string")


@metadata_record(api_key=26, versions=(0, 0))
class RemoveDelegationTokenRecord(MetadataRecord):
    """A delegation token is removed."""

    token_id: str = kafka("string")


@metadata_record(api_key=11, versions=(0, 0))
class UserScramCredentialRecord(MetadataRecord):
    """A user's SCRAM credential. `mechanism`: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""

    name: str = kafka("string")
    mechanism: int = kafka("int8")
    salt: bytes = kafka("bytes", is_secret=True)
    stored_key: bytes = kafka("bytes", is_secret=True)
    server_key: bytes = kafka("bytes", is_secret=True)
    iterations: int = kafka("int32")


@metadata_record(api_key=22, versions=(0, 0))
class RemoveUserScramCredentialRecord(MetadataRecord):
    """A user's SCRAM credential is removed."""

    name: str = kafka("string")
    mechanism: int = kafka("int8")


@metadata_record(api_key=18, versions=(0, 0))
class AccessControlEntryRecord(MetadataRecord):
    """An access control entry is added.

    `resource_type`: 2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user.
    `pattern_type`: 3 literal, 4 prefixed. `permission_type`: 2 deny, 3 allow. `operation` as numbered by
    Kafka's AclOperation.
    """

    id: UUID = kafka("uuid")
    resource_type: int = kafka("int8")
    resource_name: str = kafka("string")
    pattern_type: int = kafka("int8")
    principal: str = kafka("string")
    host: str = kafka("string")
    operation: int = kafka("int8")
    permission_type: int = kafka("int8")


@metadata_record(api_key=19, versions=(0, 0))
class RemoveAccessControlEntryRecord(MetadataRecord):
    """An access control entry is removed by its id."""

    id: UUID = kafka("uuid")
