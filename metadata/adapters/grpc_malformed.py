"""Calls that no service here can answer end with a status instead of a traceback in the node's log.

gRPC's Python server parses a request within the call, and takes an error there for a fault of the service. So it does
when a service leaves out a method of its .proto file.
"""

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

_STATUS: Final = grpc.StatusCode.INTERNAL  # as gRPC's table of statuses has it
_MESSAGE: Final = (
    "the bytes of the request are not a message of this method (is its .proto file the one of this node?)"
)

_LIBRARYS_LOGGER: Final = "grpc._cython.cygrpc"
_NOT_OURS: Final = ("Invalid encoding on", "Failed sending error status")

_Behaviour = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class _Malformed:
    """In place of the request."""


class MalformedRequests(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """For the interceptors of a server; it also keeps messages that any client can cause out of gRPC's log."""

    def __init__(self) -> None:
        self._guarded: dict[Any, Any] = {}
        logging.getLogger(_LIBRARYS_LOGGER).addFilter(_is_ours)

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        guarded = self._guarded.get(handler)
        if guarded is None:
            guarded = self._guarded[handler] = _guarded(handler)
        return guarded


def _is_ours(record: logging.LogRecord) -> bool:
    """False for a header or a path that is not ASCII, as no method of ours is: a client chose it, and it may hold a
    secret. False for a status that could not be sent because the client has gone."""
    message = record.getMessage()
    return message.isascii() and not message.startswith(_NOT_OURS)


def rebuilt_handler(
    handler: Any, wrap: Callable[[_Behaviour], _Behaviour], deserializer: Callable[[bytes], Any]
) -> Any:
    """The handler of a method with something around its behaviour."""
    make = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }[handler.request_streaming, handler.response_streaming]
    behaviour: _Behaviour = (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )
    return make(wrap(behaviour), deserializer, handler.response_serializer)


def _guarded(handler: Any) -> Any:
    judge = _sound_requests if handler.request_streaming else _sound_request

    def wrap(behaviour: _Behaviour) -> _Behaviour:
        return (_generator if inspect.isasyncgenfunction(behaviour) else _coroutine)(behaviour, judge)

    return rebuilt_handler(handler, wrap, _lenient(handler.request_deserializer))


def _coroutine(behaviour: _Behaviour, judge: _Behaviour) -> _Behaviour:
    async def guarded(request: Any, context: Any) -> Any:
        try:
            return await behaviour(await judge(request, context), context)
        except NotImplementedError:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "this node does not serve the method")

    return guarded


def _generator(behaviour: _Behaviour, judge: _Behaviour) -> _Behaviour:
    async def guarded(request: Any, context: Any) -> AsyncIterator[Any]:
        async for response in behaviour(await judge(request, context), context):
            yield response

    return guarded


async def _sound_request(request: Any, context: Any) -> Any:
    if isinstance(request, _Malformed):
        await context.abort(_STATUS, _MESSAGE)
    return request


async def _sound_requests(requests: Any, context: Any) -> Any:
    async def each() -> AsyncIterator[Any]:
        async for request in requests:
            yield await _sound_request(request, context)

    return each()


def _lenient(deserialize: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def read(data: bytes) -> Any:
        try:
            return deserialize(data)
        except DecodeError:
            return _Malformed()

    return read
