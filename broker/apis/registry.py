"""Every API of the protocol: how a broker's listener answers it, or why it does not offer it. One line each.

Kafka's KafkaApis. To serve another API, write its handler into a file of this folder, with its declaration, and name
the declaration here (docs/contributing.md). Clients learn what is offered from ApiVersions; a request for anything else
ends the connection, as with Kafka.
"""

from collections.abc import Mapping
from typing import Final

from kquorum.broker.apis import (
    alter_replica_log_dirs,
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    delete_records,
    describe_cluster,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    group_membership,
    group_refusals,
    init_producer_id,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    transaction_questions,
    transactions,
    txn_offset_commit,
    write_txn_markers,
)
from kquorum.broker.apis.api import BrokerApi, Forwarded, Refused
from kquorum.broker.apis.forwarding import forwarded
from kquorum.broker.apis.questions import question
from kquorum.metadata.controller_apis import EntryLimit
from kquorum.wire.protocol.api_keys import ApiKey

_LINES: Final[tuple[BrokerApi, ...]] = (
    # Answered here.
    metadata.API,
    describe_cluster.API,
    describe_topic_partitions.API,
    list_groups.API,
    # Records.
    produce.API,
    fetch.API,
    list_offsets.API,
    offset_for_leader_epoch.API,
    delete_records.API,
    init_producer_id.API,
    describe_log_dirs.API,
    alter_replica_log_dirs.API,
    describe_producers.API,
    write_txn_markers.API,
    # Groups and offsets.
    find_coordinator.API,
    group_membership.JOIN_GROUP,
    group_membership.SYNC_GROUP,
    group_membership.HEARTBEAT,
    group_membership.LEAVE_GROUP,
    offset_commit.API,
    offset_fetch.API,
    offset_delete.API,
    describe_groups.API,
    delete_groups.API,
    consumer_group_heartbeat.API,
    consumer_group_describe.API,
    # Transactions.
    transactions.ADD_PARTITIONS,
    transactions.ADD_OFFSETS,
    transactions.END,
    txn_offset_commit.API,
    transaction_questions.LIST,
    transaction_questions.DESCRIBE,
    # Answered here, as at a controller.
    question(ApiKey.DESCRIBE_ACLS),
    # kafka-topics asks for the configs of all topics at once. A broker may take long over the answer, unlike a
    # controller, which could lose its leadership meanwhile.
    question(ApiKey.DESCRIBE_CONFIGS, EntryLimit.UNDIVIDED),
    question(ApiKey.LIST_CONFIG_RESOURCES),
    question(ApiKey.DESCRIBE_DELEGATION_TOKEN),
    question(ApiKey.DESCRIBE_CLIENT_QUOTAS),
    question(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS),
    # The active controller answers.
    forwarded(ApiKey.CREATE_TOPICS),
    forwarded(ApiKey.DELETE_TOPICS),
    forwarded(ApiKey.CREATE_PARTITIONS),
    forwarded(ApiKey.ALTER_CONFIGS),
    forwarded(ApiKey.INCREMENTAL_ALTER_CONFIGS),
    forwarded(ApiKey.ELECT_LEADERS),
    forwarded(ApiKey.ALTER_PARTITION_REASSIGNMENTS),
    forwarded(ApiKey.LIST_PARTITION_REASSIGNMENTS),
    forwarded(ApiKey.ALTER_CLIENT_QUOTAS),
    forwarded(ApiKey.ALTER_USER_SCRAM_CREDENTIALS),
    forwarded(ApiKey.CREATE_ACLS),
    forwarded(ApiKey.DELETE_ACLS),
    forwarded(ApiKey.CREATE_DELEGATION_TOKEN),
    forwarded(ApiKey.RENEW_DELEGATION_TOKEN),
    forwarded(ApiKey.EXPIRE_DELEGATION_TOKEN),
    forwarded(ApiKey.UPDATE_FEATURES),
    forwarded(ApiKey.UNREGISTER_BROKER),
    # The leader of the quorum answers. A voter updates itself at a controller only, as Kafka's schemas say.
    forwarded(ApiKey.DESCRIBE_QUORUM),
    forwarded(ApiKey.ADD_RAFT_VOTER),
    forwarded(ApiKey.REMOVE_RAFT_VOTER),
    # Share and streams groups (KIP-932, KIP-1071) are not coordinated here.
    Refused(ApiKey.SHARE_GROUP_HEARTBEAT, refuse=group_refusals.refuse_share_heartbeat),
    Refused(ApiKey.STREAMS_GROUP_HEARTBEAT, refuse=group_refusals.refuse_streams_heartbeat),
    Refused(ApiKey.SHARE_FETCH, refuse=group_refusals.refuse_share_fetch),
    Refused(ApiKey.SHARE_ACKNOWLEDGE, refuse=group_refusals.refuse_share_acknowledge),
    Refused(ApiKey.SHARE_GROUP_DESCRIBE, refuse=group_refusals.describe_absent_shares),
    Refused(ApiKey.STREAMS_GROUP_DESCRIBE, refuse=group_refusals.describe_absent_streams),
    Refused(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, refuse=group_refusals.describe_absent_share_offsets),
    Refused(ApiKey.ALTER_SHARE_GROUP_OFFSETS, refuse=group_refusals.alter_absent_share_offsets),
    Refused(ApiKey.DELETE_SHARE_GROUP_OFFSETS, refuse=group_refusals.delete_absent_share_offsets),
)
BROKER_APIS: Final[Mapping[ApiKey, BrokerApi]] = {api.api_key: api for api in _LINES}
assert len(BROKER_APIS) == len(_LINES), "an API stands in the registry twice"
FORWARDED_APIS: Final = frozenset(api.api_key for api in _LINES if isinstance(api, Forwarded))

# The server below the listener answers these before and after authentication.
ANSWERED_BY_SERVER: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})

_OF_THE_QUORUM = (
    "controllers speak it with each other and with brokers' replicas, on the controllers' listener"
)
_TO_THE_CONTROLLER = "brokers send it to the active controller; Kafka's brokers do not offer it either"
_SHARE_STATE = "brokers keep the state of share groups with it for each other; there are no share groups here"
_TELEMETRY = "as with Kafka's brokers that have no receiver of clients' metrics: clients then send none"

# The APIs that a broker does not offer, each with the reason.
NOT_OFFERED: Final[Mapping[ApiKey, str]] = {
    ApiKey.VOTE: _OF_THE_QUORUM,
    ApiKey.BEGIN_QUORUM_EPOCH: _OF_THE_QUORUM,
    ApiKey.END_QUORUM_EPOCH: _OF_THE_QUORUM,
    ApiKey.FETCH_SNAPSHOT: _OF_THE_QUORUM,
    ApiKey.UPDATE_RAFT_VOTER: _OF_THE_QUORUM,
    ApiKey.CONTROLLER_REGISTRATION: _OF_THE_QUORUM,
    ApiKey.ENVELOPE: _TO_THE_CONTROLLER,
    ApiKey.ALTER_PARTITION: _TO_THE_CONTROLLER,
    ApiKey.BROKER_REGISTRATION: _TO_THE_CONTROLLER,
    ApiKey.BROKER_HEARTBEAT: _TO_THE_CONTROLLER,
    ApiKey.ALLOCATE_PRODUCER_IDS: _TO_THE_CONTROLLER,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _TO_THE_CONTROLLER,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _SHARE_STATE,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _TELEMETRY,
    ApiKey.PUSH_TELEMETRY: _TELEMETRY,
}
