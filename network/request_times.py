"""How long requests take, by kind: histograms of their time in the queue, in the handler, and in waits for others.

Kafka's RequestMetrics. The queue is the time from the last byte of the request to its handler; local is what the
handler takes at once; remote is the rest up to the answer: the wait for records, replicas or the controller, and what a
handler does in later turns of the loop.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kquorum.network.requests import Handler, Reply, RequestContext
from kquorum.wire.message_schema import Request, Response
from kquorum.wire.protocol.headers import EncodedBody, NoAnswer

BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000)


@dataclass(slots=True)
class Histogram:
    """`counts` are of the buckets up to and including each of BOUNDS_MS, and of what is above the last."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_MS) + 1))
    sum_ms: float = 0.0

    def record(self, taken_ms: float) -> None:
        self.counts[bisect_left(BOUNDS_MS, taken_ms)] += 1
        self.sum_ms += taken_ms


@dataclass(slots=True)
class TimesOfKind:
    total: Histogram = field(default_factory=Histogram)
    queue: Histogram = field(default_factory=Histogram)
    local: Histogram = field(default_factory=Histogram)
    remote: Histogram = field(default_factory=Histogram)

    def record(self, queue_ms: float, local_ms: float, remote_ms: float) -> None:
        self.total.record(queue_ms + local_ms + remote_ms)
        self.queue.record(queue_ms)
        self.local.record(local_ms)
        self.remote.record(remote_ms)


class RequestTimes:
    """Of the listeners of a role. `kinds` names requests of one API that are measured apart; the others have the name
    of their API. `now_s` is the clock by which time is measured."""

    def __init__(
        self,
        kinds: Mapping[int, Callable[[Any], str]] | None = None,
        now_s: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._kinds = kinds or {}
        self._now_s = now_s
        self.by_kind: dict[str, TimesOfKind] = {}
        self._of_api: dict[int, TimesOfKind] = {}

    def measured(self, handler: Handler) -> Handler:
        """The handler, with the time of each request counted when it is answered."""

        def handle(context: RequestContext, request: Request[Response], reply: Reply) -> None:
            timed = _TimedReply(self._times_of(context.header.api_key, request), context, reply, self._now_s)
            handler(context, request, timed)
            timed.has_handled()

        return handle

    def _times_of(self, api_key: int, request: Request[Response]) -> TimesOfKind:
        kind_of = self._kinds.get(api_key)
        if kind_of is not None:
            return self._of_kind(kind_of(request))
        times = self._of_api.get(api_key)
        if times is None:
            # Kafka's names: Produce, ListOffsets.
            times = self._of_api[api_key] = self._of_kind(type(request).__name__.removesuffix("Request"))
        return times

    def _of_kind(self, kind: str) -> TimesOfKind:
        times = self.by_kind.get(kind)
        if times is None:
            times = self.by_kind[kind] = TimesOfKind()
        return times


class _TimedReply:
    """The Reply of one request."""

    __slots__ = ("_began_s", "_handled_s", "_now_s", "_queue_ms", "_reply", "_times")

    def __init__(
        self, times: TimesOfKind, context: RequestContext, reply: Reply, now_s: Callable[[], float]
    ) -> None:
        self._times = times
        self._queue_ms = context.waited_ms
        self._reply = reply
        self._now_s = now_s
        self._began_s = now_s()
        self._handled_s: float | None = None

    def has_handled(self) -> None:
        """The handler is through; a request that is not answered yet waits for others from now on."""
        self._handled_s = self._now_s()

    def __call__(self, answer: Response | EncodedBody | NoAnswer | None) -> None:
        self._reply(answer)
        now_s, handled_s = self._now_s(), self._handled_s
        if handled_s is None:
            self._times.record(self._queue_ms, (now_s - self._began_s) * 1e3, 0.0)
        else:
            local_ms = (handled_s - self._began_s) * 1e3
            self._times.record(self._queue_ms, local_ms, (now_s - handled_s) * 1e3)
