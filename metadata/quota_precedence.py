"""Which client quota counts for a client: the most specific one that has the key, as in Kafka's ClientQuotaManager."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from immutables import Map

from kquorum.metadata.image.quotas import ClientQuotasImage, QuotaEntity
from kquorum.wire.addresses import normal_address

SharedBy = tuple[str, str]
"""A user and a client id; one that is empty does not matter."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the client quotas allow one client, in the quota's unit a second; all clients with the same `key` share
    it."""

    key: SharedBy
    rate: float


def allowance_of(
    quotas: ClientQuotasImage, quota: str, principal: str, client_id: str | None
) -> Allowance | None:
    """The most specific entity with a value for `quota` counts; None is no limit.

    A quota of a user (or of every user) is shared by that user's clients, one of a client id by all its users.
    """
    user, client = principal.partition(":")[2], client_id or ""
    for entity, key in _candidates(user, client):
        rate = quotas.entities.get(entity, _NO_QUOTAS).get(quota)
        if rate is not None:
            return Allowance(key, rate)
    return None


def _candidates(user: str, client: str) -> list[tuple[QuotaEntity, SharedBy]]:
    """Entities are sorted by type, as the image has them; the name None is the default of its type."""
    both: list[tuple[QuotaEntity, SharedBy]] = []
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


CONNECTION_CREATION_RATE: Final = "connection_creation_rate"


class ConnectionRates:
    """How many connections a second an address may open (KIP-612), by the newest `quotas`."""

    def __init__(self, quotas: Callable[[], ClientQuotasImage]) -> None:
        self._quotas = quotas
        self._seen: ClientQuotasImage | None = None
        # By address as `normal_address` writes it: a quota may be set for another spelling. None is every address.
        self._rates: dict[str | None, float] = {}

    def of(self, address: str) -> float | None:
        """None is no limit."""
        quotas = self._quotas()
        if quotas is not self._seen:
            self._seen = quotas
            self._rates = {
                None if name is None else normal_address(name): values[CONNECTION_CREATION_RATE]
                for entity, values in quotas.entities.items()
                for kind, name in entity
                if kind == "ip" and CONNECTION_CREATION_RATE in values
            }
        own = self._rates.get(address)
        return self._rates.get(None) if own is None else own


_NO_QUOTAS: Map[str, float] = Map()
