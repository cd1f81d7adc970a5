"""The connection of a fetcher: one timer watches over its requests, one after the other."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from kquorum.broker.adapters.replica_fetchers import FetchConnections, FetchLoop
from kquorum.broker.replica.replica_manager import FetcherKey, RunningFetcher
from kquorum.metadata.image.cluster import Endpoint
from kquorum.network.requests import Reply, RequestContext
from kquorum.wire.message_schema import ByVersion, Response
from kquorum.wire.messages.fetch import FetchRequest, FetchResponse
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.network.peers import HOST, serving, until

TIMEOUT_MS = 1_000


@dataclass
class Asking:
    """A fetcher that always has something to ask, until a request has failed."""

    replies: int = 0
    steps: int = 0
    on_step: Callable[[], None] = lambda: None
    failures: int = 0
    source_id: int = 12
    versions: list[int] = field(default_factory=list)

    def next_request(self, _now_ms: int, _broker_epoch: int) -> ByVersion[FetchResponse] | None:
        return None if self.failures else ByVersion(FetchRequest, self._make)

    def _make(self, version: int) -> FetchRequest:
        self.versions.append(version)
        return FetchRequest(max_wait_ms=1, min_bytes=1, topics=())

    def next_deadline_ms(self) -> int | None:
        return None

    def handling(self, _now_ms: int, _response: Response) -> Iterator[None]:
        for _ in range(self.steps):
            self.on_step()
            yield
        self.replies += 1

    def handle_failure(self, _now_ms: int) -> None:
        self.failures += 1


def test_each_request_has_the_whole_timeout_and_the_one_without_an_answer_fails() -> None:
    held: list[Reply] = []
    answered = 4

    def handle(_context: RequestContext, _request: Any, reply: Reply) -> None:
        """The first ones are answered after two fifths of their time: together they take more than one timeout."""
        if len(held) == answered:
            return
        held.append(reply)
        asyncio.get_running_loop().call_later(TIMEOUT_MS * 0.4 / 1000, reply, FetchResponse())

    async def check() -> None:
        asking = Asking()
        async with serving(handle, supported={ApiKey.FETCH: (4, 17)}) as server:
            loop = FetchLoop(
                FetcherKey(12, 0),
                RunningFetcher(Endpoint("TEST", HOST, server.bound_port, 0), cast(Any, asking)),
                FetchConnections(
                    broker_id=11, request_timeout_ms=TIMEOUT_MS, now_ms=lambda: 0, broker_epoch=lambda: 1
                ),
                lambda: None,
            )
            try:
                await until(lambda: asking.failures > 0)
                assert (asking.replies, asking.failures) == (answered, 1)
                assert asking.versions == [17] * (answered + 1)
            finally:
                loop.close()

    asyncio.run(check())


def test_a_reply_that_takes_long_is_handled_in_turns_of_the_loop() -> None:
    """A Fetch brings the records of many partitions, and the node's heartbeats go on meanwhile."""
    turns, seen, clock = 0, list[int](), itertools.count(0, 10)
    answers = 1

    def handle(_context: RequestContext, _request: Any, reply: Reply) -> None:
        nonlocal answers
        if answers:
            answers -= 1
            reply(FetchResponse())

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def check() -> None:
        asking = Asking(steps=3, on_step=lambda: seen.append(turns))
        counting = asyncio.create_task(count())
        async with serving(handle, supported={ApiKey.FETCH: (4, 17)}) as server:
            loop = FetchLoop(
                FetcherKey(12, 0),
                RunningFetcher(Endpoint("TEST", HOST, server.bound_port, 0), cast(Any, asking)),
                FetchConnections(
                    broker_id=11,
                    request_timeout_ms=TIMEOUT_MS,
                    now_ms=lambda: next(clock),
                    broker_epoch=lambda: 1,
                ),
                lambda: None,
            )
            try:
                await until(lambda: asking.replies > 0)
            finally:
                loop.close()
                counting.cancel()

    asyncio.run(check())
    assert len(seen) == len(set(seen)) == 3
