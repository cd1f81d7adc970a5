"""The feature levels that this program can run (KIP-584), and what each of them asks for (KIP-1022).

A level is claimed when its records are read and kept faithfully. That a broker of ours serves no share groups does not
matter here: a finalized level which a broker does not claim would bar it from the cluster.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from kquorum.metadata.image.metadata_version import (
    DYNAMIC_QUORUM,
    ELIGIBLE_LEADER_REPLICAS,
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    IN_CONTROLLED_SHUTDOWN_STATE,
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    MINIMUM_BOOTSTRAP_METADATA_VERSION,
)
from kquorum.wire.messages import broker_registration, controller_registration

F = TypeVar("F", broker_registration.Feature, controller_registration.Feature)

NOT_SUPPORTED = (0, 0)


class FeatureLevel(NamedTuple):
    """A level above 0 of a feature. `default_since` is the metadata.version from which a new cluster has it;
    `needs_metadata_version` is the one without which it cannot be."""

    level: int
    default_since: int
    needs_metadata_version: int = IN_CONTROLLED_SHUTDOWN_STATE


# From Kafka 4.4's Feature, GroupVersion and so on: rising, without gaps, and 0 is off.
FEATURE_LEVELS: Mapping[str, tuple[FeatureLevel, ...]] = {
    KRAFT_VERSION: (FeatureLevel(1, 21, DYNAMIC_QUORUM),),
    "transaction.version": (FeatureLevel(1, 24), FeatureLevel(2, 24)),
    "group.version": (FeatureLevel(1, 22),),
    ELIGIBLE_LEADER_REPLICAS_VERSION: (FeatureLevel(1, 26, ELIGIBLE_LEADER_REPLICAS),),
    "share.version": (FeatureLevel(1, 28), FeatureLevel(2, 31)),
    "streams.version": (FeatureLevel(1, 29),),
}

SUPPORTED_FEATURES: Mapping[str, tuple[int, int]] = {
    METADATA_VERSION: (MINIMUM_BOOTSTRAP_METADATA_VERSION, LATEST_METADATA_VERSION),
    **{name: (0, levels[-1].level) for name, levels in FEATURE_LEVELS.items()},
}


def default_features(metadata_version: int) -> dict[str, int]:
    """The levels of the other features in a new cluster; kraft.version follows from how its quorum begins."""
    found = {
        name: max((each.level for each in levels if each.default_since <= metadata_version), default=0)
        for name, levels in FEATURE_LEVELS.items()
        if name != KRAFT_VERSION
    }
    return {name: level for name, level in found.items() if level > 0}


def unmet_dependency(name: str, level: int, metadata_version: int) -> str | None:
    """Why a feature cannot have a level beside this metadata.version, in words; None when it can."""
    for each in FEATURE_LEVELS.get(name, ()):
        if each.level == level and metadata_version < each.needs_metadata_version:
            return (
                f"{name} could not be set to {level} because it depends on {METADATA_VERSION} "
                f"level {each.needs_metadata_version}"
            )
    return None


def reason_not_supported(what: str, level: int, supported: tuple[int, int]) -> str | None:
    """Why a node, named by `what`, cannot run a level; None when it can."""
    low, high = supported
    if low <= level <= high:
        return None
    if high == 0:
        return f"{what} does not support this feature."
    return f"{what} only supports versions {low if low == high else f'{low}-{high}'}"


def registration_features(of: type[F]) -> tuple[F, ...]:
    """As a broker registers them, or a controller."""
    return tuple(
        of(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in sorted(SUPPORTED_FEATURES.items())
    )
