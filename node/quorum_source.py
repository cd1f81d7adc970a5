"""A node's replica as its gRPC service `Quorum` uses it."""

from collections.abc import Iterator
from dataclasses import replace

from kquorum.metadata.grpc.quorum.service import TransferRefused
from kquorum.metadata.grpc.source import LogUnreadable, NotTheLeader
from kquorum.metadata.state_hash.comparison import StateComparison
from kquorum.node.quorum_member import QuorumMember
from kquorum.raft.adapters.election_log import read_role_events
from kquorum.raft.elections_history import LeaderChangeAt, RoleEvent, leader_change_at
from kquorum.raft.errors import NotLeaderError
from kquorum.raft.messages import DescribeQuorumRequest, DescribeQuorumResponse
from kquorum.wire.log_batch import LogBatch, parse_batches
from kquorum.wire.record_batch import read_batch_header


class NodeQuorumSource:
    """Implements metadata.grpc.quorum.service.QuorumSource."""

    def __init__(self, member: QuorumMember) -> None:
        self._member = member

    @property
    def node_id(self) -> int:
        return self._member.driver.node_id

    @property
    def leader_epoch(self) -> int:
        return self._member.driver.leader_epoch

    @property
    def states(self) -> StateComparison:
        return self._member.states.comparison

    async def describe_quorum(self) -> DescribeQuorumResponse:
        try:
            response = await self._member.driver.ask(DescribeQuorumRequest())
        except NotLeaderError:
            raise NotTheLeader(f"node {self.node_id} is stopping") from None
        assert isinstance(response, DescribeQuorumResponse), response
        if response.error.value:  # it does not lead, and names only the leader
            return replace(response, high_watermark=self._member.driver.high_watermark)
        return response

    async def transfer_leadership(self, target_id: int) -> None:
        what = f"a transfer of leadership to node {target_id}"
        if self._member.driver.leader_id != self.node_id:
            raise NotTheLeader(self._member.who_leads(what))
        try:
            response = await self._member.driver.transfer_leadership(target_id)
        except NotLeaderError:
            raise NotTheLeader(self._member.who_leads(what)) from None
        if response.error.value:
            raise TransferRefused(response.message or response.error.name.upper())

    def role_events(self) -> Iterator[RoleEvent]:
        return read_role_events(self._member.metadata_log)

    def leader_changes(self, from_epoch: int) -> Iterator[LeaderChangeAt]:
        """One LeaderChange opens each epoch of the log; the batch before it is the last that its forerunner wrote."""
        log = self._member.log
        for epoch, start_offset in log.summary().epochs:
            if epoch < from_epoch or start_offset >= self._member.driver.high_watermark:
                continue
            is_first = start_offset <= log.summary().log_start_offset
            previous = None if is_first else self._batch_at(start_offset - 1)
            previous_ms = None if previous is None else read_batch_header(previous.data).max_timestamp_ms
            change = leader_change_at(self._batch_at(start_offset), previous_ms)
            if change is not None:
                yield change

    def _batch_at(self, offset: int) -> LogBatch:
        batches = parse_batches(bytes(self._member.log.read(offset, 1)))
        if not batches:
            raise LogUnreadable(f"the log of node {self.node_id} cannot be read at offset {offset}")
        return batches[0]
