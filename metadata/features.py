"""The feature levels that this program can run (KIP-584): what a node tells at registration and in ApiVersions.

A level is claimed when its records are read and kept faithfully. That a broker of ours serves no groups or transactions
does not matter here: a finalized level which a broker does not claim would bar it from the cluster.
"""

from collections.abc import Mapping

from metadata.image.metadata_version import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    MINIMUM_BOOTSTRAP_METADATA_VERSION,
)

SUPPORTED_FEATURES: Mapping[str, tuple[int, int]] = {
    METADATA_VERSION: (MINIMUM_BOOTSTRAP_METADATA_VERSION, LATEST_METADATA_VERSION),
    KRAFT_VERSION: (0, 1),
    "transaction.version": (0, 2),
    "group.version": (0, 1),
    ELIGIBLE_LEADER_REPLICAS_VERSION: (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
}


def registration_features() -> tuple[Mapping[str, object], ...]:
    """In the shape of BrokerRegistrationRequest and ControllerRegistrationRequest."""
    return tuple(
        {"name": name, "min_supported_version": low, "max_supported_version": high}
        for name, (low, high) in sorted(SUPPORTED_FEATURES.items())
    )
