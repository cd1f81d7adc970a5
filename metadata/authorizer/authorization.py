"""What each API asks of an authorizer: Kafka's ControllerApis, and of its KafkaApis what is answered from the image.

What brokers alone answer is in `broker.client_access`.
"""

from collections.abc import Callable, Mapping

from metadata.authorizer.access import Access
from metadata.authorizer.cluster_rules import OnCluster, judge_describe_cluster
from metadata.authorizer.codes import Operation
from metadata.authorizer.config_rules import judge_alter_configs, judge_describe_configs
from metadata.authorizer.token_rules import judge_create_token, judge_describe_tokens, judge_token_request
from metadata.authorizer.topic_rules import (
    judge_create_partitions,
    judge_create_topics,
    judge_delete_topics,
)
from metadata.authorizer.verdict import Verdict
from metadata.controller.requests import ControllerRequest
from wire.protocol.api_keys import ApiKey

Rule = Callable[[Access, ControllerRequest], Verdict]

_ALTER = OnCluster(Operation.ALTER)
_DESCRIBE = OnCluster(Operation.DESCRIBE)
_CLUSTER_ACTION = OnCluster(Operation.CLUSTER_ACTION)

RULES: Mapping[ApiKey, Rule] = {
    # Of the quorum's members among themselves.
    ApiKey.VOTE: _CLUSTER_ACTION,
    ApiKey.BEGIN_QUORUM_EPOCH: _CLUSTER_ACTION,
    ApiKey.END_QUORUM_EPOCH: _CLUSTER_ACTION,
    ApiKey.FETCH: _CLUSTER_ACTION,
    ApiKey.FETCH_SNAPSHOT: _CLUSTER_ACTION,
    ApiKey.UPDATE_RAFT_VOTER: _CLUSTER_ACTION,
    ApiKey.DESCRIBE_QUORUM: _DESCRIBE,
    ApiKey.ADD_RAFT_VOTER: _ALTER,
    ApiKey.REMOVE_RAFT_VOTER: _ALTER,
    # Of brokers and controllers to the active controller.
    ApiKey.ENVELOPE: _CLUSTER_ACTION,
    ApiKey.BROKER_REGISTRATION: _CLUSTER_ACTION,
    ApiKey.BROKER_HEARTBEAT: _CLUSTER_ACTION,
    ApiKey.CONTROLLER_REGISTRATION: _CLUSTER_ACTION,
    ApiKey.ALTER_PARTITION: _CLUSTER_ACTION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _CLUSTER_ACTION,
    ApiKey.ALLOCATE_PRODUCER_IDS: _CLUSTER_ACTION,
    # Of administrators.
    ApiKey.CREATE_TOPICS: judge_create_topics,
    ApiKey.DELETE_TOPICS: judge_delete_topics,
    ApiKey.CREATE_PARTITIONS: judge_create_partitions,
    ApiKey.ALTER_CONFIGS: judge_alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: judge_alter_configs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _ALTER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _DESCRIBE,
    ApiKey.ELECT_LEADERS: _ALTER,
    ApiKey.UNREGISTER_BROKER: _ALTER,
    ApiKey.UPDATE_FEATURES: _ALTER,
    ApiKey.CREATE_ACLS: _ALTER,
    ApiKey.DELETE_ACLS: _ALTER,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _ALTER,
    ApiKey.ALTER_CLIENT_QUOTAS: OnCluster(Operation.ALTER_CONFIGS),
    ApiKey.CREATE_DELEGATION_TOKEN: judge_create_token,
    ApiKey.RENEW_DELEGATION_TOKEN: judge_token_request,
    ApiKey.EXPIRE_DELEGATION_TOKEN: judge_token_request,
    # Questions; DescribeCluster as a controller answers it.
    ApiKey.DESCRIBE_CLUSTER: judge_describe_cluster,
    ApiKey.DESCRIBE_ACLS: _DESCRIBE,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _DESCRIBE,
    ApiKey.DESCRIBE_CONFIGS: judge_describe_configs,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: OnCluster(Operation.DESCRIBE_CONFIGS),
    ApiKey.LIST_CONFIG_RESOURCES: OnCluster(Operation.DESCRIBE_CONFIGS),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: judge_describe_tokens,
}
# One question about the cluster as a whole, and a refusal without entries: no body is needed for either.
JUDGED_BY_HEADER = frozenset(
    {
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.FETCH,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.UPDATE_RAFT_VOTER,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.ENVELOPE,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ALTER_PARTITION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.LIST_CONFIG_RESOURCES,
    }
)
# These ask about the connection, authorizer or not.
TOKEN_APIS = frozenset(
    {
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }
)
# DescribeCluster has to tell what is allowed where everything is.
ALWAYS_JUDGED = TOKEN_APIS | {ApiKey.DESCRIBE_CLUSTER}
