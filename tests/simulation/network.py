"""The network between the hosts of a quorum: requests and responses of the Raft core over `tests.simulation.links`."""

from dataclasses import replace
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
from tests.simulation.links import Links

if TYPE_CHECKING:
    from tests.simulation.world import World


class Network(Links):
    def __init__(self, world: "World") -> None:
        super().__init__(world, world.seed ^ 0x0E7, world.options.delay_ms_max)
        self.world = world

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
        for _ in range(self.copies(host.node_id, target.node_id)):
            self.world.at(self.delay_ms(), self._request_arrives, host, host.life, target, outbound, version)

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
        for _ in range(self.copies(target.node_id, source.node_id)):
            self.world.at(self.delay_ms(), self.world.deliver, source, source_life, answer)

    def _refuse(
        self,
        source: Host,
        source_life: int,
        outbound: OutboundRequest,
        reason: FailureReason = FailureReason.DISCONNECTED,
    ) -> None:
        """No process listens there; like every message, this notice may be lost."""
        failed = RequestFailed(outbound.correlation_id, outbound.destination_id, reason)
        if not self.is_lost():
            self.world.at(self.delay_ms(), self.world.deliver, source, source_life, failed)

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
        for _ in range(self.copies(host.node_id, waiting.source.node_id)):
            self.world.at(self.delay_ms(), self.world.deliver, waiting.source, waiting.source_life, answer)


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
