"""Whatever goes wrong on the way to the controller, the client hears of it: its connection ends."""

import asyncio
from typing import Any

import pytest

from kquorum.broker.adapters.listener import BrokerListener
from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.network.requests import RequestContext
from kquorum.wire.errors import DecodeError
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import RequestHeader
from tests.support.api_calls import request_of
from tests.support.broker_services import broker_services


class Failing:
    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def forward(self, _context: RequestContext, _request: Any) -> None:
        raise self._error


@pytest.mark.parametrize(
    "error", [DecodeError("nonsense", 0), RuntimeError("a fault of ours"), asyncio.CancelledError()]
)
def test_a_request_that_could_not_be_forwarded_is_not_left_without_a_reply(error: BaseException) -> None:
    async def work() -> list[Any]:
        forwarder: Any = Failing(error)
        listener = BrokerListener(broker_services(MetadataCache(), forwarder))
        header = RequestHeader(ApiKey.UNREGISTER_BROKER, 0, 1, None)
        request = request_of(ApiKey.UNREGISTER_BROKER, 0, {"broker_id": 1})
        replies: list[Any] = []
        listener.handle(RequestContext(1, "127.0.0.1", "PLAINTEXT", header), request, replies.append)
        for _ in range(20):
            await asyncio.sleep(0)
        await listener.stop()
        return replies

    assert asyncio.run(work()) == [None]
