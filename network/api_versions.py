"""How a server answers ApiVersions (`ApiVersionsRequest.json`; KIP-35, KIP-511, KIP-584)."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kquorum.wire.message_codec import encode
from kquorum.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.apis import ApiKey, supported_versions
from kquorum.wire.protocol.headers import EncodedBody

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
    """The level that the cluster runs, sent as both ends of a range; 0 means off and is not sent."""

    name: str
    level: int


@dataclass(frozen=True, slots=True)
class ServerFeatures:
    """`finalized_epoch` is the offset of the image that `finalized` is from; -1 when none is known yet."""

    supported: tuple[SupportedFeature, ...] = ()
    finalized: tuple[FinalizedFeature, ...] = ()
    finalized_epoch: int = -1


NO_FEATURES = ServerFeatures()


# The lowest and the highest version of APIs.
Ranges = Mapping[int, tuple[int, int]]


class ApiVersionsAnswers:
    """Encoded answers, kept until the features or the other node's ranges change: every client asks, and often."""

    __slots__ = ("_elsewhere", "_encoded", "_features", "_present", "_ranges")

    def __init__(
        self,
        supported: Mapping[ApiKey, tuple[int, int]],
        answered_elsewhere: Callable[[], Ranges | None] = lambda: None,
    ) -> None:
        """`answered_elsewhere` has the APIs that another node answers, in the versions which that node offers: clients
        see the versions that both know, and no API without any. It is the same object as long as nothing has
        changed."""
        self._elsewhere = answered_elsewhere
        self._present: Ranges | None = None
        ranges = dict(supported)
        ranges[ApiKey.API_VERSIONS] = supported_versions(ApiKey.API_VERSIONS)
        if ApiKey.PRODUCE in ranges:
            # As Kafka 4 says without taking them: librdkafka looks here for which codecs a broker has (KAFKA-18659).
            ranges[ApiKey.PRODUCE] = (0, ranges[ApiKey.PRODUCE][1])
        self._ranges = sorted(ranges.items())
        self._features = NO_FEATURES
        self._encoded: dict[tuple[int, ErrorCode], EncodedBody] = {}

    def answer(self, request: ApiVersionsRequest, version: int, features: ServerFeatures) -> EncodedBody:
        """In the version of the request.

        INVALID_REQUEST (42) for a client whose name or version is not well formed.
        """
        is_well_formed = _is_well_formed(request, version)
        return self._encode(
            version, ErrorCode.none if is_well_formed else ErrorCode.invalid_request, features
        )

    def unsupported_version(self, features: ServerFeatures) -> EncodedBody:
        """In version 0, which every client can read: it finds our range of ApiVersions and asks again."""
        return self._encode(0, ErrorCode.unsupported_version, features)

    def _encode(self, version: int, error_code: ErrorCode, features: ServerFeatures) -> EncodedBody:
        if features is not self._features and features != self._features:
            self._encoded.clear()
            self._features = features
        elsewhere = self._elsewhere()
        if elsewhere is not self._present:
            self._encoded.clear()
            self._present = elsewhere
        encoded = self._encoded.get((version, error_code))
        if encoded is None:
            body = encode(self._response(version, error_code), version)
            encoded = self._encoded[version, error_code] = EncodedBody(body)
        return encoded

    def _offered(self) -> Iterator[tuple[ApiKey, tuple[int, int]]]:
        present = self._present or {}
        for api_key, ours in self._ranges:
            theirs = present.get(api_key, ours)
            lowest, highest = max(ours[0], theirs[0]), min(ours[1], theirs[1])
            if lowest <= highest:
                yield api_key, (lowest, highest)

    def _response(self, version: int, error_code: ErrorCode) -> ApiVersionsResponse:
        if error_code is ErrorCode.invalid_request:
            return ApiVersionsResponse(error_code=error_code)
        return ApiVersionsResponse(
            error_code=error_code,
            api_keys=tuple(
                ApiVersion(api_key=api_key, min_version=lowest, max_version=highest)
                for api_key, (lowest, highest) in self._offered()
            ),
            finalized_features_epoch=self._features.finalized_epoch,
            finalized_features=tuple(
                FinalizedFeatureKey(
                    name=feature.name, max_version_level=feature.level, min_version_level=feature.level
                )
                for feature in self._features.finalized
                if feature.level > 0
            ),
            supported_features=tuple(
                SupportedFeatureKey(
                    name=feature.name, min_version=feature.min_version, max_version=feature.max_version
                )
                for feature in self._features.supported
                # Old clients refuse a range from 0, so it is left out for them (the schema of version 4 says why).
                if feature.min_version > 0 or version >= _FIRST_VERSION_WITH_ZERO_MINIMUM
            ),
        )


def _is_well_formed(request: ApiVersionsRequest, version: int) -> bool:
    if version < _FIRST_VERSION_WITH_NAME:
        return True
    names = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE_NAME.fullmatch(name) for name in names)
