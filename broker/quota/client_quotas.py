"""The client quotas in force on this broker: bytes produced and fetched, and the share of the broker's time (KIP-13,
KIP-124, KIP-257, KIP-546).

Sans-IO. A client that exceeds a quota learns how long it has to wait, and its connection is muted for that time
(KIP-219); what it sent is carried out. The limits are those of the newest image, so a change counts with the next
request, for what was measured before it too.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kquorum.broker.quota.rate import Level, WindowedRate, Windows
from kquorum.metadata.image.quotas import ClientQuotasImage
from kquorum.metadata.quota_precedence import Allowance, SharedBy, allowance_of

# Clients choose their ids, so what is kept by them is bounded. Of those who share a rate the one that was used longest
# ago is forgotten first.
RATES_KEPT: Final = 10_000
_ALLOWANCES_KEPT: Final = 10_000
_THROTTLES_KEPT: Final = 10_000
# Kafka's: what was not used for an hour is shown no longer.
_FORGOTTEN_AFTER_MS: Final = 3_600_000


class ClientQuota(StrEnum):
    """The key of the quota, in AlterClientQuotas."""

    PRODUCE = "producer_byte_rate"
    """Bytes/s of Produce requests."""
    FETCH = "consumer_byte_rate"
    """Bytes/s of Fetch answers to consumers."""
    REQUEST = "request_percentage"
    """Percent of the time of one thread."""


@dataclass(frozen=True, slots=True)
class MeasuredRate:
    """For the metrics; `throttle_ms` is the average of the throttles of the last windows, not a number without one."""

    quota: ClientQuota
    user: str
    client_id: str
    per_second: float
    throttle_ms: float


@dataclass(frozen=True, slots=True)
class QuotaFigures:
    """For the metrics. `throttled_connections` are those of the moment; `exempt_request_time` is the share of the time
    that brokers took for what they ask of each other, in percent, since the first request quota."""

    rates: tuple[MeasuredRate, ...]
    throttled_connections: Mapping[ClientQuota, int]
    exempt_request_time: float


@dataclass(slots=True)
class _Measured:
    """What the clients that share a limit have used."""

    rate: WindowedRate
    level: Level
    throttled_ms: WindowedRate
    throttles: WindowedRate
    used_ms: int = 0

    def record(self, now_ms: int, amount: float, limit: float) -> None:
        self.rate.record(now_ms, amount)
        self.level.record(now_ms, amount, limit)


@dataclass(slots=True)
class _OfKind:
    measured: dict[SharedBy, _Measured] = field(default_factory=dict)
    """The one that was used longest ago comes first."""
    # When the connections that are throttled now may go on, as a heap.
    throttled_until_ms: list[int] = field(default_factory=list)


class ClientQuotas:
    """`quotas` are those of the newest image. Times are ms of one clock."""

    def __init__(self, quotas: Callable[[], ClientQuotasImage], windows: Windows) -> None:
        self._quotas = quotas
        self._windows = windows
        self._seen: ClientQuotasImage | None = None
        self._in_force: frozenset[str] = frozenset()
        self._allowances: dict[tuple[ClientQuota, str, str | None], Allowance | None] = {}
        self._kinds = {kind: _OfKind() for kind in ClientQuota}
        self._exempt = WindowedRate(windows)

    def is_in_force(self, quota: ClientQuota) -> bool:
        """Whether any client has a limit of this kind; as long as none has, nothing is measured."""
        return quota in self._limits_in_force()

    def charge(
        self, quota: ClientQuota, now_ms: int, principal: str, client_id: str | None, amount: float
    ) -> int:
        """Count what a client has used; how many ms it has to wait before it asks again, 0 if it may at once."""
        allowance = self._allowance(quota, principal, client_id)
        if allowance is None:
            return 0
        measured = self._measured(quota, allowance.key, now_ms)
        measured.record(now_ms, amount, allowance.rate)
        return self._throttled(quota, measured, now_ms, allowance)

    def charge_afterwards(
        self, quota: ClientQuota, now_ms: int, principal: str, client_id: str | None, amount: float
    ) -> None:
        """Count what was used when the answer had been made: it counts for the next request."""
        allowance = self._allowance(quota, principal, client_id)
        if allowance is not None:
            self._measured(quota, allowance.key, now_ms).record(now_ms, amount, allowance.rate)

    def throttle_ms(self, quota: ClientQuota, now_ms: int, principal: str, client_id: str | None) -> int:
        """How many ms a client has to wait for what it and those who share its limit have used before."""
        allowance = self._allowance(quota, principal, client_id)
        if allowance is None:
            return 0
        return self._throttled(quota, self._measured(quota, allowance.key, now_ms), now_ms, allowance)

    def most_in_window(self, quota: ClientQuota, principal: str, client_id: str | None) -> float | None:
        """What a client may use after a pause, at once; None: it has no limit."""
        allowance = self._allowance(quota, principal, client_id)
        return None if allowance is None else allowance.rate * self._windows.full_ms / 1000

    def note_exempt(self, now_ms: int, percent: float) -> None:
        """Time for what brokers ask of each other, which no quota bounds."""
        self._exempt.record(now_ms, percent)

    def figures(self, now_ms: int) -> QuotaFigures:
        return QuotaFigures(
            tuple(self._rates(now_ms)),
            {kind: self._throttled_connections(of_kind, now_ms) for kind, of_kind in self._kinds.items()},
            self._exempt.per_second(now_ms),
        )

    # Parts

    def _rates(self, now_ms: int) -> Iterator[MeasuredRate]:
        for kind, of_kind in self._kinds.items():
            for (user, client_id), measured in of_kind.measured.items():
                if now_ms - measured.used_ms >= _FORGOTTEN_AFTER_MS:
                    continue
                throttles = measured.throttles.per_second(now_ms)
                yield MeasuredRate(
                    kind,
                    user,
                    client_id,
                    measured.rate.per_second(now_ms),
                    measured.throttled_ms.per_second(now_ms) / throttles if throttles > 0 else float("nan"),
                )

    def _throttled_connections(self, of_kind: _OfKind, now_ms: int) -> int:
        """One that was closed meanwhile counts until its time."""
        throttled_until_ms = of_kind.throttled_until_ms
        while throttled_until_ms and throttled_until_ms[0] <= now_ms:
            heapq.heappop(throttled_until_ms)
        return len(throttled_until_ms)

    def _limits_in_force(self) -> frozenset[str]:
        quotas = self._quotas()
        if quotas is not self._seen:
            self._seen = quotas
            self._allowances.clear()
            self._in_force = frozenset(key for each in quotas.entities.values() for key in each)
        return self._in_force

    def _allowance(self, quota: ClientQuota, principal: str, client_id: str | None) -> Allowance | None:
        if quota not in self._limits_in_force():
            return None
        asked = (quota, principal, client_id)
        if asked in self._allowances:
            return self._allowances[asked]
        if len(self._allowances) >= _ALLOWANCES_KEPT:
            self._allowances.clear()
        found = self._allowances[asked] = allowance_of(self._quotas(), quota, principal, client_id)
        return found

    def _measured(self, quota: ClientQuota, key: SharedBy, now_ms: int) -> _Measured:
        known = self._kinds[quota].measured
        measured = known.pop(key, None)
        if measured is None:
            if len(known) >= RATES_KEPT:
                del known[next(iter(known))]
            windows = self._windows
            measured = _Measured(WindowedRate(windows), Level(), WindowedRate(windows), WindowedRate(windows))
        known[key] = measured
        measured.used_ms = now_ms
        self._forget_unused(known, now_ms)
        return measured

    def _forget_unused(self, known: dict[SharedBy, _Measured], now_ms: int) -> None:
        key, oldest = next(iter(known.items()))
        if now_ms - oldest.used_ms >= _FORGOTTEN_AFTER_MS:
            del known[key]

    def _throttled(self, quota: ClientQuota, measured: _Measured, now_ms: int, allowance: Allowance) -> int:
        limit = allowance.rate
        # Kafka's rule for the rate of the last seconds; and over longer times the client has the limit as well.
        throttle_ms = max(
            measured.rate.throttle_ms(now_ms, limit),
            measured.level.throttle_ms(now_ms, limit, limit * self._windows.full_ms / 1000),
        )
        if quota is ClientQuota.REQUEST:
            # Kafka's: what took long once does not keep a client out for minutes.
            throttle_ms = min(throttle_ms, self._windows.size_ms)
        if throttle_ms > 0:
            measured.throttled_ms.record(now_ms, throttle_ms)
            measured.throttles.record(now_ms, 1)
            of_kind = self._kinds[quota]
            if self._throttled_connections(of_kind, now_ms) < _THROTTLES_KEPT:
                heapq.heappush(of_kind.throttled_until_ms, now_ms + throttle_ms)
        return throttle_ms


def no_client_quotas() -> ClientQuotas:
    """Of a broker without limits."""
    none = ClientQuotasImage()
    return ClientQuotas(lambda: none, Windows())
