"""AlterConfigs, IncrementalAlterConfigs, DescribeConfigs: each resource alone (ControllerApis, ConfigHelper)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, Protocol, TypeVar

from kquorum.metadata.authorizer.access import Access
from kquorum.metadata.authorizer.codes import FAILED, Operation, ResourceType
from kquorum.metadata.authorizer.verdict import Verdict
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.image.configs import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from kquorum.wire.messages import alter_configs as legacy
from kquorum.wire.messages import incremental_alter_configs as incremental
from kquorum.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from kquorum.wire.messages.error_codes import ErrorCode

_OF_CLUSTER = (BROKER, BROKER_LOGGER, CLIENT_METRICS)
_OF_NAMED = {TOPIC: ResourceType.TOPIC, GROUP: ResourceType.GROUP}


class _Resource(Protocol):
    """A resource in any of the requests."""

    resource_type: int
    resource_name: str


Asked = TypeVar("Asked", legacy.AlterConfigsResource, incremental.AlterConfigsResource)
Entry = TypeVar("Entry", legacy.AlterConfigsResourceResponse, incremental.AlterConfigsResourceResponse)


def judge_alter_configs(access: Access, request: ControllerRequest) -> Verdict:
    """ALTER_CONFIGS on the topic, the group, or the cluster. The levels of a controller's loggers take CLUSTER_ACTION;
    those of a broker come from there, and are for a client."""
    body: legacy.AlterConfigsRequest = request.body
    kept, refused = _parted(access, body.resources, is_forwarded=request.is_forwarded)
    if not refused:
        return Verdict(body)
    entries = _refusals(legacy.AlterConfigsResourceResponse, refused)

    def complete(response: legacy.AlterConfigsResponse) -> legacy.AlterConfigsResponse:
        return replace(response, responses=(*response.responses, *entries))

    return Verdict(replace(body, resources=kept), complete)


def judge_incremental_alter_configs(access: Access, request: ControllerRequest) -> Verdict:
    """As `judge_alter_configs`."""
    body: incremental.IncrementalAlterConfigsRequest = request.body
    kept, refused = _parted(access, body.resources, is_forwarded=request.is_forwarded)
    if not refused:
        return Verdict(body)
    entries = _refusals(incremental.AlterConfigsResourceResponse, refused)

    def complete(
        response: incremental.IncrementalAlterConfigsResponse,
    ) -> incremental.IncrementalAlterConfigsResponse:
        return replace(response, responses=(*response.responses, *entries))

    return Verdict(replace(body, resources=kept), complete)


def _refusals(entry: type[Entry], refused: Iterable[tuple[_Resource, ErrorCode]]) -> list[Entry]:
    return [
        entry(
            error_code=error,
            error_message=None,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
        )
        for asked, error in refused
    ]


def _parted(
    access: Access, resources: Iterable[Asked], *, is_forwarded: bool
) -> tuple[tuple[Asked, ...], list[tuple[Asked, ErrorCode]]]:
    """The resources that go on, and those that are refused."""
    mentions = Counter([(each.resource_type, each.resource_name) for each in resources])

    def failure(asked: Asked) -> ErrorCode | None:
        if mentions[asked.resource_type, asked.resource_name] > 1:
            return None  # that it is there twice is all that the answer says
        if asked.resource_type == BROKER_LOGGER and not is_forwarded:
            return _failure(access, Operation.CLUSTER_ACTION, asked)
        return _failure(access, Operation.ALTER_CONFIGS, asked)

    kept: list[Asked] = []
    refused: list[tuple[Asked, ErrorCode]] = []
    for asked in resources:
        error = failure(asked)
        if error is None:
            kept.append(asked)
        else:
            refused.append((asked, error))
    return tuple(kept), refused


# Some microseconds each.
RESOURCES_AT_ONCE: Final = 500


def judge_describe_configs(access: Access, request: ControllerRequest) -> Verdict:
    *_, verdict = judge_describe_configs_in_slices(access, request)
    assert verdict is not None, "the last slice has the verdict"
    return verdict


def judge_describe_configs_in_slices(access: Access, request: ControllerRequest) -> Iterator[Verdict | None]:
    """None after each slice, and last the verdict."""
    body: DescribeConfigsRequest = request.body
    kept: list[DescribeConfigsResource] = []
    refused: list[DescribeConfigsResult] = []
    for number, asked in enumerate(body.resources):
        if number and number % RESOURCES_AT_ONCE == 0:
            yield None
        error = _failure(access, Operation.DESCRIBE_CONFIGS, asked)
        if error is None:
            kept.append(asked)
            continue
        refused.append(
            DescribeConfigsResult(
                error_code=error,
                error_message=None,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
            )
        )
    yield Verdict(replace(body, resources=tuple(kept)), refused=refused) if refused else Verdict(body)


def _failure(access: Access, operation: Operation, asked: _Resource) -> ErrorCode | None:
    """None also for a type that is not known, which is refused further on."""
    if asked.resource_type in _OF_CLUSTER:
        return None if access.allows_on_cluster(operation) else FAILED[ResourceType.CLUSTER]
    resource_type = _OF_NAMED.get(asked.resource_type)
    if resource_type is None or access.allows(operation, resource_type, asked.resource_name):
        return None
    return FAILED[resource_type]
