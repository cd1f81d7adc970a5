"""Which versions a peer offers, asked once for each connection (ApiVersions)."""

from typing import TYPE_CHECKING, Any, Protocol

from network.errors import ConnectionLost
from wire.protocol.apis import ApiKey, request_class, supported_versions
from wire.protocol.entities import build

if TYPE_CHECKING:
    import asyncio

    from kio.static.protocol import RequestPayload, ResponsePayload

_UNSUPPORTED_VERSION = 35
_SOFTWARE = {"client_software_name": "kquorum", "client_software_version": "unknown"}


class Sender(Protocol):
    """The part of a KafkaConnection that is needed here."""

    host: str
    port: int

    def send(
        self, api_key: int, version: int, entity: "RequestPayload"
    ) -> "asyncio.Future[ResponsePayload]": ...


async def ask_versions(peer: Sender) -> dict[int, tuple[int, int]]:
    """ApiVersions, twice if the peer is older: its answer says which version to ask in (KIP-511). Raises
    ConnectionLost."""
    version = supported_versions(ApiKey.API_VERSIONS)[1]
    ranges, error_code = await _ask_in(peer, version)
    if error_code == _UNSUPPORTED_VERSION:
        version = min(version, ranges.get(ApiKey.API_VERSIONS, (0, 0))[1])
        ranges, error_code = await _ask_in(peer, version)
    if error_code:
        raise ConnectionLost(peer.host, peer.port, f"the peer refuses ApiVersions with error {error_code}")
    return ranges


async def _ask_in(peer: Sender, version: int) -> tuple[dict[int, tuple[int, int]], int]:
    entity = build(request_class(ApiKey.API_VERSIONS, version), _SOFTWARE)
    response: Any = await peer.send(ApiKey.API_VERSIONS, version, entity)
    ranges = {item.api_key: (item.min_version, item.max_version) for item in response.api_keys}
    return ranges, int(response.error_code)
