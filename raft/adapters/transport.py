"""The core's requests to other replicas, in the Kafka protocol."""

from collections.abc import Mapping, Sequence
from typing import Final

from raft.adapters.driver_ports import Receive
from raft.adapters.peer_lane import PeerLane
from raft.messages import FetchRequest
from raft.ready import OutboundRequest
from raft.voters import Endpoint, VoterSet

_FIRST_BOOTSTRAP_ID: Final = -2


class KafkaTransport:
    """Satisfies raft.adapters.driver_ports.Transport.

    Each peer has two connections, one for fetches alone: responses of a connection come in the order of its
    requests, so a vote behind a parked fetch would wait for it. Built and used in the loop.
    """

    def __init__(
        self, node_id: int, endpoints: Mapping[int, Endpoint], request_timeout_ms: int, receive: Receive
    ) -> None:
        """`endpoints` by destination id (see `endpoints_of`); `receive` is the driver's."""
        self._endpoints = endpoints
        self._client_id = f"raft-client-{node_id}"
        self._request_timeout_ms = request_timeout_ms
        self._receive = receive
        self._lanes: dict[tuple[int, bool], PeerLane] = {}

    def send(self, request: OutboundRequest) -> None:
        key = (request.destination_id, isinstance(request.request, FetchRequest))
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = self._open_lane(request.destination_id)
        lane.send(request)

    def _open_lane(self, destination_id: int) -> PeerLane:
        endpoint = self._endpoints[destination_id]
        return PeerLane(endpoint, self._client_id, self._request_timeout_ms, self._receive)

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.close()


def endpoints_of(voters: VoterSet, bootstrap_servers: Sequence[Endpoint] = ()) -> dict[int, Endpoint]:
    """Where each destination listens: voters by node id, bootstrap servers as -2, -3, ... in their order."""
    known = {voter.key.id: voter.endpoints[0] for voter in voters if voter.endpoints}
    servers = {_FIRST_BOOTSTRAP_ID - index: server for index, server in enumerate(bootstrap_servers)}
    return known | servers
