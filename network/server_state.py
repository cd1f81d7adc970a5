"""What the connections of one listener share, among themselves and with the other listeners of the node."""

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import count
from operator import itemgetter
from typing import Protocol

from kquorum.network.api_versions import ApiVersionsAnswers, ServerFeatures
from kquorum.network.aside import Aside
from kquorum.network.bounded_log import BoundedLog
from kquorum.network.connection_quota import ConnectionQuota, CreationRate, Refusal, TooFast
from kquorum.network.limits import BudgetLimits, ConnectionLimits, ServerCounters, ServerLimits
from kquorum.network.long_requests import LongRequests
from kquorum.network.request_budget import RequestBudget
from kquorum.network.requests import Admission, Handler, admit_all
from kquorum.network.security.listener_security import ListenerSecurity

_LOOKS_FOR_IDLE_EVERY_S = 1.0


class SharedLimits:
    """What the listeners of one node share; used only in the loop's thread."""

    def __init__(
        self, connections: ConnectionLimits | None = None, budget: BudgetLimits | None = None
    ) -> None:
        self.quota = ConnectionQuota(connections or ConnectionLimits())
        self.budget = RequestBudget(budget or BudgetLimits(), _soon)
        self.long_requests = LongRequests()


def _soon(call: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_soon(call)


@dataclass(frozen=True, slots=True)
class Peer:
    """`connection_id` is unique within one server's life."""

    connection_id: int
    host: str
    port: int


class Claim(IntEnum):
    """What a connection has shown to its listener; a full one closes those with the least claim first.

    NOTHING_ASKED: no request was admitted and read, besides ApiVersions and SASL. A node has asked
    what keeps the quorum and its brokers together.
    """

    NOTHING_ASKED = 0
    CLIENT = 1
    NODE = 2


class Member(Protocol):
    """A connection as its server knows it, open or on the way to it; `closed` is done once it is gone or replaced.

    `may_go_since` is its claim and the time since which it is idle; before its first request, the time at which it
    came. None while a request is under way, and on the way to an open connection. `make_room` closes it for another
    one.
    """

    closed: "asyncio.Future[None]"

    def drain(self) -> None: ...
    def abort(self) -> None: ...
    def check_deadlines(self, now_s: float) -> None: ...
    def check_pace(self, now_s: float) -> None: ...
    def may_go_since(self) -> tuple[Claim, float] | None: ...
    def make_room(self) -> None: ...


@dataclass(slots=True, kw_only=True)
class ListenerState:
    """`is_protected`: `max.connections` of the node does not hold for this listener (Kafka: inter-broker).
    `admitted` are the connections that count for the limits."""

    listener_name: str
    limits: ServerLimits
    security: ListenerSecurity
    shared: SharedLimits
    warnings: BoundedLog
    rate: CreationRate
    is_protected: bool = False
    counters: ServerCounters = field(default_factory=ServerCounters)
    connections: set[Member] = field(default_factory=set)
    connection_ids: "count[int]" = field(default_factory=lambda: count(1))
    stopping: bool = False
    admitted: int = 0
    # Those with the least claim when the listener was last found full, the first to go last.
    evictable: list[tuple[tuple[Claim, float], Member]] = field(default_factory=list)
    looks_for_idle_at_s: float = -math.inf

    def admit(self, lease: "Lease", address: str, now_s: float, descriptor: int) -> Refusal | TooFast | float:
        """How many seconds to wait before the connection is served, or what refuses it."""
        refusal = self.shared.quota.refusal_of_address(address)
        if refusal is None and (full := self._full(descriptor)) is not None and not self._evict_one(now_s):
            refusal = full
        if refusal is None and (too_fast := self.shared.quota.too_fast(address, now_s)) is not None:
            self._count(Refusal.ADDRESS_RATE)
            # It takes a descriptor until it is closed.
            self.admitted += 1
            self.shared.quota.take(address)
            lease.address = address
            return too_fast
        delay_s = None if refusal else self._delay_s(now_s)
        if delay_s is None:
            refusal = refusal or Refusal.RATE
            self._count(refusal)
            return refusal
        self.admitted += 1
        self.shared.quota.take(address)
        lease.address = address
        self.counters.delayed_connections += delay_s > 0
        return delay_s

    def _full(self, descriptor: int) -> Refusal | None:
        if self.shared.quota.is_full and not self.is_protected:
            return Refusal.NODE
        if self.admitted >= self.limits.max_connections:
            return Refusal.LISTENER
        return Refusal.DESCRIPTORS if descriptor >= self.limits.max_open_files else None

    def _evict_one(self, now_s: float) -> bool:
        """Idle connections, and those that ask nothing, must not keep the nodes of the cluster out. Looking at all of
        them takes milliseconds where there are thousands, so that is done once in a while only."""
        least_ms = self.limits.evicts_after_idle_ms
        if least_ms is None:
            return False
        if not self.evictable and now_s >= self.looks_for_idle_at_s:
            self.looks_for_idle_at_s = now_s + _LOOKS_FOR_IDLE_EVERY_S
            idle = ((since, each) for each in self.connections if (since := each.may_go_since()) is not None)
            found = sorted(
                (entry for entry in idle if entry[0][1] <= now_s - least_ms / 1000), key=itemgetter(0)
            )
            self.evictable = found[::-1]
        while self.evictable:
            since, first = self.evictable.pop()
            if first.may_go_since() == since:
                self.counters.idle_connections_closed += 1
                first.make_room()
                return True
        return False

    def _delay_s(self, now_s: float) -> float | None:
        own_s = self.rate.delay_s(now_s)
        if own_s is None or self.is_protected:
            return own_s
        node_s = self.shared.quota.rate.delay_s(now_s)
        return None if node_s is None else max(own_s, node_s)

    def _count(self, refusal: Refusal) -> None:
        counters = self.counters
        counters.refused_connections += 1
        match refusal:
            case Refusal.NODE | Refusal.DESCRIPTORS:
                counters.refused_over_node_limit += 1
            case Refusal.LISTENER:
                counters.refused_over_listener_limit += 1
            case Refusal.ADDRESS:
                counters.refused_over_address_limit += 1
            case Refusal.RATE | Refusal.ADDRESS_RATE:
                counters.refused_over_creation_rate += 1


@dataclass(slots=True, kw_only=True)
class ServerState(ListenerState):
    """Of a listener for Kafka's protocol."""

    handler: Handler
    supported: Mapping[int, tuple[int, int]]
    features: Callable[[], ServerFeatures]
    api_versions: ApiVersionsAnswers
    admission: Admission = admit_all
    # Where long requests are read.
    reader: Aside = field(default_factory=lambda: Aside("long-requests"))
    # Where the classes of old versions are imported: a peer that asks in one does not wait for long requests.
    importer: Aside = field(default_factory=lambda: Aside("old-versions"))


class Lease:
    """A socket's place in the counts, from its acceptance to its end. As text it is the peer, for the log."""

    __slots__ = ("_state", "address", "peer")

    def __init__(self, state: ListenerState, peer: Peer) -> None:
        self._state = state
        self.peer = peer
        # What it counts for at the limits; None where it was refused.
        self.address: str | None = None
        state.counters.open_connections += 1
        state.counters.accepted_connections += 1

    def __str__(self) -> str:
        return f"{self.peer.host}:{self.peer.port} on listener {self._state.listener_name}"

    def give_back(self) -> None:
        """Once."""
        self._state.counters.open_connections -= 1
        if self.address is not None:
            self._state.admitted -= 1
            self._state.shared.quota.give_back(self.address)
