"""Which versions a peer offers, asked once for each connection (ApiVersions)."""

import asyncio
from typing import Protocol

from kquorum.network.errors import ConnectionLost
from kquorum.wire.message_schema import R, Request
from kquorum.wire.messages.api_versions import ApiVersionsRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.apis import ApiKey, supported_versions


class Sender(Protocol):
    """The part of a KafkaConnection that is needed here."""

    host: str
    port: int

    def send_request(self, request: Request[R], version: int) -> asyncio.Future[R]: ...


async def ask_versions(peer: Sender) -> dict[int, tuple[int, int]]:
    """ApiVersions, twice if the peer is older: its answer says which version to ask in (KIP-511). Raises
    ConnectionLost."""
    version = supported_versions(ApiKey.API_VERSIONS)[1]
    ranges, error_code = await _ask_in(peer, version)
    if error_code is ErrorCode.unsupported_version:
        version = min(version, ranges.get(ApiKey.API_VERSIONS, (0, 0))[1])
        ranges, error_code = await _ask_in(peer, version)
    if error_code is not ErrorCode.none:
        reason = f"the peer refuses ApiVersions with error {error_code.value}"
        raise ConnectionLost(peer.host, peer.port, reason)
    return ranges


async def _ask_in(peer: Sender, version: int) -> tuple[dict[int, tuple[int, int]], ErrorCode]:
    request = ApiVersionsRequest(client_software_name="kquorum", client_software_version="unknown")
    response = await peer.send_request(request, version)
    ranges = {item.api_key: (item.min_version, item.max_version) for item in response.api_keys}
    return ranges, response.error_code
