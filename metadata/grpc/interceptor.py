"""Something around the methods of all services, such as a limit or a check: what the node's interceptors share."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

Behaviour = Callable[[Any, Any], Any]


class WrappingInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """For the interceptors of a server. `wrap` makes the handler that takes the place of a method's own."""

    def __init__(self, wrap: Callable[[Any, str], Any]) -> None:
        """`wrap` takes the handler and the path of the method, such as /kquorum.v1.Inspect/Image."""
        self._wrap = wrap
        # gRPC asks once for each call. The handlers of the services live as long as the server.
        self._wrapped: dict[Any, Any] = {}

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None:  # no service has the method
            return None
        wrapped = self._wrapped.get(handler)
        if wrapped is None:
            wrapped = self._wrapped[handler] = self._wrap(handler, handler_call_details.method)
        return wrapped


def rebuilt_handler(
    handler: Any,
    wrap: Callable[[Behaviour], Behaviour],
    deserializer: Callable[[bytes], Any] | None = None,
) -> Any:
    """The handler of a method with something around its behaviour, and perhaps with another deserializer."""
    make = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }[handler.request_streaming, handler.response_streaming]
    behaviour: Behaviour = (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )
    return make(wrap(behaviour), deserializer or handler.request_deserializer, handler.response_serializer)
