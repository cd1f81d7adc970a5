"""The table of APIs: their versions, the classes of their messages, and which header goes first.

A module of `wire.messages` holds an API's request and response for all versions. It is imported when it is first asked
for: all of them together take long to import, and a command that only reads a log folder needs none.
"""

from dataclasses import dataclass
from functools import cache
from importlib import import_module

from kquorum.wire.errors import UnsupportedVersion
from kquorum.wire.message_schema import Request, Response
from kquorum.wire.messages.index import MESSAGES
from kquorum.wire.protocol.api_keys import ApiKey, api_name

__all__ = (
    "ApiKey",
    "ApiVersion",
    "api_name",
    "api_version",
    "is_flexible",
    "is_supported",
    "message_types",
    "request_header_version",
    "response_header_version",
    "supported_versions",
)


@dataclass(frozen=True, slots=True)
class ApiVersion:
    """One version of one API. Header versions are those of `RequestHeader.json` and `ResponseHeader.json`."""

    api_key: ApiKey
    version: int
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
    messages = MESSAGES.get(api_key)
    if messages is None:
        raise UnsupportedVersion(f"no version of {api_name(api_key)} is known")
    return messages.versions


def is_supported(api_key: int, version: int) -> bool:
    if api_key not in MESSAGES:
        return False
    lowest, highest = supported_versions(api_key)
    return lowest <= version <= highest


@cache
def message_types(api_key: int) -> tuple[type[Request[Response]], type[Response]]:
    """The classes of an API's request and response in `wire.messages`. Raises UnsupportedVersion for an API without."""
    supported_versions(api_key)
    names = MESSAGES[api_key]
    module = import_module(f"kquorum.wire.messages.{names.module}")
    return getattr(module, names.request), getattr(module, names.response)


@cache
def api_version(api_key: int, version: int) -> ApiVersion:
    """Raises UnsupportedVersion. Kafka's versions of an API have no holes, so the range decides."""
    lowest, highest = supported_versions(api_key)
    if not lowest <= version <= highest:
        raise UnsupportedVersion(
            f"version {version} of {api_name(api_key)} is not known; versions {lowest} to {highest} are"
        )
    first_flexible = MESSAGES[api_key].flexible_since
    flexible = first_flexible is not None and version >= first_flexible
    return ApiVersion(
        api_key=ApiKey(api_key),
        version=version,
        flexible=flexible,
        request_header_version=2 if flexible else 1,
        # The reader of this answer knows no version of the peer yet (KIP-511).
        response_header_version=1 if flexible and api_key != ApiKey.API_VERSIONS else 0,
    )


def request_header_version(api_key: int, version: int) -> int:
    """1 (client id) or 2 (client id and tagged fields). Raises UnsupportedVersion."""
    return api_version(api_key, version).request_header_version


def response_header_version(api_key: int, version: int) -> int:
    """0 or 1 (tagged fields). Raises UnsupportedVersion."""
    return api_version(api_key, version).response_header_version


def is_flexible(api_key: int, version: int) -> bool:
    """Whether compact lengths and tagged fields are used (KIP-482). Raises UnsupportedVersion."""
    return api_version(api_key, version).flexible
