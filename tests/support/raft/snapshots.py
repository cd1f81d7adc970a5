"""A replica with snapshots, as a leader that serves them or a follower that comes in through one."""

from collections.abc import Sequence
from dataclasses import replace
from types import UnionType
from typing import Any

from kquorum.raft.inputs import SnapshotPieceWritten, SnapshotReceived
from kquorum.raft.messages import FetchRequest, FetchResponse, FetchSnapshotRequest, FetchSnapshotResponse
from kquorum.raft.ready import OutboundRequest, QuorumState, Ready
from kquorum.raft.voters import QuorumRecord
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch
from tests.support.raft.context import CLUSTER_ID, batch, key_of
from tests.support.raft.dynamic import DynamicContext

LEADER, EPOCH = 2, 2
ID = OffsetAndEpoch(100, 1)
CONTENT = b"as many bytes as a small snapshot has"


class SnapshotContext(DynamicContext):
    """What the adapter does with a snapshot that came in is for the test to say, by `install`. Unless `is_disk_slow`,
    each piece is written at once."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        self.chunks: list[Any] = []
        self.is_disk_slow = False
        super().__init__(*args, **fields)

    def carry_out(self, ready: Ready) -> None:
        super().carry_out(ready)
        self.chunks.extend(ready.snapshot_chunks)
        if not self.is_disk_slow:
            for _ in ready.snapshot_chunks:
                self.feed(SnapshotPieceWritten())

    # Serving

    def ask(self, snapshot_id: OffsetAndEpoch, **fields: Any) -> FetchSnapshotResponse:
        request = FetchSnapshotRequest(
            cluster_id=CLUSTER_ID,
            replica=key_of(2),
            current_leader_epoch=self.node.leader_epoch,
            snapshot_id=snapshot_id,
            position=0,
            max_bytes=2**31 - 1,
        )
        response = self.receive(replace(request, **fields))
        assert isinstance(response, FetchSnapshotResponse)
        return response

    # Following

    def follow_behind(self) -> OutboundRequest:
        """Follow a leader that names a snapshot; answers the first request for it."""
        return self.name_snapshot(self.follow(LEADER, EPOCH))

    def name_snapshot(self, fetch: OutboundRequest, snapshot_id: OffsetAndEpoch = ID) -> OutboundRequest:
        self.answer(fetch, FetchResponse(leader_id=LEADER, leader_epoch=EPOCH, snapshot_id=snapshot_id))
        return self.only_sent(FetchSnapshotRequest)

    def piece(self, outbound: OutboundRequest, data: bytes, **fields: Any) -> Ready:
        """Answer with these bytes, as the leader would unless the test says otherwise."""
        request = outbound.request
        assert isinstance(request, FetchSnapshotRequest)
        response = FetchSnapshotResponse(
            leader_id=LEADER,
            leader_epoch=EPOCH,
            snapshot_id=request.snapshot_id,
            size=len(CONTENT),
            position=request.position,
            data=data,
        )
        return self.answer(outbound, replace(response, **fields))

    def install(self, snapshot_id: OffsetAndEpoch = ID, records: Sequence[QuorumRecord] = ()) -> Ready:
        """The adapter has verified it and dropped the log."""
        self.log.clear()
        self.truncations += 1
        return self.feed(SnapshotReceived(snapshot_id, tuple(records)))

    def only_sent(self, kind: type | UnionType) -> OutboundRequest:
        """The one request that is under way to the leader."""
        sent = [outbound for outbound in self.requests if outbound.destination_id == LEADER]
        self.requests.clear()
        assert len(sent) == 1, sent
        assert isinstance(sent[0].request, kind), sent
        return sent[0]

    def back_off(self) -> None:
        """Wait until the leader may be asked again. Meanwhile it asks another voter, which has no leader."""
        for outbound in self.sent(FetchRequest):
            assert outbound.destination_id != LEADER
            self.fail(outbound)
        self.advance(self.config.retry_backoff_ms)

    def next_fetch(self) -> FetchRequest:
        """What it asks the leader for after the back-off."""
        self.back_off()
        request = self.only_sent(FetchRequest).request
        assert isinstance(request, FetchRequest)
        return request


def leader_with(*snapshots: OffsetAndEpoch, log: Sequence[LogBatch] = (), start: int = 0) -> SnapshotContext:
    """Its log is one of epoch 1, of three records, unless the test brings another; all of it is committed."""
    log = log or [batch(0, 1, count=3)]
    state = QuorumState(leader_epoch=log[-1].leader_epoch)
    context = SnapshotContext(log=log, snapshots=snapshots, log_start_offset=start, state=state)
    context.lead()
    return context
