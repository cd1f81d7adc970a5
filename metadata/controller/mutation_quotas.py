"""How many partitions a client may create, add or delete per second (KIP-599), and the token buckets that count it.

Each user, client id, or pair of both has a bucket of tokens, which fills at the rate that the client quotas give it. A
partition costs a token; a bucket may be overdrawn once, and is closed until it is back at zero. Old versions of the
requests have no error code for a refusal: they are carried out, and the answer says only how long to wait.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.image.quotas import ClientQuotasImage
from kquorum.metadata.quota_precedence import SharedBy, allowance_of
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

Key = TypeVar("Key", bound=Hashable)

_BUCKETS_KEPT: Final = 1000
_LONGEST_WAIT_MS: Final = 2**31 - 1


@dataclass(slots=True)
class Bucket:
    """`rate`, permits per second, and `burst` are those of the last filling."""

    tokens: float
    filled_at_ms: int
    rate: float
    burst: float

    def is_full_by(self, now_ms: int) -> bool:
        return self.tokens + self.rate * (now_ms - self.filled_at_ms) / 1000 >= self.burst

    def fill(self, rate: float, burst: float, now_ms: int) -> None:
        """A clock that went backwards adds no tokens."""
        elapsed_ms = max(0, now_ms - self.filled_at_ms)
        self.tokens = min(burst, self.tokens + rate * elapsed_ms / 1000)
        self.filled_at_ms, self.rate, self.burst = now_ms, rate, burst

    def until_filled_ms(self) -> int:
        """How long until nothing is overdrawn. 0 for a bucket that lacks less than half a millisecond: a client that
        waited for the throttle time must get through.

        A rate may be so small, or 0 in a log of another program, that the answer could not hold the time."""
        debt = max(0.0, -self.tokens)
        if debt * 1000 >= self.rate * _LONGEST_WAIT_MS:
            return _LONGEST_WAIT_MS if debt else 0
        return round(debt / self.rate * 1000)


class Buckets(Generic[Key]):
    """Those of one controller. They are not in the log, so another controller begins with full ones."""

    # No dataclass: mypyc cannot build one that is generic.
    def __init__(self) -> None:
        self._kept: dict[Key, Bucket] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __bool__(self) -> bool:
        """mypyc does not see that `__len__` says so."""
        return len(self) > 0

    def filled(self, key: Key, rate: float, burst: float, now_ms: int) -> Bucket:
        """The bucket of `key` as it is now; a new one is full."""
        bucket = self._kept.get(key)
        if bucket is None:
            self._forget_idle(now_ms)
            bucket = self._kept[key] = Bucket(burst, now_ms, rate, burst)
        bucket.fill(rate, burst, now_ms)
        return bucket

    def _forget_idle(self, now_ms: int) -> None:
        """A full bucket equals a new one, so it is dropped."""
        if len(self._kept) >= _BUCKETS_KEPT:
            self._kept = {key: bucket for key, bucket in self._kept.items() if not bucket.is_full_by(now_ms)}


CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
MESSAGE = "The throttling quota has been exceeded."
# From which version on each API can refuse a part of what it was asked for.
STRICT_SINCE: Mapping[ApiKey, int] = {
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.CREATE_PARTITIONS: 3,
}


@dataclass(slots=True)
class MutationCharges:
    """What one request was charged; `throttle_time_ms` is what its answer says."""

    throttle_time_ms: int = 0


@dataclass(slots=True)
class MutationQuotas:
    """The buckets of one controller; they are not in the log, so another controller begins with full ones.

    A bucket holds what `window_ms` bring in; that is also how much an idle client may do at once (Kafka's
    `controller.quota.window.num` times `controller.quota.window.size.seconds`).
    """

    window_ms: int
    _buckets: Buckets[SharedBy] = field(default_factory=Buckets)

    def charge(
        self,
        quotas: ClientQuotasImage,
        request: ControllerRequest,
        permits: int,
        now_ms: int,
        charges: MutationCharges,
    ) -> None:
        """Raises THROTTLING_QUOTA_EXCEEDED, and charges nothing, if the bucket is already overdrawn."""
        allowance = allowance_of(quotas, CONTROLLER_MUTATION_RATE, request.principal, request.client_id)
        if allowance is None:
            return
        burst = allowance.rate * self.window_ms / 1000
        bucket = self._buckets.filled(allowance.key, allowance.rate, burst, now_ms)
        if request.api_version >= STRICT_SINCE[request.api_key]:
            charges.throttle_time_ms = bucket.until_filled_ms()
            if charges.throttle_time_ms:
                raise ApiError(ErrorCode.throttling_quota_exceeded, MESSAGE)
            bucket.tokens -= permits
        else:
            bucket.tokens -= permits
            charges.throttle_time_ms = bucket.until_filled_ms()
