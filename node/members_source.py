"""What a node tells of itself, and as the active controller of the brokers, over gRPC."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from kquorum.metadata.grpc.quorum.service import BrokerLife, HostFacts, NodeStatus
from kquorum.metadata.grpc.source import NotTheLeader
from kquorum.metadata.members import BrokerProgress, progress_of_brokers
from kquorum.node.host_facts import host_facts, wall_clock_ms
from kquorum.node.observability.health import why_not_ready
from kquorum.node.running_node import RunningNode
from kquorum.raft.errors import NotLeaderError


class NodeMembersSource:
    """Implements metadata.grpc.quorum.service.MembersSource."""

    def __init__(self, node: RunningNode) -> None:
        self._node = node
        self._looking: asyncio.Task[HostFacts] | None = None

    def describe_node(self) -> NodeStatus:
        node, freshness = self._node, self._node.commits.freshness()
        return NodeStatus(
            node_id=node.config.node_id,
            cluster_id=node.member.cluster_id,
            roles=node.config.process_roles,
            reason=why_not_ready(
                freshness, None if node.broker is None else node.broker.lifecycle, node.clock.now_ms()
            ),
            is_cut_off=freshness.is_cut_off,
            ms_since_commit=freshness.ms_since_commit,
            provenance=node.committed_image.provenance,
            leader_id=node.member.driver.leader_id,
            broker=self._life(),
        )

    async def host_facts(self) -> HostFacts:
        """One look at a time, in a thread: a disk that does not answer holds up neither the node nor, however many
        clients ask, more than one thread."""
        if self._looking is None or self._looking.done():
            config = self._node.config
            folders = dict.fromkeys((config.metadata_log_dir, *config.log_dirs))
            self._looking = asyncio.create_task(asyncio.to_thread(host_facts, folders))
        found = await asyncio.shield(self._looking)
        return replace(found, now_ms=wall_clock_ms())

    def leader_epoch(self) -> int:
        return self._node.member.driver.leader_epoch

    def brokers(self) -> Sequence[BrokerProgress]:
        role = self._node.controller
        if role is None or not role.controller.is_active:
            raise self._not_the_leader()
        return progress_of_brokers(
            self._node.clock.now_ms(),
            role.controller.committed_image,
            role.controller.contact_of,
            self._reported(),
        )

    def committed_offset(self) -> int:
        return self._node.committed_image.provenance.last_contained_offset

    async def last_committed_offset(self) -> int:
        try:
            await self._node.member.driver.read_linearizable()
        except NotLeaderError:
            raise self._not_the_leader() from None
        return self.committed_offset()

    def _reported(self) -> dict[int, int]:
        """What came with Fetches, and of a broker in this very process what it has."""
        reported: dict[int, int] = {}
        for report in self._node.member.states.comparison.reports:
            known = reported.get(report.replica.id, -1)
            reported[report.replica.id] = max(known, report.newest.offset)
        if self._node.broker is not None:
            reported[self._node.config.node_id] = self._node.broker.applied_offset
        return reported

    def _life(self) -> BrokerLife | None:
        if self._node.broker is None:
            return None
        lifecycle = self._node.broker.lifecycle
        return BrokerLife(
            state=lifecycle.state.value, epoch=lifecycle.broker_epoch, is_fenced=lifecycle.is_fenced
        )

    def _not_the_leader(self) -> NotTheLeader:
        return NotTheLeader(self._node.member.who_leads("how far the brokers follow"))
