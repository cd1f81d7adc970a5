"""The whole metadata at one offset."""

from dataclasses import dataclass, field

from kquorum.metadata.image.cluster import ClusterImage
from kquorum.metadata.image.configs import ConfigsImage
from kquorum.metadata.image.features import FeaturesImage
from kquorum.metadata.image.quotas import ClientQuotasImage, ProducerIdsImage
from kquorum.metadata.image.security import SecurityImage
from kquorum.metadata.image.topics import TopicsImage


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where an image stands in the log: the last record in it, the leader epoch and append time of that record.

    `is_batch_aligned` is False when the image ends inside a batch (before a transaction that begins there); no
    snapshot is made of such an image.
    """

    last_contained_offset: int = -1
    last_contained_epoch: int = -1
    timestamp_ms: int = -1
    is_batch_aligned: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataImage:
    provenance: Provenance = Provenance()
    features: FeaturesImage = field(default_factory=FeaturesImage)
    cluster: ClusterImage = field(default_factory=ClusterImage)
    topics: TopicsImage = field(default_factory=TopicsImage)
    configs: ConfigsImage = field(default_factory=ConfigsImage)
    client_quotas: ClientQuotasImage = field(default_factory=ClientQuotasImage)
    producer_ids: ProducerIdsImage = field(default_factory=ProducerIdsImage)
    security: SecurityImage = field(default_factory=SecurityImage)

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
