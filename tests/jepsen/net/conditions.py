"""Faults of links, for every carrier: pure, and of the standard library alone, for the relay imports it.

Faults overlap, so each lies on its links under a token, and a link suffers all of its faults together: it is cut while
any of them cuts it, delays add up, the lowest rate holds, and losses are independent of each other.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import permutations
from random import Random
from typing import Self

Link = tuple[int, int]

# TCP's first retransmission timeouts, of data and of a SYN (RFC 6298 and Linux).
RETRANSMIT_S = 0.2
RETRANSMIT_SYN_S = 1.0
_RETRANSMISSIONS_MAX = 6
_QUEUE_MAX_S = 2.0


@dataclass(frozen=True, slots=True)
class Condition:
    """Of one link. `jitter_ms` is the most that a delay is off, either way."""

    is_cut: bool = False
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    rate_bytes_per_s: float | None = None
    drop_fraction: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.jitter_ms <= self.delay_ms:
            raise ValueError(f"a delay of {self.delay_ms} ms cannot be off by {self.jitter_ms} ms")
        if self.rate_bytes_per_s is not None and self.rate_bytes_per_s <= 0:
            raise ValueError(f"no link carries {self.rate_bytes_per_s} bytes a second; cut it instead")
        if not 0 <= self.drop_fraction < 1:
            raise ValueError(f"a link cannot drop {self.drop_fraction} of what it carries; cut it instead")

    @property
    def is_shaped(self) -> bool:
        """Whether what passes is late, squeezed or thinned out."""
        return self.delay_ms > 0 or self.rate_bytes_per_s is not None or self.drop_fraction > 0

    @property
    def is_sound(self) -> bool:
        return not self.is_cut and not self.is_shaped

    def together_with(self, other: Self) -> Self:
        rates = [rate for rate in (self.rate_bytes_per_s, other.rate_bytes_per_s) if rate is not None]
        return type(self)(
            is_cut=self.is_cut or other.is_cut,
            delay_ms=self.delay_ms + other.delay_ms,
            jitter_ms=self.jitter_ms + other.jitter_ms,
            rate_bytes_per_s=min(rates, default=None),
            drop_fraction=1 - (1 - self.drop_fraction) * (1 - other.drop_fraction),
        )


SOUND = Condition()


class Ledger:
    """Which faults lie on which links, by token and kind; one of the same token and kind replaces the one before."""

    def __init__(self, nodes: Iterable[int]) -> None:
        self._links = frozenset(permutations(nodes, 2))
        self._faults: dict[tuple[str, str], dict[Link, Condition]] = {}

    def add(self, token: str, kind: str, links: Iterable[Link], condition: Condition) -> None:
        """Raises ValueError for a link that there is not, with nothing added."""
        added = dict.fromkeys(links, condition)
        if unknown := sorted(added.keys() - self._links):
            raise ValueError(f"no link {', '.join(f'{source} to {target}' for source, target in unknown)}")
        self._faults.setdefault((token, kind), {}).update(added)

    def end(self, token: str | None) -> None:
        """Of all tokens, when none is named."""
        self._faults = {key: links for key, links in self._faults.items() if token not in (None, key[0])}

    def conditions(self) -> dict[Link, Condition]:
        """Of the links that have any fault."""
        found: dict[Link, Condition] = {}
        for links in self._faults.values():
            for link, condition in links.items():
                found[link] = found.get(link, SOUND).together_with(condition)
        return found


@dataclass(slots=True)
class Tally:
    """What befell the pieces that a link carried: packets in namespaces, chunks of streams in proxies."""

    bytes: int = 0
    delayed: int = 0
    lost: int = 0
    cut: int = 0


@dataclass(slots=True)
class Shaper:
    """When the pieces of one link leave it, in the order in which they came."""

    random_source: Random
    _free_at_s: float = field(default=0.0, init=False)
    _last_s: float = field(default=0.0, init=False)

    def departure_s(self, condition: Condition, now_s: float, size: int) -> float:
        """Never before `now_s` plus the delay less the jitter. The clock is the caller's."""
        ready_s = now_s
        if condition.rate_bytes_per_s is not None:
            ready_s = self._free_at_s = max(now_s, self._free_at_s) + size / condition.rate_bytes_per_s
        delay_ms = condition.delay_ms + self.random_source.uniform(-condition.jitter_ms, condition.jitter_ms)
        self._last_s = max(self._last_s, ready_s + delay_ms / 1000)
        return self._last_s

    def is_lost(self, condition: Condition) -> bool:
        return condition.drop_fraction > 0 and self.random_source.random() < condition.drop_fraction

    def is_full(self, condition: Condition, now_s: float) -> bool:
        """Whether so much waits for a link of this rate that a router would drop what comes next."""
        return condition.rate_bytes_per_s is not None and self._free_at_s - now_s > _QUEUE_MAX_S

    def losses(self, condition: Condition) -> int:
        """How often in a row a piece is lost before it gets through, for who must not lose it for good."""
        count = 0
        while count < _RETRANSMISSIONS_MAX and self.is_lost(condition):
            count += 1
        return count

    def restart(self) -> None:
        """The link has another condition, and nothing that it had to carry before is in the way."""
        self._free_at_s = self._last_s = 0.0


def held_s(losses: int, first_timeout_s: float) -> float:
    """How long TCP takes to get a piece through that is lost so often: each timeout is twice the one before."""
    return first_timeout_s * ((1 << losses) - 1)
