"""The whole metadata at one offset."""

from dataclasses import dataclass
from typing import Final

from kquorum.metadata.image.cluster import ClusterImage
from kquorum.metadata.image.configs import ConfigsImage
from kquorum.metadata.image.features import FeaturesImage
from kquorum.metadata.image.quotas import ClientQuotasImage, ProducerIdsImage
from kquorum.metadata.image.security import SecurityImage
from kquorum.metadata.image.topics import TopicsImage


@dataclass(slots=True, init=False)
class Provenance:
    """Where an image stands in the log: the last record in it, the leader epoch and append time of that record.

    `is_batch_aligned` is False when the image ends inside a batch (before a transaction that begins there); no
    snapshot is made of such an image.
    """

    last_contained_offset: Final[int]
    last_contained_epoch: Final[int]
    timestamp_ms: Final[int]
    is_batch_aligned: Final[bool]

    def __init__(
        self,
        *,
        last_contained_offset: int = -1,
        last_contained_epoch: int = -1,
        timestamp_ms: int = -1,
        is_batch_aligned: bool = True,
    ) -> None:
        self.last_contained_offset = last_contained_offset
        self.last_contained_epoch = last_contained_epoch
        self.timestamp_ms = timestamp_ms
        self.is_batch_aligned = is_batch_aligned


_NOWHERE: Final = Provenance()


@dataclass(slots=True, init=False)
class MetadataImage:
    provenance: Final[Provenance]
    features: Final[FeaturesImage]
    cluster: Final[ClusterImage]
    topics: Final[TopicsImage]
    configs: Final[ConfigsImage]
    client_quotas: Final[ClientQuotasImage]
    producer_ids: Final[ProducerIdsImage]
    security: Final[SecurityImage]

    def __init__(
        self,
        *,
        provenance: Provenance = _NOWHERE,
        features: FeaturesImage | None = None,
        cluster: ClusterImage | None = None,
        topics: TopicsImage | None = None,
        configs: ConfigsImage | None = None,
        client_quotas: ClientQuotasImage | None = None,
        producer_ids: ProducerIdsImage | None = None,
        security: SecurityImage | None = None,
    ) -> None:
        self.provenance = provenance
        self.features = FeaturesImage() if features is None else features
        self.cluster = ClusterImage() if cluster is None else cluster
        self.topics = TopicsImage() if topics is None else topics
        self.configs = ConfigsImage() if configs is None else configs
        self.client_quotas = ClientQuotasImage() if client_quotas is None else client_quotas
        self.producer_ids = ProducerIdsImage() if producer_ids is None else producer_ids
        self.security = SecurityImage() if security is None else security

    def at(self, provenance: Provenance) -> "MetadataImage":
        """The same metadata, at another place of the log."""
        return MetadataImage(
            provenance=provenance,
            features=self.features,
            cluster=self.cluster,
            topics=self.topics,
            configs=self.configs,
            client_quotas=self.client_quotas,
            producer_ids=self.producer_ids,
            security=self.security,
        )

    @staticmethod
    def empty() -> "MetadataImage":
        return MetadataImage()

    @property
    def is_empty(self) -> bool:
        """Nothing but provenance."""
        parts = (
            self.features,
            self.cluster,
            self.topics,
            self.configs,
            self.client_quotas,
            self.producer_ids,
            self.security,
        )
        return all(part.is_empty for part in parts)

    @property
    def metadata_version(self) -> int:
        return self.features.metadata_version

    @property
    def end_offset(self) -> int:
        """The first offset which is not in the image."""
        return self.provenance.last_contained_offset + 1
