"""Streams of the gRPC services: messages one by one as fast as the client takes them, and refusals as statuses."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, Protocol

import grpc

from kquorum.metadata.grpc.feed import WatcherOverrun
from kquorum.metadata.grpc.inspect.messages import UnknownType
from kquorum.metadata.grpc.source import (
    LogUnreadable,
    NoSuchSnapshot,
    NotReady,
    NotTheLeader,
    OffsetOutOfRange,
    ServerStopping,
)
from kquorum.metadata.grpc.turns import PieceTurns
from kquorum.metadata.image.errors import ReplayError
from kquorum.wire.errors import DecodeError


class BadRange(Exception):
    """A request whose fields contradict each other."""


STATUS: Final[Mapping[type[Exception], grpc.StatusCode]] = {
    UnknownType: grpc.StatusCode.INVALID_ARGUMENT,
    BadRange: grpc.StatusCode.INVALID_ARGUMENT,
    OffsetOutOfRange: grpc.StatusCode.OUT_OF_RANGE,
    NoSuchSnapshot: grpc.StatusCode.NOT_FOUND,
    WatcherOverrun: grpc.StatusCode.RESOURCE_EXHAUSTED,
    ServerStopping: grpc.StatusCode.UNAVAILABLE,
    NotReady: grpc.StatusCode.UNAVAILABLE,
    NotTheLeader: grpc.StatusCode.FAILED_PRECONDITION,
    LogUnreadable: grpc.StatusCode.DATA_LOSS,
    ReplayError: grpc.StatusCode.DATA_LOSS,
    DecodeError: grpc.StatusCode.DATA_LOSS,
}


class Context(Protocol):
    """What is used of gRPC's context of a call."""

    async def send_initial_metadata(self, metadata: tuple[()]) -> None: ...

    async def write(self, message: object) -> None: ...

    async def abort(self, code: grpc.StatusCode, details: str) -> Any:
        """Always raises."""
        ...


# The library cancels the call of a client that is gone, as soon as it has noticed.
GONE_CLIENT_S = 5.0


async def send_all(
    messages: AsyncGenerator[object], context: Context, node_id: int, pieces: PieceTurns
) -> None:
    """`node_id` is this node's, for the text of a status; each message takes its turn of `pieces`."""
    try:
        await _send(messages, context, node_id, pieces)
    except grpc.aio.InternalError:
        # The connection broke under the message. To say anything more, the end of the stream included, would fail
        # likewise, and the library would log the trace of it as our mistake.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GONE_CLIENT_S):
                await asyncio.Event().wait()


async def _send(messages: AsyncGenerator[object], context: Context, node_id: int, pieces: PieceTurns) -> None:
    await context.send_initial_metadata(())  # a client of a quiet stream learns that it is connected
    try:
        async with contextlib.aclosing(messages):
            async for message in messages:
                await context.write(message)
                await pieces.take()  # before the next message is made
    except tuple(STATUS) as refusal:
        text = str(refusal) or f"node {node_id} is stopping"
        await context.abort(next(code for cls, code in STATUS.items() if isinstance(refusal, cls)), text)
