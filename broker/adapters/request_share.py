"""How long the event loop is busy with each request, and the quota on that time (KIP-124).

Measured is what a request takes in the loop and in the threads of long answers; the time in which it waits for others
costs nothing. Nothing is measured as long as no client has such a quota.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from types import coroutine
from typing import Any, Final, TypeVar

from kquorum.broker.quota.answers import with_throttle_time
from kquorum.broker.quota.client_quotas import ClientQuota, ClientQuotas
from kquorum.network.requests import Reply, RequestContext
from kquorum.wire.message_schema import Request, Response
from kquorum.wire.messages.fetch import FetchRequest
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody, NoAnswer

_PERCENT_OF_A_SECOND: Final = 100 / 1_000_000_000

T = TypeVar("T")


class RequestShare:
    """`busy_ns` is the clock by which time is measured; `now_ms` is that of the quotas."""

    def __init__(
        self,
        quotas: ClientQuotas,
        now_ms: Callable[[], int],
        busy_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.quotas = quotas
        self.now_ms = now_ms
        self.busy_ns = busy_ns

    @property
    def is_in_force(self) -> bool:
        return self.quotas.is_in_force(ClientQuota.REQUEST)


class MeasuredReply:
    """The Reply of one request, with the time that the request has taken so far."""

    def __init__(
        self, share: RequestShare, context: RequestContext, request: Request[Response], reply: Reply
    ) -> None:
        self._share = share
        self._context = context
        self._reply = reply
        self._is_exempt = _is_between_brokers(request)
        self._spent_ns = 0
        self._since_ns: int | None = None

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Within, the time counts, once however often it is nested."""
        if self._since_ns is not None:
            yield
            return
        began_ns = self._since_ns = self._share.busy_ns()
        try:
            yield
        finally:
            # Not if the reply was sent within, which has counted it.
            if self._since_ns == began_ns:
                self._spent_ns += self._share.busy_ns() - began_ns
                self._since_ns = None

    def __call__(self, answer: Response | EncodedBody | NoAnswer | None) -> None:
        share, context = self._share, self._context
        header, clock = context.header, share.busy_ns
        if self._since_ns is not None:
            self._spent_ns += clock() - self._since_ns
            self._since_ns = None
        percent = self._spent_ns * _PERCENT_OF_A_SECOND
        now_ms = share.now_ms()
        began_ns = clock()
        if self._is_exempt:
            self._reply(answer)
            share.quotas.note_exempt(now_ms, percent + (clock() - began_ns) * _PERCENT_OF_A_SECOND)
            return
        who = (ClientQuota.REQUEST, now_ms, context.principal, header.client_id)
        throttle_ms = share.quotas.charge(*who, percent)
        if throttle_ms:
            context.throttle(throttle_ms)
            answer = with_throttle_time(answer, header.api_key, header.api_version, throttle_ms)
        began_ns = clock()
        self._reply(answer)
        # To encode and to write it takes time as well, too late for this answer.
        share.quotas.charge_afterwards(*who, (clock() - began_ns) * _PERCENT_OF_A_SECOND)


def timed(work: Callable[[], T], reply: Reply) -> Callable[[], T]:
    """`work` with its time counted, if it is counted for this reply."""
    if not isinstance(reply, MeasuredReply):
        return work
    measured = reply

    def counted() -> T:
        with measured.busy():
            return work()

    return counted


def timed_work(work: Coroutine[Any, Any, T], reply: Reply) -> Coroutine[Any, Any, T]:
    """A coroutine with the time of its steps counted, without that between them."""
    if not isinstance(reply, MeasuredReply):
        return work
    return _awaited(work, reply)


async def _awaited(work: Coroutine[Any, Any, T], measured: MeasuredReply) -> T:
    result: T = await _steps(work, measured)
    return result


@coroutine
def _steps(work: Coroutine[Any, Any, T], measured: MeasuredReply) -> Generator[Any, Any, T]:
    sent: Any = None
    error: BaseException | None = None
    while True:
        try:
            with measured.busy():
                waits_for = work.send(sent) if error is None else work.throw(error)
        except StopIteration as ended:
            result: T = ended.value
            return result
        sent = error = None
        try:
            sent = yield waits_for
        except BaseException as thrown:  # noqa: BLE001 - a cancellation is the work's to handle
            error = thrown


def _is_between_brokers(request: Request[Response]) -> bool:
    """What brokers need of each other is no client's share: a follower's Fetch, the markers of a coordinator."""
    if isinstance(request, FetchRequest):
        return request.replica_id >= 0 or request.replica_state.replica_id >= 0
    return request.api_key == ApiKey.WRITE_TXN_MARKERS
