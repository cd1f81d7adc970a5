"""Reads a node's figures off it: nothing is counted for it that the node does not count anyway."""

from collections.abc import Mapping
from dataclasses import fields

from kquorum.network.limits import ServerCounters
from kquorum.node.broker import BrokerRole
from kquorum.node.config.security_keys import GRPC
from kquorum.node.controller import ControllerRole
from kquorum.node.observability.figures import (
    BrokerFigures,
    ControllerFigures,
    Latency,
    NodeFigures,
    QuorumFigures,
)
from kquorum.node.observability.latency import LatencyMeter
from kquorum.node.running_node import RunningNode
from kquorum.raft.replica import Replica
from kquorum.raft.roles import Candidate, Follower, Leader, Unattached
from kquorum.raft.voters import VoterSet


def figures_of(node: RunningNode) -> NodeFigures:
    """As of now; belongs to the node's loop."""
    return NodeFigures(
        node_id=node.config.node_id,
        cluster_id=node.member.cluster_id,
        roles=node.config.process_roles,
        now_ms=node.clock.now_ms(),
        freshness=node.commits.freshness(),
        quorum=_quorum(node),
        controller=None if node.controller is None else _controller(node.controller),
        broker=None if node.broker is None else _broker(node, node.broker),
        image=node.committed_image,
        listeners=_listeners(node),
        request_times=[
            role.request_times.by_kind for role in (node.controller, node.broker) if role is not None
        ],
    )


def _quorum(node: RunningNode) -> QuorumFigures:
    member, replica, now_ms = node.member, node.member.node.replica, node.clock.now_ms()
    newest = replica.log.newest_snapshot
    return QuorumFigures(
        state=quorum_state(replica),
        current_leader=replica.leader_id,
        current_vote=_vote(replica),
        current_epoch=replica.epoch,
        high_watermark=replica.high_watermark,
        log_start_offset=member.log.log_start_offset,
        log_end_offset=member.log.end_offset,
        log_end_epoch=replica.log.last_epoch,
        voters=len(replica.voters),
        unknown_voters=_unknown(replica.voters, node),
        commit_latency=_latency(node.commit_latency, now_ms),
        election_latency=_latency(member.election_meter.latency, now_ms),
        leaders_seen=member.leaders_seen,
        snapshots_loaded=member.snapshots_loaded,
        newest_snapshot_offset=-1 if newest is None else newest.offset,
    )


def quorum_state(replica: Replica) -> str:
    """Kafka's words: one that has voted and follows no leader is "voted", a follower that is no voter "observer"."""
    match replica.role:
        case Unattached() if replica.state.voted is not None:
            return "voted"
        case Follower() if not replica.is_voter:
            return "observer"
        case role:
            return type(role).__name__.lower()


def _vote(replica: Replica) -> int:
    if isinstance(replica.role, Leader | Candidate):
        return replica.key.id
    return -1 if replica.state.voted is None else replica.state.voted.id


def _unknown(voters: VoterSet, node: RunningNode) -> int:
    return sum(node.member.driver.endpoint_of(voter_id) is None for voter_id in voters.ids)


def _latency(meter: LatencyMeter, now_ms: int) -> Latency:
    return Latency(average_ms=meter.average(now_ms), max_ms=meter.maximum(now_ms))


def _controller(role: ControllerRole) -> ControllerFigures:
    controller = role.controller
    return ControllerFigures(
        is_active=controller.is_active,
        last_applied_offset=controller.image.provenance.last_contained_offset,
        error_count=role.fault_count,
        broker_offsets={
            broker_id: contact.metadata_offset
            for broker_id in controller.committed_image.cluster.brokers
            if (contact := controller.contact_of(broker_id)) is not None
        },
    )


def _broker(node: RunningNode, role: BrokerRole) -> BrokerFigures:
    lifecycle = role.lifecycle
    return BrokerFigures(
        broker_id=node.config.node_id,
        state=lifecycle.state,
        broker_epoch=lifecycle.broker_epoch,
        is_fenced=lifecycle.is_fenced,
        previous_session_ends_ms=lifecycle.previous_session_ends_ms,
        skipped_records=node.skipped_records,
        offline_log_dirs=role.offline_log_dirs,
        quotas=role.quotas.figures(node.clock.now_ms()),
        groups=role.group_figures(),
        transactions=role.transaction_figures(),
        data=role.data_figures(),
        throttled_replication=role.throttled_replication(node.clock.now_ms()),
    )


def _listeners(node: RunningNode) -> Mapping[str, Mapping[str, int]]:
    counters: dict[str, ServerCounters] = {name: server.counters for name, server in node.servers}
    if node.grpc_server is not None:
        counters[GRPC.lower()] = node.grpc_server.counters
    return {
        name: {each.name: getattr(counted, each.name) for each in fields(ServerCounters)}
        for name, counted in counters.items()
    }
