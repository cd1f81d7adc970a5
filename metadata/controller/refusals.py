"""How a request is refused as a whole: each API has its own shape for that."""

from collections.abc import Callable, Mapping

from metadata.controller.requests import ApiError, ControllerRequest, Values
from wire.protocol.api_keys import ApiKey


def refusal(request: ControllerRequest, error: ApiError) -> Values:
    """The response that refuses the whole request, in the shape that its API has for that."""
    return {"throttle_time": 0, **_SHAPES[request.api_key](request, error)}


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


def _with_code_and(**others: object) -> Callable[[ControllerRequest, ApiError], Values]:
    return lambda _request, error: {"error_code": error.code, **others}


def _describe_cluster(request: ControllerRequest, error: ApiError) -> Values:
    return {**_with_message(request, error), "cluster_id": "", "controller_id": -1, "brokers": ()}


_SHAPES: Mapping[ApiKey, Callable[[ControllerRequest, ApiError], Values]] = {
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.ALTER_PARTITION: _with_code_and(topics=()),
    ApiKey.BROKER_REGISTRATION: _with_code_and(broker_epoch=-1),
    ApiKey.BROKER_HEARTBEAT: _with_code_and(is_caught_up=False, is_fenced=True, should_shut_down=False),
    ApiKey.ALLOCATE_PRODUCER_IDS: _with_code_and(producer_id_start=0, producer_id_len=0),
    ApiKey.UNREGISTER_BROKER: _with_message,
    ApiKey.CONTROLLER_REGISTRATION: _with_message,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.UPDATE_FEATURES: _update_features,
    # Changes of the voters are the replica's to make; a broker refuses them when no controller can be reached.
    ApiKey.ADD_RAFT_VOTER: _with_message,
    ApiKey.REMOVE_RAFT_VOTER: _with_message,
}
