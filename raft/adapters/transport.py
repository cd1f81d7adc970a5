"""The core's requests to other replicas, in the Kafka protocol."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from network.connection import UNSECURED
from network.security.client_security import ClientSecurity
from raft.adapters.driver_ports import Receive
from raft.adapters.peer_connection import PeerConnection
from raft.inputs import FailureReason, RequestFailed
from raft.messages import FetchRequest
from raft.ready import OutboundRequest
from raft.voters import Endpoint, VoterSet

_FIRST_BOOTSTRAP_ID: Final = -2
# Kafka's `connections.max.idle.ms`.
DEFAULT_IDLE_TIMEOUT_MS: Final = 600_000
logger = logging.getLogger(__name__)


class KafkaTransport:
    """Satisfies raft.adapters.driver_ports.Transport.

    Each peer has two connections, one for fetches alone: responses of a connection come in the order of its
    requests, so a vote behind a parked fetch would wait for it. When a peer turns up at another endpoint, its
    connection to the old one is closed; one that was not used for long is closed too, so those of replicas that
    left the quorum do not stay. Built and used in the loop.
    """

    def __init__(
        self,
        node_id: int,
        endpoints: Mapping[int, Endpoint],
        request_timeout_ms: int,
        receive: Receive,
        idle_timeout_ms: int = DEFAULT_IDLE_TIMEOUT_MS,
        annotation: Callable[[], bytes] = lambda: b"",
        security: ClientSecurity = UNSECURED,
    ) -> None:
        """`endpoints` by destination id (see `endpoints_of`) are asked where a request does not say where it goes;
        `receive` is the driver's; `annotation` is what a Fetch is to carry now."""
        self._endpoints = endpoints
        self._client_id = f"raft-client-{node_id}"
        self._request_timeout_ms = request_timeout_ms
        self._receive = receive
        self._idle_timeout_ms = idle_timeout_ms
        self._annotation = annotation
        self._security = security
        self._lanes: dict[tuple[int, bool], PeerConnection] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def open_lanes(self) -> int:
        return len(self._lanes)

    def why_unreachable(self, destination_id: int) -> str | None:
        """Why the last attempt to connect to a node failed, for a message; None if there is a connection, or none
        was wanted."""
        lanes = (self._lanes.get((destination_id, is_fetch)) for is_fetch in (False, True))
        return next((lane.trouble for lane in lanes if lane is not None and lane.trouble is not None), None)

    def send(self, request: OutboundRequest) -> None:
        """The outcome is told to `receive`, never before this returns."""
        endpoint = request.endpoint or self._endpoints.get(request.destination_id)
        if endpoint is None or self._is_closed:
            self._fail_soon(request)
            return
        if isinstance(request.request, FetchRequest):
            annotated = replace(request.request, annotation=self._annotation())
            request = replace(request, request=annotated)
        self._lane_to(request, endpoint).send(request)

    def _fail_soon(self, request: OutboundRequest) -> None:
        """A leader may be known by its id alone, where an old peer named it: the core has to ask somebody else."""
        logger.debug("node %d cannot be reached: its endpoint is not known", request.destination_id)
        outcome = RequestFailed(request.correlation_id, request.destination_id, FailureReason.DISCONNECTED)
        asyncio.get_running_loop().call_soon(self._receive, outcome)

    def _lane_to(self, request: OutboundRequest, endpoint: Endpoint) -> PeerConnection:
        key = (request.destination_id, isinstance(request.request, FetchRequest))
        lane = self._lanes.get(key)
        if lane is not None and not lane.leads_to(endpoint):
            logger.info("node %d is now at %s:%d", request.destination_id, endpoint.host, endpoint.port)
            lane.close()
            lane = None
        if lane is None:
            lane = PeerConnection(
                endpoint, self._client_id, self._request_timeout_ms, self._receive, self._security
            )
            self._lanes[key] = lane
            self._sweep_later()
        return lane

    def _sweep_later(self) -> None:
        if self._sweep is None:
            delay_s = self._idle_timeout_ms / 2000
            self._sweep = asyncio.get_running_loop().call_later(delay_s, self._close_idle_lanes)

    def _close_idle_lanes(self) -> None:
        self._sweep = None
        idle = [key for key, lane in self._lanes.items() if lane.idle_ms() >= self._idle_timeout_ms]
        for key in idle:
            self._lanes.pop(key).close()
        if self._lanes:
            self._sweep_later()

    def close(self) -> None:
        """Drop all connections; what is under way fails as disconnected, and so does what comes after."""
        self._is_closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for lane in self._lanes.values():
            lane.close()


def endpoints_of(voters: VoterSet, bootstrap_servers: Sequence[Endpoint] = ()) -> dict[int, Endpoint]:
    """Where each destination listens: voters by node id, bootstrap servers as -2, -3, ... in their order."""
    known = {voter.key.id: voter.endpoints[0] for voter in voters if voter.endpoints}
    servers = {_FIRST_BOOTSTRAP_ID - index: server for index, server in enumerate(bootstrap_servers)}
    return known | servers
