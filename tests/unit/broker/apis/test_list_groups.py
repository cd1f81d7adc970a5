"""ListGroups of a broker that coordinates no groups."""

import pytest
from kio.schema.errors import ErrorCode

from kquorum.broker.apis.registry import BROKER_APIS
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import request_class
from kquorum.wire.protocol.entities import build
from tests.support.running_controllers import RunningController
from tests.unit.broker.adapters.test_listener import Broker, with_broker

LOWEST, HIGHEST = BROKER_APIS[ApiKey.LIST_GROUPS].versions


@pytest.mark.parametrize("version", range(LOWEST, HIGHEST + 1))
def test_there_are_no_groups(version: int) -> None:
    async def test(node: Broker, _controller: RunningController) -> None:
        request = build(request_class(ApiKey.LIST_GROUPS, version), {"states_filter": (), "types_filter": ()})
        answer = await node.client.send(ApiKey.LIST_GROUPS, version, request)
        assert (answer.error_code, answer.groups) == (ErrorCode.none, ())  # type: ignore[attr-defined]

    with_broker(test)
