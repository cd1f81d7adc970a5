"""How many connections a node takes, in all and from one address, and how fast (KIP-306, KIP-402, KIP-612).

Kafka stops accepting at the limits of node and listener, so that new clients wait in the kernel's queue, and closes
at the limit of an address. Here both close: a client whose connection is closed tries the next broker after its
backoff, while one that waits in a queue finds out nothing before its request timeout, tools and health checks with it;
and only what was accepted can be counted and logged. Too fast a creation of connections delays them, as with Kafka.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from kquorum.network.limits import NO_LIMIT, ConnectionLimits

# Above it a client would have given up by itself (Kafka's `socket.connection.setup.timeout.ms`).
MAX_DELAY_S = 10.0
# Addresses whose rate is measured at a time.
ADDRESSES_KEPT = 10_000


class Refusal(Enum):
    """The key whose limit refuses a connection, or the system's limit of open files."""

    NODE = "max.connections"
    LISTENER = "the listener's max.connections"
    ADDRESS = "max.connections.per.ip"
    RATE = "max.connection.creation.rate"
    ADDRESS_RATE = "the quota `connection_creation_rate`"
    DESCRIPTORS = "ulimit -n"


@dataclass(frozen=True, slots=True)
class TooFast:
    """An address opens connections faster than its quota lets it: this one is not served, and is closed after the
    delay, for a client whose connection ends at once would come again at once (KIP-612)."""

    delay_s: float


class ConnectionQuota:
    """Shared by the listeners of a node. Each connection that was taken is given back once.

    `rate_of_address` is the quota of an address, in connections a second; None where it has none.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self.rate_of_address: Callable[[str], float | None] = no_rate
        self._rates: dict[str, CreationRate] = {}
        self._by_address: Counter[str] = Counter()
        self._open = 0
        self.rate = CreationRate(limits.max_connection_creation_rate)

    @property
    def open_connections(self) -> int:
        return self._open

    @property
    def is_full(self) -> bool:
        """Whether the node has all the connections that it may have."""
        return self._open >= self._limits.max_connections

    def refusal_of_address(self, address: str) -> Refusal | None:
        most = self._limits.overrides.get(address, self._limits.max_connections_per_address)
        return Refusal.ADDRESS if self._by_address[address] >= most else None

    def too_fast(self, address: str, now_s: float) -> TooFast | None:
        """Whether the connection comes before its place in time; if not, it takes that place."""
        per_second = self.rate_of_address(address)
        if per_second is None:
            return None
        rate = self._rates.pop(address, None)
        if rate is None or rate.per_second != per_second:
            rate = CreationRate(per_second)
        # The one that came longest ago is the first.
        self._rates[address] = rate
        if len(self._rates) > ADDRESSES_KEPT:
            del self._rates[next(iter(self._rates))]
        delay_s = rate.missing_s(now_s)
        if delay_s > 0:
            return TooFast(min(delay_s, MAX_DELAY_S))
        rate.delay_s(now_s)
        return None

    def take(self, address: str) -> None:
        self._open += 1
        self._by_address[address] += 1

    def give_back(self, address: str) -> None:
        assert self._by_address[address] > 0, f"no connection from {address} was taken"
        self._open -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]


def no_rate(_address: str) -> float | None:
    """Where no address has a quota."""
    return None


class CreationRate:
    """A place in time for each new connection, so many to the second; those of `at_once_s` may come at once."""

    def __init__(self, per_second: float, at_once_s: float = 1.0) -> None:
        self.per_second = per_second
        self._interval_s = 0.0 if per_second >= NO_LIMIT else 1.0 / per_second if per_second else float("inf")
        # One at least, if any.
        self._at_once_s = max(at_once_s, self._interval_s) if per_second else at_once_s
        self._next_s = 0.0

    def missing_s(self, now_s: float) -> float:
        """How far away the next place is, which is left to another."""
        if not self._interval_s:
            return 0.0
        return max(0.0, max(self._next_s, now_s - self._at_once_s) + self._interval_s - now_s)

    def delay_s(self, now_s: float) -> float | None:
        """How long the connection has to wait for its place; None when that is too long, and it gets none."""
        if not self._interval_s:
            return 0.0
        next_s = max(self._next_s, now_s - self._at_once_s) + self._interval_s
        delay_s = max(0.0, next_s - now_s)
        if delay_s > MAX_DELAY_S:
            return None
        self._next_s = next_s
        return delay_s
