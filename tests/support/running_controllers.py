"""Controllers for tests of those who talk to them: real listeners on loopback, the decisions made by the test."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Self, TypeVar

from kquorum.metadata.adapters.controller_channel import ControllerAddress
from kquorum.metadata.adapters.listener import ControllerListener
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.network.limits import ServerLimits
from kquorum.network.requests import Reply, RequestContext
from kquorum.network.server import KafkaServer
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.api_calls import Values, response_of

Result = TypeVar("Result")


class FakeController:
    """Answers as told; `requests` are those it got. Without an answer it keeps the requester waiting."""

    def __init__(self, answer: Callable[[ControllerRequest], Values | None]) -> None:
        self.answer = answer
        self.requests: list[ControllerRequest] = []
        self.raft_requests: list[RequestContext] = []
        self.notes: list[tuple[str, str | None]] = []
        self.turns = 0

    def handle_request(
        self, now_ms: int, request: ControllerRequest, reply: Callable[[Response], None]
    ) -> None:
        assert now_ms == 1234
        self.requests.append(request)
        answer = self.answer(request)
        if answer is not None:
            is_message = isinstance(answer, Response)
            reply(answer if is_message else response_of(request.api_key, request.api_version, answer))

    def note_change(self, now_ms: int, request: ControllerRequest, words: str) -> None:
        self.notes.append((words, request.operator_reason))

    def handle_raft(self, context: RequestContext, _request: Any, reply: Reply) -> None:
        """Answers only what is asked of any leader: who leads."""
        self.raft_requests.append(context)
        values = {"error_code": ErrorCode.none, "error_message": None, "topics": (), "nodes": ()}
        reply(response_of(context.header.api_key, context.header.api_version, values))

    def wake(self) -> None:
        self.turns += 1


class RunningController:
    """A FakeController that listens, for the time of an `async with`."""

    def __init__(
        self,
        node_id: int,
        answer: Callable[[ControllerRequest], Values | None],
        limits: ServerLimits | None = None,
    ) -> None:
        self.node_id = node_id
        self.controller = FakeController(answer)
        listener = ControllerListener(
            controller=self.controller,
            handle_raft=self.controller.handle_raft,
            now_ms=lambda: 1234,
            wake=self.controller.wake,
        )
        self.server = KafkaServer(
            host="127.0.0.1",
            port=0,
            handler=listener.handle,
            limits=limits or ServerLimits(),
            supported=listener.supported,
            listener_name="CONTROLLER",
        )

    @property
    def address(self) -> ControllerAddress:
        return ControllerAddress(self.node_id, "127.0.0.1", self.port)

    async def __aenter__(self) -> Self:
        await self.server.start()
        self.port = self.server.bound_port
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()


async def eventually(condition: Callable[[], object]) -> None:
    """Let the loop turn until the condition holds; `run` bounds the wait."""
    while not condition():  # noqa: ASYNC110 - the condition is the fake's state, which sends no signal
        await asyncio.sleep(0.001)


def run(work: Coroutine[Any, Any, Result]) -> Result:
    async def bounded() -> Result:
        async with asyncio.timeout(30):
            return await work

    return asyncio.run(bounded())
