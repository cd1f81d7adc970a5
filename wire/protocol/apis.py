"""The table of APIs: which class holds the body of a request or response, and which header goes first.

The bodies are kio's generated classes, one per API and version. Each is imported when it is first asked for:
all of them together take seconds to import, and a command that only reads a log folder needs none.
"""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

from wire.errors import UnsupportedVersion
from wire.protocol.api_keys import ApiKey, api_name
from wire.protocol.extensions import extended

if TYPE_CHECKING:
    from kio.schema.index import PayloadEntityType
    from kio.static.protocol import RequestPayload, ResponsePayload


__all__ = (
    "ApiKey",
    "ApiVersion",
    "api_name",
    "api_version",
    "is_flexible",
    "is_supported",
    "request_class",
    "request_header_version",
    "response_class",
    "response_header_version",
    "supported_versions",
)


@dataclass(frozen=True, slots=True)
class ApiVersion:
    """One version of one API. Header versions are those of `RequestHeader.json` and `ResponseHeader.json`."""

    api_key: ApiKey
    version: int
    request_class: "type[RequestPayload]"
    response_class: "type[ResponsePayload]"
    flexible: bool
    request_header_version: int
    response_header_version: int

    def __str__(self) -> str:
        return f"{api_name(self.api_key)} version {self.version}"


@cache
def supported_versions(api_key: int) -> tuple[int, int]:
    """The lowest and highest version that we can read and write.

    Raises UnsupportedVersion for an API without any.
    """
    name = api_key_map.get(api_key)
    if name is None:
        raise UnsupportedVersion(f"no version of {api_name(api_key)} is known")
    versions = schema_name_map[name].keys()
    return min(versions), max(versions)


def is_supported(api_key: int, version: int) -> bool:
    if api_key not in api_key_map:
        return False
    lowest, highest = supported_versions(api_key)
    return lowest <= version <= highest


@cache
def api_version(api_key: int, version: int) -> ApiVersion:
    """Raises UnsupportedVersion. Kafka's versions of an API have no holes, so the range decides."""
    lowest, highest = supported_versions(api_key)
    if not lowest <= version <= highest:
        raise UnsupportedVersion(
            f"version {version} of {api_name(api_key)} is not known; versions {lowest} to {highest} are"
        )
    request: type[RequestPayload] = _load_class(api_key, version, EntityType.request)
    response: type[ResponsePayload] = _load_class(api_key, version, EntityType.response)
    return ApiVersion(
        api_key=ApiKey(api_key),
        version=version,
        request_class=request,
        response_class=response,
        flexible=request.__flexible__,
        request_header_version=request.__header_schema__.__version__,
        response_header_version=response.__header_schema__.__version__,
    )


def _load_class(api_key: int, version: int, kind: "PayloadEntityType") -> Any:
    name = api_key_map[api_key]
    module_name, _, class_name = schema_name_map[name][version][kind].partition(":")
    return extended(api_key, version, kind, getattr(import_module(module_name), class_name))


def request_class(api_key: int, version: int) -> "type[RequestPayload]":
    """Raises UnsupportedVersion."""
    return api_version(api_key, version).request_class


def response_class(api_key: int, version: int) -> "type[ResponsePayload]":
    """Raises UnsupportedVersion."""
    return api_version(api_key, version).response_class


def request_header_version(api_key: int, version: int) -> int:
    """1 (client id) or 2 (client id and tagged fields). Raises UnsupportedVersion."""
    return api_version(api_key, version).request_header_version


def response_header_version(api_key: int, version: int) -> int:
    """0 or 1 (tagged fields); 0 for ApiVersions, whose reader knows no version of the peer yet (KIP-511)."""
    return api_version(api_key, version).response_header_version


def is_flexible(api_key: int, version: int) -> bool:
    """Whether compact lengths and tagged fields are used (KIP-482). Raises UnsupportedVersion."""
    return api_version(api_key, version).flexible
