"""What goes into a handler and what comes out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from wire.protocol.api_keys import ApiKey
from wire.schema import MetadataRecord

if TYPE_CHECKING:
    from metadata.controller.sweep import PartitionSweep

# A response as `wire.protocol.entities.build` takes it: kio's field names, every version's fields together.
Values = dict[str, Any]
Reply = Callable[[Values], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRequest:
    """A request that reached the controller; `body` is kio's entity of this API and version."""

    api_key: ApiKey
    api_version: int
    body: Any
    principal: str = "User:ANONYMOUS"
    client_id: str | None = None
    client_host: str = ""
    correlation_id: int = 0


class ApiError(Exception):
    """The request as a whole, or the one entry under check, is refused: lawful, and told to the client."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        self.code = code
        self.message = message
        super().__init__(f"{code.name}: {message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerResult:
    """What a handler decided; nothing has happened yet.

    Atomic records go into one batch or not at all; others may be spread over several. `audit_reason` says in words
    what an administrative change does; None for what nobody asked for as an administrator. `after_append` is told
    the end offset once the records are in the log of the leader (not yet committed). `waits_for_log_end` holds the
    answer back until all that is in the log then is committed: for what `after_append` appended by other means.
    `sweep` is what is left to be done of it in later turns.
    """

    response: Values
    records: tuple[MetadataRecord, ...] = ()
    is_atomic: bool = True
    audit_reason: str | None = None
    after_append: Callable[[int], None] | None = None
    waits_for_log_end: bool = False
    sweep: "PartitionSweep | None" = None


def not_controller(leader_id: int) -> ApiError:
    known = f"node {leader_id} is" if leader_id >= 0 else "no active controller is known"
    return ApiError(ErrorCode.not_controller, f"This node is not the active controller; {known}.")


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
