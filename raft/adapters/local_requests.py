"""Callers in this process who wait for the core: linearizable reads, and requests that came over no network."""

import asyncio
from heapq import heappop, heappush

from kquorum.raft.adapters.driver_ports import Receive
from kquorum.raft.errors import NotLeaderError
from kquorum.raft.inputs import ReadRequested, RequestReceived
from kquorum.raft.messages import Request, Response
from kquorum.raft.ready import OutboundResponse, ReadConfirmed, ReadRefused


class LocalRequests:
    """The futures of those who wait, until `close`. All of it belongs to the loop.

    Their requests count down from -1: those that come over the network count up from 1 (`RaftRequests`).
    A caller who gives up (a cancelled future) is forgotten when the core answers, which it does in the end.
    """

    def __init__(self, receive: Receive) -> None:
        """`receive` gives an input to the core; its outcome comes back here later."""
        self._receive = receive
        self._last_read_id = 0
        self._last_request_id = 0
        self._reads: dict[int, asyncio.Future[int]] = {}
        self._confirmed: list[tuple[int, int, asyncio.Future[int]]] = []
        self._asked: dict[int, asyncio.Future[Response]] = {}

    async def read(self) -> int:
        """The offset that a linearizable read was confirmed for, once the state machine has reached it."""
        self._last_read_id += 1
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._reads[self._last_read_id] = future
        self._receive(ReadRequested(self._last_read_id))
        return await future

    async def ask(self, request: Request) -> Response:
        self._last_request_id -= 1
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._asked[self._last_request_id] = future
        self._receive(RequestReceived(self._last_request_id, request))
        return await future

    def take_response(self, outbound: OutboundResponse) -> bool:
        """Whether this response was for a caller here; then that caller has it now."""
        if outbound.request_id >= 0:
            return False
        future = self._asked.pop(outbound.request_id)
        if not future.done():
            future.set_result(outbound.response)
        return True

    def take_read(self, outcome: ReadConfirmed | ReadRefused) -> None:
        """The core has decided; a confirmed read still waits for `applied`."""
        future = self._reads.pop(outcome.read_id)
        if isinstance(outcome, ReadConfirmed):
            heappush(self._confirmed, (outcome.offset, outcome.read_id, future))
        elif not future.done():
            future.set_exception(NotLeaderError(outcome.leader_id, outcome.leader_epoch))

    def applied(self, end_offset: int) -> None:
        """The state machine has everything below `end_offset`."""
        while self._confirmed and self._confirmed[0][0] <= end_offset:
            offset, _, future = heappop(self._confirmed)
            if not future.done():
                future.set_result(offset)

    def close(self, leader_epoch: int) -> None:
        """No answer will come any more: all callers that wait get NotLeaderError."""
        waiting: list[asyncio.Future[int] | asyncio.Future[Response]] = [
            *self._reads.values(),
            *(future for _, _, future in self._confirmed),
            *self._asked.values(),
        ]
        self._reads, self._confirmed, self._asked = {}, [], {}
        for future in waiting:
            if not future.done():
                future.set_exception(NotLeaderError(-1, leader_epoch))
