"""The requests that only the active controller carries out, and who decides each."""

from collections.abc import Callable, Mapping

from metadata.controller.alter_partition import alter_partition
from metadata.controller.context import DecisionContext
from metadata.controller.create_topics import create_topics
from metadata.controller.delete_topics import delete_topics
from metadata.controller.heartbeat import heartbeat
from metadata.controller.producer_ids import allocate_producer_ids
from metadata.controller.registration import register_broker, register_controller, unregister_broker
from metadata.controller.requests import ControllerRequest, ControllerResult
from metadata.controller.update_features import update_features
from wire.protocol.api_keys import ApiKey

Handler = Callable[[DecisionContext, ControllerRequest], ControllerResult]

HANDLERS: Mapping[ApiKey, Handler] = {
    ApiKey.BROKER_REGISTRATION: register_broker,
    ApiKey.BROKER_HEARTBEAT: heartbeat,
    ApiKey.UNREGISTER_BROKER: unregister_broker,
    ApiKey.CONTROLLER_REGISTRATION: register_controller,
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.ALTER_PARTITION: alter_partition,
    ApiKey.ALLOCATE_PRODUCER_IDS: allocate_producer_ids,
    ApiKey.UPDATE_FEATURES: update_features,
}

# DescribeCluster is answered by standbys too.
SERVED_APIS = frozenset({*HANDLERS, ApiKey.DESCRIBE_CLUSTER})
