"""How a request is refused as a whole, for every API that an authorizer is asked about."""

from collections.abc import Callable, Mapping

from kio.schema.errors import ErrorCode

from metadata.controller import refusals
from metadata.controller.requests import ApiError, ControllerRequest, Values
from wire.protocol.api_keys import ApiKey

_Shape = Callable[[ControllerRequest, ApiError], Values]


def refusal(request: ControllerRequest, error: ApiError) -> Values:
    shape = _SHAPES.get(request.api_key)
    return refusals.refusal(request, error) if shape is None else shape(request, error)


def _with_code_and(**others: object) -> _Shape:
    return lambda _request, error: {"error_code": error.code, **others}


def _with_message_and(**others: object) -> _Shape:
    return lambda _request, error: {"error_code": error.code, "error_message": error.message, **others}


def _describe_configs(request: ControllerRequest, error: ApiError) -> Values:
    results = [
        {
            "error_code": error.code,
            "error_message": error.message,
            "resource_type": asked.resource_type,
            "resource_name": asked.resource_name,
            "configs": (),
        }
        for asked in request.body.resources
    ]
    return {"throttle_time": 0, "results": results}


_NO_LEADER = {"leader_id": -1, "leader_epoch": -1, "host": "", "port": -1}
_SHAPES: Mapping[ApiKey, _Shape] = {
    ApiKey.ENVELOPE: _with_code_and(response_data=None),
    ApiKey.VOTE: _with_code_and(topics=()),
    ApiKey.BEGIN_QUORUM_EPOCH: _with_code_and(topics=()),
    ApiKey.END_QUORUM_EPOCH: _with_code_and(topics=()),
    ApiKey.FETCH: _with_code_and(responses=()),
    ApiKey.FETCH_SNAPSHOT: _with_code_and(topics=()),
    ApiKey.UPDATE_RAFT_VOTER: _with_code_and(throttle_time=0, current_leader=_NO_LEADER),
    ApiKey.DESCRIBE_QUORUM: _with_message_and(topics=(), nodes=()),
    ApiKey.DESCRIBE_ACLS: _with_message_and(throttle_time=0, resources=()),
    ApiKey.DESCRIBE_CONFIGS: _describe_configs,
    ApiKey.LIST_CONFIG_RESOURCES: _with_code_and(throttle_time=0, config_resources=()),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _with_code_and(throttle_time=0, tokens=()),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _with_message_and(throttle_time=0, entries=None),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _with_message_and(throttle_time=0, results=()),
}


def not_loaded(request: ControllerRequest) -> ApiError:
    """What makes everybody try again, here or elsewhere: Kafka's replicas give up at other errors."""
    code = ErrorCode.broker_not_available if request.api_key in RAFT_APIS else ErrorCode.not_controller
    reason = "This node has not yet loaded the metadata log, so it does not know who may do what; ask again."
    return ApiError(code, reason)


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
