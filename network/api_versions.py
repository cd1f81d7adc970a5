"""How a server answers ApiVersions (`ApiVersionsRequest.json`; KIP-35, KIP-511, KIP-584)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wire.codec import encode
from wire.protocol.apis import ApiKey, response_class, supported_versions
from wire.protocol.entities import build
from wire.protocol.headers import EncodedBody

if TYPE_CHECKING:
    from kio.static.protocol import RequestPayload

NONE = 0
UNSUPPORTED_VERSION = 35
INVALID_REQUEST = 42

# KIP-511: what a client may call itself from version 3 on.
_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FIRST_VERSION_WITH_NAME = 3
_FIRST_VERSION_WITH_ZERO_MINIMUM = 4


@dataclass(frozen=True, slots=True)
class SupportedFeature:
    """A range of levels that this node can run."""

    name: str
    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True)
class FinalizedFeature:
    """The level that the cluster runs, told as both ends of a range; 0 means off and is not told."""

    name: str
    level: int


@dataclass(frozen=True, slots=True)
class ServerFeatures:
    """`finalized_epoch` is the offset of the image that `finalized` is from; -1 when none is known yet."""

    supported: tuple[SupportedFeature, ...] = ()
    finalized: tuple[FinalizedFeature, ...] = ()
    finalized_epoch: int = -1


NO_FEATURES = ServerFeatures()


class ApiVersionsAnswers:
    """Encoded answers, made anew only when the features have changed: every client asks, and often."""

    __slots__ = ("_encoded", "_features", "_ranges")

    def __init__(self, supported: Mapping[ApiKey, tuple[int, int]]) -> None:
        ranges = dict(supported)
        ranges[ApiKey.API_VERSIONS] = supported_versions(ApiKey.API_VERSIONS)
        if ApiKey.PRODUCE in ranges:
            # As Kafka 4 says without taking them: librdkafka looks here for which codecs a broker has (KAFKA-18659).
            ranges[ApiKey.PRODUCE] = (0, ranges[ApiKey.PRODUCE][1])
        self._ranges = sorted(ranges.items())
        self._features = NO_FEATURES
        self._encoded: dict[tuple[int, int], EncodedBody] = {}

    def answer(self, request: "RequestPayload", features: ServerFeatures) -> EncodedBody:
        """In the version of the request.

        INVALID_REQUEST (42) for a client whose name or version is not well formed.
        """
        version = request.__version__
        error_code = NONE if _is_well_formed(request, version) else INVALID_REQUEST
        return self._encode(version, error_code, features)

    def unsupported_version(self, features: ServerFeatures) -> EncodedBody:
        """In version 0, which every client can read: it finds our range of ApiVersions and asks again."""
        return self._encode(0, UNSUPPORTED_VERSION, features)

    def _encode(self, version: int, error_code: int, features: ServerFeatures) -> EncodedBody:
        if features is not self._features and features != self._features:
            self._encoded.clear()
            self._features = features
        encoded = self._encoded.get((version, error_code))
        if encoded is None:
            entity = build(response_class(ApiKey.API_VERSIONS, version), self._values(version, error_code))
            encoded = self._encoded[version, error_code] = EncodedBody(encode(entity))
        return encoded

    def _values(self, version: int, error_code: int) -> dict[str, object]:
        if error_code == INVALID_REQUEST:
            return {"error_code": error_code, "api_keys": ()}
        return {
            "error_code": error_code,
            "api_keys": [
                {"api_key": api_key, "min_version": lowest, "max_version": highest}
                for api_key, (lowest, highest) in self._ranges
            ],
            "finalized_features_epoch": self._features.finalized_epoch,
            "finalized_features": [
                {"name": feature.name, "max_version_level": feature.level, "min_version_level": feature.level}
                for feature in self._features.finalized
                if feature.level > 0
            ],
            "supported_features": [
                {"name": feature.name, "min_version": feature.min_version, "max_version": feature.max_version}
                for feature in self._features.supported
                # Old clients refuse a range from 0, so they do not hear of it (the schema of version 4 says
                # why).
                if feature.min_version > 0 or version >= _FIRST_VERSION_WITH_ZERO_MINIMUM
            ],
        }


def _is_well_formed(request: Any, version: int) -> bool:
    if version < _FIRST_VERSION_WITH_NAME:
        return True
    names = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE_NAME.fullmatch(name) for name in names)
