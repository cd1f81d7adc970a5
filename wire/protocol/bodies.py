"""How the body of a request is read: as a message of `wire.messages`, or as kio's entity where handlers take that.

A handler that is converted takes the message; its API stands in `TYPED_APIS` then. When all stand there, this table and
the other way go.
"""

from typing import Any, Final

from kquorum.wire import codec, message_codec
from kquorum.wire.primitives import Buffer
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import message_types, request_class, response_class

TYPED_APIS: Final[frozenset[int]] = frozenset(
    {
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.API_VERSIONS,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.CREATE_ACLS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_ACLS,
        ApiKey.DELETE_GROUPS,
        ApiKey.DELETE_RECORDS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.DESCRIBE_TRANSACTIONS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.ELECT_LEADERS,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.END_TXN,
        ApiKey.ENVELOPE,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.FETCH,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.FIND_COORDINATOR,
        ApiKey.HEARTBEAT,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.JOIN_GROUP,
        ApiKey.LEAVE_GROUP,
        ApiKey.LIST_CONFIG_RESOURCES,
        ApiKey.LIST_GROUPS,
        ApiKey.LIST_OFFSETS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_DELETE,
        ApiKey.OFFSET_FETCH,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.PRODUCE,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_DESCRIBE,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.SYNC_GROUP,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UPDATE_RAFT_VOTER,
        ApiKey.VOTE,
        ApiKey.WRITE_TXN_MARKERS,
    }
)


def read_request(
    api_key: int, version: int, data: Buffer, position: int, most_elements: int
) -> tuple[Any, int]:
    """Answers the body, which begins at `position`, and the number of its elements. Bytes after it are passed over, as
    Kafka's brokers do. In any thread.

    Raises UnsupportedVersion, DecodeError, and TooManyElements for more elements than allowed.
    """
    if api_key in TYPED_APIS:
        message, _ = message_codec.decode_bounded(
            message_types(api_key)[0], version, data, position, most_elements
        )
        return message, message_codec.elements_read()
    entity, _ = codec.decode_bounded(request_class(api_key, version), data, position, most_elements)
    return entity, codec.elements_read()


def prepare(api_key: int, version: int) -> None:
    """Import and compile what the first request would wait for."""
    if api_key in TYPED_APIS:
        request, response = message_types(api_key)
        message_codec.bounded_decoder_of(request, version)
        message_codec.encoder_of(response, version)
        return
    codec.bounded_codec_of(request_class(api_key, version))
    codec.codec_of(request_class(api_key, version))
    codec.codec_of(response_class(api_key, version))
