"""Nodes on loopback, each reaching each peer through a proxy port of its own; needs no rights at all.

    node a ── 127.0.0.1:p(a, b) ── proxy ── 127.0.0.1:port of b
    node a ── 127.0.0.1:p(b), the door of b, which b advertises ── the same proxy

`lanes` describes what a link's faults do to the bytes of a connection, whichever end opened it; `doors` describes how a
door identifies the node that connects. No fault but `reset` resets a connection. One that is opened while one of the
directions is cut is accepted (the machine's kernel does that) but not carried on until both are open; if its opener
gives up before, the peer never hears of it.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import permutations
from random import Random
from typing import Any, Self, TypeVar

from kquorum.node.config.addresses import HostPort
from kquorum.node.config.materialise import free_ports
from tests.jepsen.net.conditions import SOUND, Condition, Ledger, Tally
from tests.jepsen.net.doors import Door
from tests.jepsen.net.lanes import LinkState
from tests.jepsen.net.link_proxy import LOOPBACK, LinkProxy
from tests.jepsen.net.network import DEFAULT_TOKEN, Link, named

_CALL_TIMEOUT_S = 10.0
T = TypeVar("T")


class ProxyNetwork:
    """A thread with a loop that runs one LinkProxy for each node and each of its `targets`, and each target's door."""

    name = "proxy"

    def __init__(self, nodes: Sequence[int], targets: Sequence[int]) -> None:
        self._nodes = tuple(nodes)
        self._targets = tuple(targets)
        self._proxies: dict[Link, LinkProxy] = {}
        self._doors: dict[int, Door] = {}
        self._routes: dict[Link, HostPort] = {}
        self._advertised: dict[int, HostPort] = {}
        self._ledger = Ledger(nodes)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        random_source = Random()
        self._links = {link: LinkState(random_source) for link in permutations(self._nodes, 2)}
        ports = free_ports(len(self._nodes))
        self._addresses = {
            node: HostPort(LOOPBACK, port) for node, port in zip(self._nodes, ports, strict=True)
        }
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="jepsen-proxies", daemon=True)
        self._thread.start()
        try:
            self._call(self._start_all())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._call(self._stop_all())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CALL_TIMEOUT_S)
            self._loop.close()

    async def _start_all(self) -> None:
        for link in self._links:
            source, target = link
            if target in self._targets:
                there, back = self._links[link], self._links[target, source]
                proxy = self._proxies[link] = LinkProxy(self._addresses[target], there, back)
                self._routes[link] = HostPort(LOOPBACK, await proxy.start())
        for target in self._targets:
            openers = {source: proxy for (source, met), proxy in self._proxies.items() if met == target}
            door = self._doors[target] = Door(openers, self._proxy_for_clients(target))
            self._advertised[target] = HostPort(LOOPBACK, await door.start())

    def _proxy_for_clients(self, target: int) -> LinkProxy:
        """On links that no fault knows of."""
        random_source = Random()
        return LinkProxy(self._addresses[target], LinkState(random_source), LinkState(random_source))

    async def _stop_all(self) -> None:
        for door in self._doors.values():
            await door.stop()
        for proxy in self._proxies.values():
            await proxy.stop()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_TIMEOUT_S)

    def address_of(self, node_id: int) -> HostPort:
        return self._addresses[node_id]

    def advertised(self, node_id: int) -> HostPort:
        return self._advertised.get(node_id, self._addresses[node_id])

    def route(self, source: int, target: int) -> HostPort:
        return self._addresses[target] if source == target else self._routes[source, target]

    @contextmanager
    def inside(self, node_id: int) -> Iterator[None]:
        yield

    def enter_as_client(self) -> None:
        """All are on loopback."""

    def cut(self, links: Iterable[Link], token: str = DEFAULT_TOKEN) -> None:
        self._add_fault(token, "cut", links, Condition(is_cut=True))

    def slow(
        self,
        links: Iterable[Link],
        delay_ms: float,
        jitter_ms: float = 0.0,
        rate_bytes_per_s: float | None = None,
        token: str = DEFAULT_TOKEN,
    ) -> None:
        self._add_fault(token, "slow", links, Condition(False, delay_ms, jitter_ms, rate_bytes_per_s))

    def drop(self, links: Iterable[Link], fraction: float, token: str = DEFAULT_TOKEN) -> None:
        self._add_fault(token, "drop", links, Condition(drop_fraction=fraction))

    def heal(self, token: str | None = None) -> None:
        with self._lock:
            self._ledger.end(token)
            self._call(self._apply())

    def reset(self, links: Iterable[Link]) -> int:
        async def reset_all() -> int:
            wanted = {link for source, target in links for link in ((source, target), (target, source))}
            return sum([await proxy.reset() for link, proxy in self._proxies.items() if link in wanted])

        return self._call(reset_all())

    def _add_fault(self, token: str, kind: str, links: Iterable[Link], condition: Condition) -> None:
        with self._lock:
            self._ledger.add(token, kind, links, condition)
            self._call(self._apply())

    async def _apply(self) -> None:
        conditions = self._ledger.conditions()
        for link, state in self._links.items():
            state.change(conditions.get(link, SOUND))

    def counters(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for link, state in sorted(self._links.items(), key=lambda item: item[0]):
            if state.tally != Tally():
                found |= named(link, state.tally)
        return found
