"""The requests that only the active controller carries out, and who decides each."""

from collections.abc import Callable, Mapping

from metadata.controller.brokers.heartbeat import heartbeat
from metadata.controller.brokers.producer_ids import allocate_producer_ids
from metadata.controller.brokers.registration import register_broker, register_controller, unregister_broker
from metadata.controller.configs.alter_configs import alter_configs, incremental_alter_configs
from metadata.controller.configs.client_quotas import alter_client_quotas
from metadata.controller.context import DecisionContext
from metadata.controller.partitions.alter_partition import alter_partition
from metadata.controller.partitions.assign_directories import assign_replicas_to_directories
from metadata.controller.partitions.elect_leaders import elect_leaders
from metadata.controller.partitions.reassignments import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from metadata.controller.quorum.features import update_features
from metadata.controller.requests import ControllerRequest, Values
from metadata.controller.results import ControllerResult
from metadata.controller.security.acls import create_acls, delete_acls
from metadata.controller.security.delegation_tokens import (
    create_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from metadata.controller.security.scram import alter_user_scram_credentials
from metadata.controller.topics.create_partitions import create_partitions
from metadata.controller.topics.create_topics import create_topics
from metadata.controller.topics.delete_topics import delete_topics
from metadata.image.image import MetadataImage
from wire.protocol.api_keys import ApiKey

Handler = Callable[[DecisionContext, ControllerRequest], ControllerResult]

HANDLERS: Mapping[ApiKey, Handler] = {
    ApiKey.BROKER_REGISTRATION: register_broker,
    ApiKey.BROKER_HEARTBEAT: heartbeat,
    ApiKey.UNREGISTER_BROKER: unregister_broker,
    ApiKey.CONTROLLER_REGISTRATION: register_controller,
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.ALTER_PARTITION: alter_partition,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: alter_partition_reassignments,
    ApiKey.ELECT_LEADERS: elect_leaders,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: assign_replicas_to_directories,
    ApiKey.ALLOCATE_PRODUCER_IDS: allocate_producer_ids,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs,
    ApiKey.ALTER_CONFIGS: alter_configs,
    ApiKey.CREATE_ACLS: create_acls,
    ApiKey.DELETE_ACLS: delete_acls,
    ApiKey.CREATE_DELEGATION_TOKEN: create_delegation_token,
    ApiKey.RENEW_DELEGATION_TOKEN: renew_delegation_token,
    ApiKey.EXPIRE_DELEGATION_TOKEN: expire_delegation_token,
    ApiKey.UPDATE_FEATURES: update_features,
    ApiKey.ALTER_CLIENT_QUOTAS: alter_client_quotas,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: alter_user_scram_credentials,
}

# What a controller reads from the committed image, standbys too; brokers forward it.
Reader = Callable[[MetadataImage, ControllerRequest], Values]

READERS: Mapping[ApiKey, Reader] = {
    ApiKey.LIST_PARTITION_REASSIGNMENTS: list_partition_reassignments,
}

# DescribeCluster is answered by standbys too.
SERVED_APIS = frozenset({*HANDLERS, *READERS, ApiKey.DESCRIBE_CLUSTER})
