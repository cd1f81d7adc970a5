"""ListGroups of a broker that coordinates no groups."""

import pytest

from kquorum.broker.apis.registry import BROKER_APIS
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import as_read, request_of
from tests.support.broker.listening_broker import Broker, with_broker
from tests.support.running_controllers import RunningController

LOWEST, HIGHEST = BROKER_APIS[ApiKey.LIST_GROUPS].versions


@pytest.mark.parametrize("version", range(LOWEST, HIGHEST + 1))
def test_there_are_no_groups(version: int) -> None:
    async def test(node: Broker, _controller: RunningController) -> None:
        request = request_of(ApiKey.LIST_GROUPS, version, {"states_filter": (), "types_filter": ()})
        answer = await node.client.send_request(as_read(ApiKey.LIST_GROUPS, version, request), version)
        assert (answer.error_code, answer.groups) == (ErrorCode.none, ())  # type: ignore[attr-defined]

    with_broker(test)
