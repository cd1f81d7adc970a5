"""Streams whose client goes away in the middle of a message."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import grpc.aio
import pytest

from kquorum.metadata.grpc import sending
from kquorum.metadata.grpc.sending import send_all
from kquorum.metadata.grpc.turns import PieceTurns


class GoneClient:
    """Takes one message; with the second the connection breaks."""

    def __init__(self) -> None:
        self.taken: list[object] = []

    async def send_initial_metadata(self, metadata: tuple[()]) -> None: ...

    async def write(self, message: object) -> None:
        if self.taken:
            raise grpc.aio.InternalError('Failed "execute_batch"')
        self.taken.append(message)

    async def abort(self, code: grpc.StatusCode, details: str) -> Any:
        raise AssertionError(f"{code}: {details}")


class Messages:
    def __init__(self) -> None:
        self.is_closed = False

    async def all(self) -> AsyncGenerator[object]:
        try:
            for number in range(10):
                yield number
        finally:
            self.is_closed = True


def test_a_disconnected_client_gets_no_more_until_the_call_is_cancelled() -> None:
    messages, client = Messages(), GoneClient()

    async def serve() -> None:
        task = asyncio.ensure_future(send_all(messages.all(), client, 1, PieceTurns()))
        while not messages.is_closed:
            await asyncio.wait([task], timeout=0.01)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(serve())
    assert client.taken == [0]


def test_a_call_that_is_not_cancelled_ends_normally(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "GONE_CLIENT_S", 0.01)
    messages = Messages()
    asyncio.run(send_all(messages.all(), GoneClient(), 1, PieceTurns()))
    assert messages.is_closed
