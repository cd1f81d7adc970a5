"""Client quotas and the producer id counter."""

from dataclasses import dataclass
from typing import Final

from immutables import Map

from kquorum.metadata.image.errors import CannotReplayError
from kquorum.wire.metadata_records.configs import ClientQuotaRecord
from kquorum.wire.metadata_records.features import ProducerIdsRecord

# (type, name) pairs, sorted by type; the name None is the default entity of its type.
QuotaEntity = tuple[tuple[str, str | None], ...]
NO_PRODUCER_IDS = -1


@dataclass(slots=True, init=False)
class ClientQuotasImage:
    """Invariant: no entity is without a quota."""

    entities: Final[Map[QuotaEntity, Map[str, float]]]

    def __init__(
        self,
        entities: Map[QuotaEntity, Map[str, float]] | None = None,
    ) -> None:
        self.entities = Map() if entities is None else entities

    @property
    def is_empty(self) -> bool:
        return not self.entities


class ClientQuotasDelta:
    def __init__(self, image: ClientQuotasImage) -> None:
        self.image = image
        self.changed: set[QuotaEntity] = set()

    def after(self, earlier: "ClientQuotasDelta | None") -> "ClientQuotasDelta":
        """This delta with the changes of the one before it."""
        if earlier is not None:
            self.changed |= earlier.changed
        return self

    def replay_client_quota(self, record: ClientQuotaRecord) -> None:
        names = {each.entity_type: each.entity_name for each in record.entity}
        entity = tuple(sorted(names.items()))
        self.changed.add(entity)
        quotas: Map[str, float] = self.image.entities.get(entity, Map())
        if not record.remove:
            quotas = quotas.set(record.key, record.value)
        elif record.key in quotas:
            quotas = quotas.delete(record.key)
        entities = self.image.entities
        if quotas:
            self.image = ClientQuotasImage(entities.set(entity, quotas))
        elif entity in entities:
            self.image = ClientQuotasImage(entities.delete(entity))


@dataclass(frozen=True, slots=True)
class ProducerIdsImage:
    """`next_producer_id` is the first that no broker was given yet, -1 before the first block."""

    next_producer_id: int = NO_PRODUCER_IDS

    @property
    def is_empty(self) -> bool:
        return self.next_producer_id == NO_PRODUCER_IDS


class ProducerIdsDelta:
    def __init__(self, image: ProducerIdsImage) -> None:
        self.image = image

    def replay_producer_ids(self, record: ProducerIdsRecord) -> None:
        current = self.image.next_producer_id
        if record.next_producer_id <= current:
            raise CannotReplayError(f"the next producer id is {current} already and can only grow")
        self.image = ProducerIdsImage(record.next_producer_id)
