"""The gRPC server of a node: `Inspect`, `Quorum`, `Broker`, health and reflection, in the node's own event loop.

Calls that no service here can answer end with a status instead of a traceback in the node's log: gRPC's Python server
parses a request within the call, and takes an error there for a fault of the service, also when a service leaves out a
method of its .proto file.
"""

import asyncio
import contextlib
import errno
import inspect
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from kquorum.metadata.grpc.access import CALL_RULES, SHORT_REQUEST_BYTES, CallRule, MemberGate
from kquorum.metadata.grpc.broker.service import BrokerCalls, BrokerService
from kquorum.metadata.grpc.callers import KnownCallers
from kquorum.metadata.grpc.feed import WATCHER_QUEUE_CHANGES, ChangeFeed
from kquorum.metadata.grpc.inspect.service import InspectService
from kquorum.metadata.grpc.interceptor import Behaviour, WrappingInterceptor, rebuilt_handler
from kquorum.metadata.grpc.open_calls import BoundedCalls, OpenCalls
from kquorum.metadata.grpc.quorum.service import MembersSource, QuorumService, QuorumSource
from kquorum.metadata.grpc.source import CommittedLog, InspectSource
from kquorum.network.errors import CannotListen, listen_error
from kquorum.network.http2_front import Http2Front
from kquorum.network.limits import GrpcLimits, ServerCounters
from kquorum.network.security.listener_security import ListenerSecurity
from kquorum.network.server_state import SharedLimits
from kquorum.wire.proto import broker_pb2, inspect_pb2, quorum_pb2
from kquorum.wire.proto.broker_pb2_grpc import add_BrokerServicer_to_server
from kquorum.wire.proto.inspect_pb2_grpc import add_InspectServicer_to_server
from kquorum.wire.proto.quorum_pb2_grpc import add_QuorumServicer_to_server

_STATUS: Final = grpc.StatusCode.INTERNAL  # as gRPC's table of statuses has it
_MESSAGE: Final = (
    "the bytes of the request are not a message of this method (is its .proto file the one of this node?)"
)

# From the client of one call: reflection alone takes more than one, and its clients send some ten.
MOST_MESSAGES_OF_CALL: Final = 64
_TOO_MANY_MESSAGES: Final = f"a call takes at most {MOST_MESSAGES_OF_CALL} messages; make another call"

_LIBRARYS_LOGGER: Final = "grpc._cython.cygrpc"
_NOT_OURS: Final = ("Invalid encoding on", "Failed sending error status")


class JudgedRequests(WrappingInterceptor):
    """For the interceptors of a server: a request stays bytes until its caller is known to have the right.

    Parsed, a request takes up to twenty times its bytes, so a client without rights gets nothing parsed; and only the
    requests that are long by their nature may have more than SHORT_REQUEST_BYTES. `gate` None: all may call.
    It also keeps messages that any client can cause out of gRPC's log.
    """

    def __init__(self, gate: MemberGate | None) -> None:
        super().__init__(self._judged)
        self._gate = gate
        logging.getLogger(_LIBRARYS_LOGGER).addFilter(_is_ours)

    def _judged(self, handler: Any, method: str) -> Any:
        # A method of ours without a rule is a fault of this node, and stays closed.
        rule = CALL_RULES[method] if method.startswith("/kquorum.") else None
        parse = _parser(handler.request_deserializer, rule)
        read = _requests(parse) if handler.request_streaming else parse

        async def judge(request: Any, context: Any) -> Any:
            if self._gate is not None and rule is not None:
                await self._gate.admit(context, rule.api_key)
            return await read(request, context)

        def wrap(behaviour: Behaviour) -> Behaviour:
            return (_generator if inspect.isasyncgenfunction(behaviour) else _coroutine)(behaviour, judge)

        return rebuilt_handler(handler, wrap, bytes)


def _is_ours(record: logging.LogRecord) -> bool:
    """False for a header or a path that is not ASCII, as no method of ours is: a client chose it, and it may hold a
    secret. False for a status that could not be sent because the client has gone."""
    message = record.getMessage()
    return message.isascii() and not message.startswith(_NOT_OURS)


def _coroutine(behaviour: Behaviour, judge: Behaviour) -> Behaviour:
    async def guarded(request: Any, context: Any) -> Any:
        try:
            return await behaviour(await judge(request, context), context)
        except NotImplementedError:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "this node does not serve the method")

    return guarded


def _generator(behaviour: Behaviour, judge: Behaviour) -> Behaviour:
    async def guarded(request: Any, context: Any) -> AsyncIterator[Any]:
        async for response in behaviour(await judge(request, context), context):
            yield response

    return guarded


def _parser(deserialize: Callable[[bytes], Any], rule: CallRule | None) -> Behaviour:
    may_be_long = rule is not None and rule.may_be_long

    async def parse(data: bytes, context: Any) -> Any:
        if len(data) > SHORT_REQUEST_BYTES and not may_be_long:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, _too_long(len(data)))
        try:
            return deserialize(data)
        except DecodeError:
            await context.abort(_STATUS, _MESSAGE)

    return parse


def _requests(parse: Behaviour) -> Behaviour:
    async def read(requests: Any, context: Any) -> Any:
        async def each() -> AsyncIterator[Any]:
            count = 0
            async for data in requests:
                count += 1
                if count > MOST_MESSAGES_OF_CALL:
                    await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, _TOO_MANY_MESSAGES)
                yield await parse(data, context)

        return each()

    return read


def _too_long(size: int) -> str:
    return (
        f"the request has {size:,} bytes, and this method takes at most {SHORT_REQUEST_BYTES:,}: name fewer things in "
        "a call, or name none, which means all"
    )


SERVICE_NAME = inspect_pb2.DESCRIPTOR.services_by_name["Inspect"].full_name
QUORUM_SERVICE_NAME = quorum_pb2.DESCRIPTOR.services_by_name["Quorum"].full_name
BROKER_SERVICE_NAME = broker_pb2.DESCRIPTOR.services_by_name["Broker"].full_name
# For the log. Listeners of a config have names in upper case.
_LISTENER_NAME = "grpc"
HEALTH_POLL_SECONDS = 0.2
_ADDRESS_REMEDY = "set `kquorum.grpc.listener` to a free address of this machine"
_FOLDER_REMEDY = "let TMPDIR name a folder that this user may write to"
_DEFAULT_LIMITS = GrpcLimits()

_OPTIONS = (
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    # A window that grows with the speed of the link let a client fill a gigabyte with messages nothing had read yet.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 65_535),
    # Without a dynamic table a short block of headers cannot unfold to megabytes.
    ("grpc.http2.hpack_table_size.decoder", 0),
)


class GrpcCannotListen(CannotListen):
    """The address of the gRPC listener could not be bound."""

    def __init__(self, host: str, port: int, reason: str, remedy: str = _ADDRESS_REMEDY) -> None:
        super().__init__(host, port, reason, remedy)


class GrpcPortInUse(GrpcCannotListen):
    """Another socket listens there."""


def grpc_listen_error(host: str, port: int, error: OSError) -> GrpcCannotListen:
    """The environment's refusal in our words."""
    cls = GrpcPortInUse if error.errno == errno.EADDRINUSE else GrpcCannotListen
    return cls(host, port, listen_error(host, port, error).reason)


class InspectServer:
    """A running server; `bound_port` is the real one also where port 0 was asked for."""

    def __init__(
        self,
        server: grpc.aio.Server,
        front: Http2Front,
        log: CommittedLog,
        calls: OpenCalls,
        health_task: asyncio.Task[None],
    ) -> None:
        self.bound_port = front.bound_port
        self._server = server
        self._calls = calls
        self._front = front
        self._log = log
        self._health_task = health_task

    @property
    def counters(self) -> ServerCounters:
        return self._front.counters

    @property
    def security(self) -> ListenerSecurity:
        return self._front.security

    async def stop(self, grace: float = 1.0) -> None:
        """Close the port, end the streams with UNAVAILABLE, and give other calls `grace` seconds."""
        self._front.stop_accepting()
        self._health_task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._health_task
        self._log.close()
        # A server that stops may close its connections before it has sent the statuses of streams that end meanwhile.
        # Their clients then see "Socket closed". So the streams end first.
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + grace
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(ends_s):
                await self._calls.wait_until_none()
        await self._server.stop(max(0.0, ends_s - loop.time()))
        await self._front.close()


async def start_inspect_server(
    host: str,
    port: int,
    source: InspectSource,
    *,
    quorum: QuorumSource | None = None,
    members: MembersSource | None = None,
    broker_calls: BrokerCalls | None = None,
    gate: MemberGate | None = None,
    security: ListenerSecurity | None = None,
    shared: SharedLimits | None = None,
    watcher_queue_changes: int = WATCHER_QUEUE_CHANGES,
    limits: GrpcLimits = _DEFAULT_LIMITS,
) -> InspectServer:
    """Serve until `stop`, `Quorum` and `Broker` too where their sources are given. `gate` judges all
    callers (none: all may call). Raises GrpcPortInUse, or GrpcCannotListen for another reason."""
    front = _front(host, port, limits, security, shared)
    try:
        return await _start(front, source, quorum, members, broker_calls, gate, watcher_queue_changes, limits)
    except BaseException:
        front.stop_accepting()
        await front.close()
        raise


async def _start(
    front: Http2Front,
    source: InspectSource,
    quorum: QuorumSource | None,
    members: MembersSource | None,
    broker_calls: BrokerCalls | None,
    gate: MemberGate | None,
    watcher_queue_changes: int,
    limits: GrpcLimits,
) -> InspectServer:
    calls = OpenCalls(limits.max_open_calls, limits.max_open_calls_per_client)
    bounded = BoundedCalls(calls, gate)
    server = grpc.aio.server(
        interceptors=(KnownCallers(front.identity_of), bounded, JudgedRequests(gate)),
        options=(*_OPTIONS, *_limiting(limits)),
    )
    server.add_insecure_port(f"unix:{front.server_path}")
    log = CommittedLog(source)
    feed = ChangeFeed(log)
    add_inspect: Callable[..., None] = add_InspectServicer_to_server  # generated without types
    add_inspect(InspectService(log, feed, watcher_queue_changes), server)
    names: tuple[str, ...] = (SERVICE_NAME,)
    if quorum is not None:
        add_quorum: Callable[..., None] = add_QuorumServicer_to_server
        add_quorum(QuorumService(quorum, log.slices, members), server)
        names = (*names, QUORUM_SERVICE_NAME)
    if broker_calls is not None:
        add_broker: Callable[..., None] = add_BrokerServicer_to_server
        add_broker(BrokerService(broker_calls, log, feed, watcher_queue_changes), server)
        names = (*names, BROKER_SERVICE_NAME)
    health_service = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health_service, server)
    reflection.enable_server_reflection((*names, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    follow = _HealthReport(health_service, (health.OVERALL_HEALTH, *names), source)
    await follow.report()
    await server.start()
    try:
        await front.start()
    except OSError as error:
        await server.stop(None)
        raise grpc_listen_error(front.host, front.port, error) from error
    task = asyncio.get_running_loop().create_task(follow.run(), name="grpc-health")
    return InspectServer(server, front, log, calls, task)


def _limiting(limits: GrpcLimits) -> tuple[tuple[str, int], ...]:
    """What gRPC keeps to behind the front: it closes a connection without calls with GOAWAY, and its client connects
    again for its next call. A message that is too long ends its call with RESOURCE_EXHAUSTED."""
    return (
        ("grpc.server_handshake_timeout_ms", limits.handshake_timeout_ms),
        ("grpc.max_connection_idle_ms", limits.max_idle_ms),
        ("grpc.max_concurrent_streams", limits.max_concurrent_calls),
        ("grpc.max_receive_message_length", limits.max_message_bytes),
    )


def _front(
    host: str, port: int, limits: GrpcLimits, security: ListenerSecurity | None, shared: SharedLimits | None
) -> Http2Front:
    try:
        return Http2Front(
            host=host,
            port=port,
            listener_name=_LISTENER_NAME,
            limits=limits,
            security=security,
            shared=shared,
        )
    except OSError as error:
        reason = f"no folder for its socket can be made: {error.strerror or error} ({error.filename})"
        raise GrpcCannotListen(host, port, reason, _FOLDER_REMEDY) from error


class _HealthReport:
    """Clients that watch the health, of the server as a whole (the empty name) or of a service, get each change
    within `HEALTH_POLL_SECONDS`."""

    def __init__(
        self, service: health.aio.HealthServicer, names: tuple[str, ...], source: InspectSource
    ) -> None:
        self._service = service
        self._names = names
        self._source = source
        self._was_ready: bool | None = None

    async def run(self) -> None:
        while True:
            await self.report()
            await asyncio.sleep(HEALTH_POLL_SECONDS)

    async def report(self) -> None:
        is_ready = self._source.is_ready()
        if is_ready is self._was_ready:
            return
        self._was_ready = is_ready
        serving = health_pb2.HealthCheckResponse.ServingStatus
        for name in self._names:
            await self._service.set(name, serving.SERVING if is_ready else serving.NOT_SERVING)
