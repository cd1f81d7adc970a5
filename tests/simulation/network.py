"""The network between hosts: messages are lost, late, doubled and out of order; links are cut one way or both."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from kquorum.raft.inputs import FailureReason, RequestFailed, RequestReceived, ResponseReceived
from kquorum.raft.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchResponse,
    FetchSnapshotResponse,
    LogSlice,
    Response,
    SnapshotSlice,
)
from kquorum.raft.ready import OutboundRequest, OutboundResponse, Ready
from kquorum.raft.voters import SUPPORTED_KRAFT_VERSIONS
from kquorum.wire.messages.error_codes import ErrorCode
from tests.simulation.hosts import Host, WaitingReply
from tests.simulation.kafka_wire import (
    UnsupportedVersion,
    request_over_wire,
    response_over_wire,
    version_between,
)

if TYPE_CHECKING:
    from tests.simulation.world import World

CALM_DELAY_MS = 10


@dataclass(slots=True)
class Weather:
    """Chances from 0 to 1; a message is under way for up to `delay_ms_max`."""

    delay_ms_max: int
    loss: float = 0.0
    duplicates: float = 0.0


class Network:
    def __init__(self, world: "World") -> None:
        self.world = world
        self.weather = Weather(world.options.delay_ms_max)
        # How many cuts lie on a link, since they overlap and end on their own.
        self.cuts: dict[tuple[int, int], int] = {}
        self.messages = 0
        self._random = Random(world.seed ^ 0x0E7).random

    def calm(self) -> None:
        """The faults are over."""
        self.cuts.clear()
        self.weather = Weather(min(CALM_DELAY_MS, self.world.options.delay_ms_max))

    # Cuts

    def cut(self, links: Iterable[tuple[int, int]], for_ms: int) -> None:
        """Cut these links, each from one node to another, for a while."""
        links = tuple(links)
        for link in links:
            self.cuts[link] = self.cuts.get(link, 0) + 1
        self.world.at(for_ms, self._mend, links)

    def _mend(self, links: tuple[tuple[int, int], ...]) -> None:
        if not self.world.is_faulty:
            return
        self.world.note("%d links mended", len(links))
        for link in links:
            self.cuts[link] -= 1

    def is_cut(self, source_id: int, target_id: int) -> bool:
        return self.cuts.get((source_id, target_id), 0) > 0

    # Messages

    def send(self, host: Host, ready: Ready) -> None:
        for request in ready.requests:
            self._send_request(host, request)
        for response in ready.responses:
            self._send_response(host, response)

    def _send_request(self, host: Host, outbound: OutboundRequest) -> None:
        target = self.world.host_at(outbound)
        if target is None:
            self._refuse(host, host.life, outbound)
            return
        if self.is_cut(host.node_id, target.node_id):
            return
        version = 0
        if self.world.options.uses_wire and not isinstance(outbound.request, ApiVersionsRequest):
            version = version_between(host, target, outbound.request)
            try:
                outbound = replace(outbound, request=request_over_wire(outbound.request, version))
            except UnsupportedVersion:
                self._refuse(host, host.life, outbound, FailureReason.UNSUPPORTED_VERSION)
                return
        for _ in range(self._copies(host.node_id, target.node_id)):
            self.world.at(self._delay_ms(), self._request_arrives, host, host.life, target, outbound, version)

    def _request_arrives(
        self, source: Host, source_life: int, target: Host, outbound: OutboundRequest, version: int
    ) -> None:
        if target.node is None:
            self._refuse(source, source_life, outbound)
            return
        if isinstance(outbound.request, ApiVersionsRequest):
            self._tell_versions(source, source_life, target, outbound)
            return
        target.next_request_id += 1
        request_id = target.next_request_id
        target.waiting_replies[request_id] = WaitingReply(
            source, source_life, outbound.correlation_id, outbound.destination_id, outbound.request, version
        )
        self.world.deliver(target, target.life, RequestReceived(request_id, outbound.request))

    def _tell_versions(self, source: Host, source_life: int, target: Host, outbound: OutboundRequest) -> None:
        """The listener answers this itself."""
        answer = ResponseReceived(
            outbound.correlation_id,
            outbound.destination_id,
            ApiVersionsResponse(kraft_versions=SUPPORTED_KRAFT_VERSIONS),
        )
        for _ in range(self._copies(target.node_id, source.node_id)):
            self.world.at(self._delay_ms(), self.world.deliver, source, source_life, answer)

    def _refuse(
        self,
        source: Host,
        source_life: int,
        outbound: OutboundRequest,
        reason: FailureReason = FailureReason.DISCONNECTED,
    ) -> None:
        """No process listens there; like every message, this notice may be lost."""
        failed = RequestFailed(outbound.correlation_id, outbound.destination_id, reason)
        if not self._is_lost():
            self.world.at(self._delay_ms(), self.world.deliver, source, source_life, failed)

    def _send_response(self, host: Host, outbound: OutboundResponse) -> None:
        waiting = host.waiting_replies.pop(outbound.request_id)
        response = read_files(host, outbound.response)
        if waiting.source is None:
            self.world.operator.answered(host, waiting.request, response)
            return
        self.world.checkers.response_leaves(host, waiting.request, response)
        self.world.failing_disks.response_leaves(host, waiting.request, response)
        self.world.traps.response_leaves(host, waiting.request, response)
        if self.world.options.uses_wire:
            response = response_over_wire(waiting.request, response, waiting.version)
        answer = ResponseReceived(waiting.correlation_id, waiting.destination_id, response)
        for _ in range(self._copies(host.node_id, waiting.source.node_id)):
            self.world.at(self._delay_ms(), self.world.deliver, waiting.source, waiting.source_life, answer)

    # Chance

    def _copies(self, source_id: int, target_id: int) -> int:
        self.messages += 1
        if self.cuts and self.is_cut(source_id, target_id):
            return 0
        if self._is_lost():
            return 0
        weather = self.weather
        return 2 if weather.duplicates and self._random() < weather.duplicates else 1

    def _is_lost(self) -> bool:
        return self.weather.loss > 0 and self._random() < self.weather.loss

    def _delay_ms(self) -> int:
        return 1 + int(self._random() * self.weather.delay_ms_max)


def read_files(host: Host, response: Response) -> Response:
    """What the driver does for the core: the slice of the log, or of a snapshot, that an answer names becomes bytes."""
    if isinstance(response, FetchSnapshotResponse):
        return _read_snapshot(host, response, response.data)
    if not isinstance(response, FetchResponse) or not isinstance(response.records, LogSlice):
        return response
    data = host.disk.read(response.records.start_offset, response.records.max_bytes)
    return FetchResponse(
        leader_id=response.leader_id,
        leader_epoch=response.leader_epoch,
        leader_endpoints=response.leader_endpoints,
        high_watermark=response.high_watermark,
        log_start_offset=response.log_start_offset,
        records=data,
    )


def _read_snapshot(
    host: Host, response: FetchSnapshotResponse, asked: SnapshotSlice | bytes
) -> FetchSnapshotResponse:
    if not isinstance(asked, SnapshotSlice):
        return response
    snapshot = host.disk.snapshots.get(asked.snapshot_id)
    if snapshot is None:
        return replace(response, error=ErrorCode.snapshot_not_found, data=b"")
    size = len(snapshot.data)
    if asked.position >= size:
        return replace(response, error=ErrorCode.position_out_of_range, data=b"")
    return replace(response, size=size, data=snapshot.data[asked.position : asked.position + asked.max_bytes])
