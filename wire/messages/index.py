"""The messages of each API by its key. Written by `make messages`; do not edit."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class ApiMessages(NamedTuple):
    """Names of the module and the classes, lowest and highest version, first flexible version."""

    module: str
    request: str
    response: str
    versions: tuple[int, int]
    flexible_since: int | None


MESSAGES: Final[Mapping[int, ApiMessages]] = {
    0: ApiMessages("produce", "ProduceRequest", "ProduceResponse", (3, 13), 9),
    1: ApiMessages("fetch", "FetchRequest", "FetchResponse", (4, 18), 12),
    2: ApiMessages("list_offsets", "ListOffsetsRequest", "ListOffsetsResponse", (1, 11), 6),
    3: ApiMessages("metadata", "MetadataRequest", "MetadataResponse", (0, 13), 9),
    8: ApiMessages("offset_commit", "OffsetCommitRequest", "OffsetCommitResponse", (2, 10), 8),
    9: ApiMessages("offset_fetch", "OffsetFetchRequest", "OffsetFetchResponse", (1, 10), 6),
    10: ApiMessages("find_coordinator", "FindCoordinatorRequest", "FindCoordinatorResponse", (0, 6), 3),
    11: ApiMessages("join_group", "JoinGroupRequest", "JoinGroupResponse", (0, 9), 6),
    12: ApiMessages("heartbeat", "HeartbeatRequest", "HeartbeatResponse", (0, 4), 4),
    13: ApiMessages("leave_group", "LeaveGroupRequest", "LeaveGroupResponse", (0, 5), 4),
    14: ApiMessages("sync_group", "SyncGroupRequest", "SyncGroupResponse", (0, 5), 4),
    15: ApiMessages("describe_groups", "DescribeGroupsRequest", "DescribeGroupsResponse", (0, 6), 5),
    16: ApiMessages("list_groups", "ListGroupsRequest", "ListGroupsResponse", (0, 5), 3),
    17: ApiMessages("sasl_handshake", "SaslHandshakeRequest", "SaslHandshakeResponse", (0, 1), None),
    18: ApiMessages("api_versions", "ApiVersionsRequest", "ApiVersionsResponse", (0, 4), 3),
    19: ApiMessages("create_topics", "CreateTopicsRequest", "CreateTopicsResponse", (2, 7), 5),
    20: ApiMessages("delete_topics", "DeleteTopicsRequest", "DeleteTopicsResponse", (1, 6), 4),
    21: ApiMessages("delete_records", "DeleteRecordsRequest", "DeleteRecordsResponse", (0, 2), 2),
    22: ApiMessages("init_producer_id", "InitProducerIdRequest", "InitProducerIdResponse", (0, 6), 2),
    23: ApiMessages(
        "offset_for_leader_epoch", "OffsetForLeaderEpochRequest", "OffsetForLeaderEpochResponse", (2, 4), 4
    ),
    24: ApiMessages(
        "add_partitions_to_txn", "AddPartitionsToTxnRequest", "AddPartitionsToTxnResponse", (0, 5), 3
    ),
    25: ApiMessages("add_offsets_to_txn", "AddOffsetsToTxnRequest", "AddOffsetsToTxnResponse", (0, 4), 3),
    26: ApiMessages("end_txn", "EndTxnRequest", "EndTxnResponse", (0, 5), 3),
    27: ApiMessages("write_txn_markers", "WriteTxnMarkersRequest", "WriteTxnMarkersResponse", (1, 2), 1),
    28: ApiMessages("txn_offset_commit", "TxnOffsetCommitRequest", "TxnOffsetCommitResponse", (0, 5), 3),
    29: ApiMessages("describe_acls", "DescribeAclsRequest", "DescribeAclsResponse", (1, 3), 2),
    30: ApiMessages("create_acls", "CreateAclsRequest", "CreateAclsResponse", (1, 3), 2),
    31: ApiMessages("delete_acls", "DeleteAclsRequest", "DeleteAclsResponse", (1, 3), 2),
    32: ApiMessages("describe_configs", "DescribeConfigsRequest", "DescribeConfigsResponse", (1, 4), 4),
    33: ApiMessages("alter_configs", "AlterConfigsRequest", "AlterConfigsResponse", (0, 2), 2),
    34: ApiMessages(
        "alter_replica_log_dirs", "AlterReplicaLogDirsRequest", "AlterReplicaLogDirsResponse", (1, 2), 2
    ),
    35: ApiMessages("describe_log_dirs", "DescribeLogDirsRequest", "DescribeLogDirsResponse", (1, 5), 2),
    36: ApiMessages("sasl_authenticate", "SaslAuthenticateRequest", "SaslAuthenticateResponse", (0, 2), 2),
    37: ApiMessages("create_partitions", "CreatePartitionsRequest", "CreatePartitionsResponse", (0, 3), 2),
    38: ApiMessages(
        "create_delegation_token", "CreateDelegationTokenRequest", "CreateDelegationTokenResponse", (1, 3), 2
    ),
    39: ApiMessages(
        "renew_delegation_token", "RenewDelegationTokenRequest", "RenewDelegationTokenResponse", (1, 2), 2
    ),
    40: ApiMessages(
        "expire_delegation_token", "ExpireDelegationTokenRequest", "ExpireDelegationTokenResponse", (1, 2), 2
    ),
    41: ApiMessages(
        "describe_delegation_token",
        "DescribeDelegationTokenRequest",
        "DescribeDelegationTokenResponse",
        (1, 3),
        2,
    ),
    42: ApiMessages("delete_groups", "DeleteGroupsRequest", "DeleteGroupsResponse", (0, 2), 2),
    43: ApiMessages("elect_leaders", "ElectLeadersRequest", "ElectLeadersResponse", (0, 2), 2),
    44: ApiMessages(
        "incremental_alter_configs",
        "IncrementalAlterConfigsRequest",
        "IncrementalAlterConfigsResponse",
        (0, 1),
        1,
    ),
    45: ApiMessages(
        "alter_partition_reassignments",
        "AlterPartitionReassignmentsRequest",
        "AlterPartitionReassignmentsResponse",
        (0, 1),
        0,
    ),
    46: ApiMessages(
        "list_partition_reassignments",
        "ListPartitionReassignmentsRequest",
        "ListPartitionReassignmentsResponse",
        (0, 0),
        0,
    ),
    47: ApiMessages("offset_delete", "OffsetDeleteRequest", "OffsetDeleteResponse", (0, 0), None),
    48: ApiMessages(
        "describe_client_quotas", "DescribeClientQuotasRequest", "DescribeClientQuotasResponse", (0, 1), 1
    ),
    49: ApiMessages(
        "alter_client_quotas", "AlterClientQuotasRequest", "AlterClientQuotasResponse", (0, 1), 1
    ),
    50: ApiMessages(
        "describe_user_scram_credentials",
        "DescribeUserScramCredentialsRequest",
        "DescribeUserScramCredentialsResponse",
        (0, 0),
        0,
    ),
    51: ApiMessages(
        "alter_user_scram_credentials",
        "AlterUserScramCredentialsRequest",
        "AlterUserScramCredentialsResponse",
        (0, 0),
        0,
    ),
    52: ApiMessages("vote", "VoteRequest", "VoteResponse", (0, 2), 0),
    53: ApiMessages("begin_quorum_epoch", "BeginQuorumEpochRequest", "BeginQuorumEpochResponse", (0, 1), 1),
    54: ApiMessages("end_quorum_epoch", "EndQuorumEpochRequest", "EndQuorumEpochResponse", (0, 1), 1),
    55: ApiMessages("describe_quorum", "DescribeQuorumRequest", "DescribeQuorumResponse", (0, 2), 0),
    56: ApiMessages("alter_partition", "AlterPartitionRequest", "AlterPartitionResponse", (2, 3), 2),
    57: ApiMessages("update_features", "UpdateFeaturesRequest", "UpdateFeaturesResponse", (0, 2), 0),
    58: ApiMessages("envelope", "EnvelopeRequest", "EnvelopeResponse", (0, 0), 0),
    59: ApiMessages("fetch_snapshot", "FetchSnapshotRequest", "FetchSnapshotResponse", (0, 1), 0),
    60: ApiMessages("describe_cluster", "DescribeClusterRequest", "DescribeClusterResponse", (0, 2), 0),
    61: ApiMessages("describe_producers", "DescribeProducersRequest", "DescribeProducersResponse", (0, 0), 0),
    62: ApiMessages(
        "broker_registration", "BrokerRegistrationRequest", "BrokerRegistrationResponse", (0, 4), 0
    ),
    63: ApiMessages("broker_heartbeat", "BrokerHeartbeatRequest", "BrokerHeartbeatResponse", (0, 2), 0),
    64: ApiMessages("unregister_broker", "UnregisterBrokerRequest", "UnregisterBrokerResponse", (0, 0), 0),
    65: ApiMessages(
        "describe_transactions", "DescribeTransactionsRequest", "DescribeTransactionsResponse", (0, 0), 0
    ),
    66: ApiMessages("list_transactions", "ListTransactionsRequest", "ListTransactionsResponse", (0, 2), 0),
    67: ApiMessages(
        "allocate_producer_ids", "AllocateProducerIdsRequest", "AllocateProducerIdsResponse", (0, 0), 0
    ),
    68: ApiMessages(
        "consumer_group_heartbeat",
        "ConsumerGroupHeartbeatRequest",
        "ConsumerGroupHeartbeatResponse",
        (0, 1),
        0,
    ),
    69: ApiMessages(
        "consumer_group_describe", "ConsumerGroupDescribeRequest", "ConsumerGroupDescribeResponse", (0, 1), 0
    ),
    70: ApiMessages(
        "controller_registration",
        "ControllerRegistrationRequest",
        "ControllerRegistrationResponse",
        (0, 0),
        0,
    ),
    71: ApiMessages(
        "get_telemetry_subscriptions",
        "GetTelemetrySubscriptionsRequest",
        "GetTelemetrySubscriptionsResponse",
        (0, 0),
        0,
    ),
    72: ApiMessages("push_telemetry", "PushTelemetryRequest", "PushTelemetryResponse", (0, 0), 0),
    73: ApiMessages(
        "assign_replicas_to_dirs", "AssignReplicasToDirsRequest", "AssignReplicasToDirsResponse", (0, 0), 0
    ),
    74: ApiMessages(
        "list_config_resources", "ListConfigResourcesRequest", "ListConfigResourcesResponse", (0, 1), 0
    ),
    75: ApiMessages(
        "describe_topic_partitions",
        "DescribeTopicPartitionsRequest",
        "DescribeTopicPartitionsResponse",
        (0, 0),
        0,
    ),
    76: ApiMessages(
        "share_group_heartbeat", "ShareGroupHeartbeatRequest", "ShareGroupHeartbeatResponse", (1, 1), 1
    ),
    77: ApiMessages(
        "share_group_describe", "ShareGroupDescribeRequest", "ShareGroupDescribeResponse", (1, 1), 1
    ),
    78: ApiMessages("share_fetch", "ShareFetchRequest", "ShareFetchResponse", (1, 2), 1),
    79: ApiMessages("share_acknowledge", "ShareAcknowledgeRequest", "ShareAcknowledgeResponse", (1, 2), 1),
    80: ApiMessages("add_raft_voter", "AddRaftVoterRequest", "AddRaftVoterResponse", (0, 1), 0),
    81: ApiMessages("remove_raft_voter", "RemoveRaftVoterRequest", "RemoveRaftVoterResponse", (0, 0), 0),
    82: ApiMessages("update_raft_voter", "UpdateRaftVoterRequest", "UpdateRaftVoterResponse", (0, 0), 0),
    83: ApiMessages(
        "initialize_share_group_state",
        "InitializeShareGroupStateRequest",
        "InitializeShareGroupStateResponse",
        (0, 0),
        0,
    ),
    84: ApiMessages(
        "read_share_group_state", "ReadShareGroupStateRequest", "ReadShareGroupStateResponse", (0, 0), 0
    ),
    85: ApiMessages(
        "write_share_group_state", "WriteShareGroupStateRequest", "WriteShareGroupStateResponse", (0, 1), 0
    ),
    86: ApiMessages(
        "delete_share_group_state", "DeleteShareGroupStateRequest", "DeleteShareGroupStateResponse", (0, 0), 0
    ),
    87: ApiMessages(
        "read_share_group_state_summary",
        "ReadShareGroupStateSummaryRequest",
        "ReadShareGroupStateSummaryResponse",
        (0, 1),
        0,
    ),
    88: ApiMessages(
        "streams_group_heartbeat", "StreamsGroupHeartbeatRequest", "StreamsGroupHeartbeatResponse", (0, 0), 0
    ),
    89: ApiMessages(
        "streams_group_describe", "StreamsGroupDescribeRequest", "StreamsGroupDescribeResponse", (0, 0), 0
    ),
    90: ApiMessages(
        "describe_share_group_offsets",
        "DescribeShareGroupOffsetsRequest",
        "DescribeShareGroupOffsetsResponse",
        (0, 1),
        0,
    ),
    91: ApiMessages(
        "alter_share_group_offsets",
        "AlterShareGroupOffsetsRequest",
        "AlterShareGroupOffsetsResponse",
        (0, 0),
        0,
    ),
    92: ApiMessages(
        "delete_share_group_offsets",
        "DeleteShareGroupOffsetsRequest",
        "DeleteShareGroupOffsetsResponse",
        (0, 0),
        0,
    ),
}
