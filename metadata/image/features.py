"""Finalised feature levels."""

from dataclasses import dataclass, field, replace

from immutables import Map

from kquorum.metadata.image.metadata_version import METADATA_VERSION, MINIMUM_METADATA_VERSION
from kquorum.wire.metadata_records.features import FeatureLevelRecord, ZkMigrationStateRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class FeaturesImage:
    """`zk_migration_state` means nothing without ZooKeeper; it is kept (None: never seen) so that nothing is lost."""

    finalized: Map[str, int] = field(default_factory=Map)
    zk_migration_state: int | None = None

    @property
    def metadata_version(self) -> int:
        return self.finalized.get(METADATA_VERSION, MINIMUM_METADATA_VERSION)

    @property
    def is_empty(self) -> bool:
        return not self.finalized and self.zk_migration_state is None


class FeaturesDelta:
    def __init__(self, image: FeaturesImage) -> None:
        self.image = image
        self.changed: set[str] = set()

    def replay_feature_level(self, record: FeatureLevelRecord) -> None:
        """Level 0 takes a feature off, except metadata.version, which a log cannot be without."""
        self.changed.add(record.name)
        if record.feature_level == 0 and record.name != METADATA_VERSION:
            finalized = self.image.finalized
            if record.name in finalized:
                finalized = finalized.delete(record.name)
        else:
            finalized = self.image.finalized.set(record.name, record.feature_level)
        self.image = replace(self.image, finalized=finalized)

    def replay_zk_migration_state(self, record: ZkMigrationStateRecord) -> None:
        self.image = replace(self.image, zk_migration_state=record.zk_migration_state)

    def become(self, target: FeaturesImage) -> None:
        names = set(self.image.finalized) | set(target.finalized)
        self.changed |= {
            name for name in names if self.image.finalized.get(name) != target.finalized.get(name)
        }
        self.image = target
