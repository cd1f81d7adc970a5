"""How a request is refused as a whole, by a controller or an authorizer: each API has its own shape for that."""

from collections.abc import Callable, Mapping
from typing import Final

from kio.schema.errors import ErrorCode

from kquorum.metadata.controller.configs import client_quotas
from kquorum.metadata.controller.configs.alter_configs import config_refusal
from kquorum.metadata.controller.requests import ApiError, ControllerRequest, Values
from kquorum.metadata.controller.security.delegation_tokens import creation_refusal
from kquorum.wire.protocol.api_keys import ApiKey

_Shape = Callable[[ControllerRequest, ApiError], Values]

RAFT_APIS = frozenset(
    {
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.FETCH,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.UPDATE_RAFT_VOTER,
    }
)


def refusal(request: ControllerRequest, error: ApiError) -> Values:
    """The response that refuses the whole request, in the shape that its API has for that."""
    shape = _SHAPES_OF_REPLICAS.get(request.api_key)
    if shape is not None:
        return shape(request, error)
    return {"throttle_time": 0, **_SHAPES[request.api_key](request, error)}


def not_loaded(request: ControllerRequest) -> ApiError:
    """Makes every client ask again, here or elsewhere: Kafka's replicas give up at other errors."""
    code = ErrorCode.broker_not_available if request.api_key in RAFT_APIS else ErrorCode.not_controller
    reason = "This node has not yet loaded the metadata log, so it does not know who may do what; ask again."
    return ApiError(code, reason)


def topic_refusal(name: str, error: ApiError) -> Values:
    """An entry of a CreateTopics response."""
    return {
        "name": name,
        "topic_id": None,
        "error_code": error.code,
        "error_message": error.message,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": (),
    }


def _create_topics(request: ControllerRequest, error: ApiError) -> Values:
    names = dict.fromkeys(topic.name for topic in request.body.topics)
    return {"topics": [topic_refusal(name, error) for name in names]}


def _delete_topics(request: ControllerRequest, error: ApiError) -> Values:
    named = getattr(request.body, "topics", None)
    if named is None:
        return {"responses": [_deletion_refusal(name, None, error) for name in request.body.topic_names]}
    return {"responses": [_deletion_refusal(each.name, each.topic_id, error) for each in named]}


def _deletion_refusal(name: str | None, topic_id: object, error: ApiError) -> Values:
    return {"name": name, "topic_id": topic_id, "error_code": error.code, "error_message": error.message}


def _create_acls(request: ControllerRequest, error: ApiError) -> Values:
    return {"results": [_with_message(request, error) for _ in request.body.creations]}


def _delete_acls(request: ControllerRequest, error: ApiError) -> Values:
    refused = {**_with_message(request, error), "matching_acls": ()}
    return {"filter_results": [refused for _ in request.body.filters]}


def _create_partitions(request: ControllerRequest, error: ApiError) -> Values:
    names = dict.fromkeys(topic.name for topic in request.body.topics)
    return {"results": [{"name": name, **_with_message(request, error)} for name in names]}


def _alter_partition_reassignments(request: ControllerRequest, error: ApiError) -> Values:
    """The reason stands beside each partition too, where Kafka's clients look for it."""
    refused = _with_message(request, error)
    responses = [
        {
            "name": topic.name,
            "partitions": [{"partition_index": each.partition_index, **refused} for each in topic.partitions],
        }
        for topic in request.body.topics
    ]
    allows_change = getattr(request.body, "allow_replication_factor_change", True)
    return {**refused, "allow_replication_factor_change": allows_change, "responses": responses}


def _elect_leaders(request: ControllerRequest, error: ApiError) -> Values:
    refused = _with_message(request, error)
    results = [
        {
            "topic": each.topic,
            "partition_result": [{"partition_id": one, **refused} for one in each.partitions],
        }
        for each in request.body.topic_partitions or ()
    ]
    return {"error_code": error.code, "replica_election_results": results}


def _with_message(_request: ControllerRequest, error: ApiError) -> Values:
    return {"error_code": error.code, "error_message": error.message}


def _update_features(request: ControllerRequest, error: ApiError) -> Values:
    """Up to version 1 the reason also stands beside each feature, where Kafka's older tools look for it."""
    values = _with_message(request, error)
    if request.api_version < 2:
        values["results"] = [
            {"feature": update.feature, **_with_message(request, error)}
            for update in request.body.feature_updates
        ]
    return values


def _alter_user_scram_credentials(request: ControllerRequest, error: ApiError) -> Values:
    changes = (*request.body.deletions, *request.body.upsertions)
    users = dict.fromkeys(change.name for change in changes)
    return {"results": [{"user": user, **_with_message(request, error)} for user in users]}


def _with_code_and(**others: object) -> _Shape:
    return lambda _request, error: {"error_code": error.code, **others}


def _with_message_and(**others: object) -> _Shape:
    return lambda _request, error: {"error_code": error.code, "error_message": error.message, **others}


# An entry of a request may have few bytes: its refusal must not be many times as long.
_MOST_MESSAGES: Final = 100


def _describe_configs(request: ControllerRequest, error: ApiError) -> Values:
    results = [
        {
            "error_code": error.code,
            "error_message": error.message if number < _MOST_MESSAGES else None,
            "resource_type": asked.resource_type,
            "resource_name": asked.resource_name,
            "configs": (),
        }
        for number, asked in enumerate(request.body.resources)
    ]
    return {"results": results}


def _broker_registration(_request: ControllerRequest, error: ApiError) -> Values:
    return {"error_code": error.code, "broker_epoch": -1, "session_ends_in_ms": error.ends_in_ms}


def _describe_cluster(request: ControllerRequest, error: ApiError) -> Values:
    return {**_with_message(request, error), "cluster_id": "", "controller_id": -1, "brokers": ()}


_SHAPES: Mapping[ApiKey, _Shape] = {
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda request, error: {
        **_with_message(request, error),
        "topics": (),
    },
    ApiKey.ELECT_LEADERS: _elect_leaders,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _with_code_and(directories=()),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: config_refusal,
    ApiKey.ALTER_CONFIGS: config_refusal,
    ApiKey.ALTER_PARTITION: _with_code_and(topics=()),
    ApiKey.BROKER_REGISTRATION: _broker_registration,
    ApiKey.BROKER_HEARTBEAT: _with_code_and(is_caught_up=False, is_fenced=True, should_shut_down=False),
    ApiKey.CREATE_ACLS: _create_acls,
    ApiKey.DELETE_ACLS: _delete_acls,
    ApiKey.CREATE_DELEGATION_TOKEN: creation_refusal,
    ApiKey.RENEW_DELEGATION_TOKEN: _with_code_and(expiry_timestamp=0),
    ApiKey.EXPIRE_DELEGATION_TOKEN: _with_code_and(expiry_timestamp=0),
    ApiKey.ALLOCATE_PRODUCER_IDS: _with_code_and(producer_id_start=0, producer_id_len=0),
    ApiKey.UNREGISTER_BROKER: _with_message,
    ApiKey.CONTROLLER_REGISTRATION: _with_message,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.UPDATE_FEATURES: _update_features,
    ApiKey.ALTER_CLIENT_QUOTAS: client_quotas.refusals,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _alter_user_scram_credentials,
    # Changes of the voters are the replica's to make; a broker refuses them when no controller can be reached.
    ApiKey.ADD_RAFT_VOTER: _with_message,
    ApiKey.REMOVE_RAFT_VOTER: _with_message,
    # Answered by any node from its image.
    ApiKey.DESCRIBE_ACLS: _with_message_and(resources=()),
    ApiKey.DESCRIBE_CONFIGS: _describe_configs,
    ApiKey.LIST_CONFIG_RESOURCES: _with_code_and(config_resources=()),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _with_code_and(tokens=()),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _with_message_and(entries=None),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _with_message_and(results=()),
    ApiKey.UPDATE_RAFT_VOTER: _with_code_and(
        current_leader={"leader_id": -1, "leader_epoch": -1, "host": "", "port": -1}
    ),
}
# The requests between replicas, and the envelope: their answers have no throttle time.
_SHAPES_OF_REPLICAS: Mapping[ApiKey, _Shape] = {
    ApiKey.ENVELOPE: _with_code_and(response_data=None),
    ApiKey.VOTE: _with_code_and(topics=()),
    ApiKey.BEGIN_QUORUM_EPOCH: _with_code_and(topics=()),
    ApiKey.END_QUORUM_EPOCH: _with_code_and(topics=()),
    ApiKey.FETCH: _with_code_and(responses=()),
    ApiKey.FETCH_SNAPSHOT: _with_code_and(topics=()),
    ApiKey.DESCRIBE_QUORUM: _with_message_and(topics=(), nodes=()),
}
