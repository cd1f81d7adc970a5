"""How many partitions a client may create, add or delete per second (KIP-599).

Each user, client id, or pair of both has a bucket of tokens, which fills at the rate that the client quotas give it. A
partition costs a token; a bucket may be overdrawn once, and is closed until it is back at zero. Old versions of the
requests cannot tell of a refusal, so they are carried out all the same, and only told how long to wait.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from immutables import Map
from kio.schema.errors import ErrorCode

from metadata.controller.requests import ApiError, ControllerRequest
from metadata.controller.token_buckets import Buckets
from metadata.image.quotas import ClientQuotasImage, QuotaEntity
from wire.protocol.api_keys import ApiKey

CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
MESSAGE = "The throttling quota has been exceeded."
# From which version on each API can refuse a part of what it was asked for.
STRICT_SINCE: Mapping[ApiKey, int] = {
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.CREATE_PARTITIONS: 3,
}
_BucketKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the client quotas say of one client: tokens per second into the bucket `key`, which others may share."""

    key: _BucketKey
    rate: float


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
    _buckets: Buckets[_BucketKey] = field(default_factory=Buckets)

    def charge(
        self,
        quotas: ClientQuotasImage,
        request: ControllerRequest,
        permits: int,
        now_ms: int,
        charges: MutationCharges,
    ) -> None:
        """Raises THROTTLING_QUOTA_EXCEEDED, and charges nothing, when the bucket is overdrawn already."""
        allowance = allowance_of(quotas, request.principal, request.client_id)
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


def allowance_of(quotas: ClientQuotasImage, principal: str, client_id: str | None) -> Allowance | None:
    """The most specific quota counts, in the order of Kafka's ClientQuotaManager; None is no limit.

    A quota of a user (or of every user) is shared by that user's clients, one of a client id by all its users.
    """
    user, client = principal.partition(":")[2], client_id or ""
    for entity, key in _candidates(user, client):
        rate = quotas.entities.get(entity, _NO_QUOTAS).get(CONTROLLER_MUTATION_RATE)
        if rate is not None:
            return Allowance(key, rate)
    return None


def _candidates(user: str, client: str) -> list[tuple[QuotaEntity, _BucketKey]]:
    """Entities are sorted by type, as the image has them; the name None is the default of its type."""
    both: list[tuple[QuotaEntity, _BucketKey]] = []
    for each_user in (user, None):
        if client:
            both += [
                ((("client-id", each_client), ("user", each_user)), (user, client))
                for each_client in (client, None)
            ]
        both.append(((("user", each_user),), (user, "")))
    if client:
        both += [((("client-id", each_client),), ("", client)) for each_client in (client, None)]
    return both


_NO_QUOTAS: Map[str, float] = Map()
