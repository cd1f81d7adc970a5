"""What every node has: a replica of the metadata log, its files, its driver, and its connections to the quorum."""

import logging
import random
from collections.abc import Callable, Mapping

from kquorum.metadata.adapters.controller_channel import ControllerAddress, ControllerChannel
from kquorum.metadata.adapters.snapshot_manager import SnapshotManager
from kquorum.network.requests import Reply, RequestContext
from kquorum.network.security.client_security import ClientSecurity
from kquorum.node.config.model import NodeConfig
from kquorum.node.endpoints import bootstrap_endpoints
from kquorum.node.fence import FenceWatch
from kquorum.node.folders import NodeFolders
from kquorum.node.foreign_cluster import ForeignClusters
from kquorum.node.leader_watch import LeaderWatch, who_is_missing, why_no_election
from kquorum.node.observability.latency import ElectionMeter
from kquorum.node.observed_state_machine import LeaderObserver, ObservedStateMachine
from kquorum.node.peers import PeerWatch
from kquorum.node.replica_files import ReplicaFiles
from kquorum.node.replica_settings import (
    OBSERVER_FLUSH_INTERVAL_MS,
    new_replica,
    snapshot_settings,
    static_voters_of,
)
from kquorum.node.security import controller_client
from kquorum.node.state_watch import StateWatch
from kquorum.node.voter_watch import VoterWatch
from kquorum.raft.adapters.clock import MonotonicWallClock
from kquorum.raft.adapters.driver import RaftDriver
from kquorum.raft.adapters.election_log import ElectionLog
from kquorum.raft.adapters.kafka_codec.codec import KafkaRequest
from kquorum.raft.adapters.raft_requests import RaftRequests
from kquorum.raft.adapters.transport import KafkaTransport, endpoints_of
from kquorum.raft.messages import NO_LEADER
from kquorum.raft.ports import StateMachine
from kquorum.raft.ready import RoleChanged, VotersChanged
from kquorum.raft.replica import FIRST_BOOTSTRAP_ID
from kquorum.raft.roles import Follower, Leader
from kquorum.raft.voters import ZERO_DIRECTORY

log = logging.getLogger("node.quorum_member")

# How long a leader that leaves waits for its successor, in election timeouts: the successor it names begins at once.
LEAVE_TIMEOUT_IN_ELECTIONS = 2

Fatal = Callable[[Exception], None]


class QuorumMember:
    """Made on the event loop, from the node's files; `start` it with the state machine that its log drives."""

    def __init__(
        self, config: NodeConfig, folders: NodeFolders, clock: MonotonicWallClock, fatal: Fatal
    ) -> None:
        """Recovers the log; raises LogCorrupted, QuorumStateDamaged, StorageFailed or FsyncFailed."""
        self.config = config
        self.clock = clock
        self.random_source = random.SystemRandom()
        self.cluster_id = folders.cluster_id
        self.metadata_log = folders.metadata_log
        static_voters = static_voters_of(config)
        files = ReplicaFiles(config, folders, static_voters, lambda: self.driver.in_force)
        self.log, self._repair = files.log, files.repair
        self.node = new_replica(config, folders, files, static_voters, self.random_source, clock.now_ms())
        has_history = self.node.leader_epoch > 0 or self.log.end_offset > 0
        self._fence = FenceWatch(config.metadata_log_dir, self.node.leader_epoch, has_history=has_history)
        self._elections, self.election_meter = ElectionLog(folders.metadata_log), ElectionMeter()
        self.driver = RaftDriver(
            self.node,
            self.log,
            files.state_store,
            clock.now_ms,
            on_fatal=fatal,
            on_role_change=self._handle_role_change,
            on_voters_changed=self._handle_voters,
            on_caught_up=lambda: self._repair.handle_caught_up(self.driver.write_on_disk),
            snapshots=files.snapshots(self._handle_unsound_snapshot),
            space=files.space,
            flush_interval_ms=0 if config.is_controller else OBSERVER_FLUSH_INTERVAL_MS,
        )
        self.snapshots = SnapshotManager(
            folders.metadata_log, snapshot_settings(config), self.driver, self.log, clock.now_ms, fatal
        )
        self.states = StateWatch(config.node_id, clock.now_ms)
        self._leader_watch = LeaderWatch(self.is_led, self._who_is_missing)
        self._voter_watch = VoterWatch(
            config.node_id,
            config.controller_quorum_fetch_timeout_ms,
            folders.metadata_directory_id if config.is_controller else ZERO_DIRECTORY,
            joins_by_itself=config.controller_quorum_auto_join_enable,
        )
        self._security = controller_client(config)
        self._foreign = ForeignClusters(self.cluster_id, config.node_id, clock.now_ms, self._security)
        self._peers = PeerWatch(self.driver.receive, self._handle_foreign_peer, self._why_unreachable)
        endpoints = endpoints_of(static_voters, bootstrap_endpoints(config))
        self._transport = KafkaTransport(
            config.node_id,
            endpoints,
            config.controller_quorum_request_timeout_ms,
            self._peers.receive,
            annotation=self.states.annotation,
            security=self._security,
        )
        self._requests = RaftRequests(
            endpoints=endpoints,
            receive=self.driver.receive,
            on_annotation=self.states.handle_annotation,
            quorum_annotation=self.states.quorum_annotation,
        )
        self._channels: list[ControllerChannel] = []
        self._controller_versions: Mapping[int, tuple[int, int]] | None = None
        self.leader_observers: list[LeaderObserver] = []
        self._watched: ObservedStateMachine | None = None
        self._disk_is_free = True

    @property
    def security(self) -> ClientSecurity:
        """Of this node's connections to controllers."""
        return self._security

    def handle_raft(self, context: RequestContext, request: KafkaRequest, reply: Reply) -> None:
        """The serving side of the quorum's APIs."""
        self._foreign.look_at(context, request)
        self._requests.handle(context, request, reply)

    def start(self, state_machine: StateMachine) -> None:
        watched = self._watched = ObservedStateMachine(state_machine, self.leader_observers, self.snapshots)
        self.snapshots.start()
        self.driver.start(watched, self._transport, self._requests)
        self._leader_watch.start()

    def channel(
        self, purpose: str, *, retry_timeout_ms: int, request_timeout_ms: int | None = None
    ) -> ControllerChannel:
        """A channel to the active controller, which learns of leader changes."""
        channel = ControllerChannel(
            self._find_controller,
            client_id=f"{purpose}-{self.config.node_id}",
            request_timeout_ms=request_timeout_ms or self.config.controller_quorum_request_timeout_ms,
            retry_timeout_ms=retry_timeout_ms,
            security=self._security,
        )
        self._channels.append(channel)
        self.leader_observers.append(channel.handle_leader_change)
        return channel

    @property
    def controller_versions(self) -> Mapping[int, tuple[int, int]] | None:
        """The versions of each API that the active controller offers, as it last said on any channel; None before."""
        for channel in self._channels:
            if channel.controller_versions is not None:
                self._controller_versions = channel.controller_versions
                break
        return self._controller_versions

    @property
    def idle_interval_ms(self) -> int:
        """A quorum that has nothing to do commits all the same, so often; 0: it does not."""
        return self.config.metadata_max_idle_interval_ms

    def now_ms(self) -> int:
        return self.clock.now_ms()

    def ms_since_commit(self) -> int | None:
        """How long ago something was committed, as this replica heard; None before it heard of any."""
        last_ms = None if self._watched is None else self._watched.last_commit_ms
        return None if last_ms is None else self.clock.now_ms() - last_ms

    def is_led(self) -> bool:
        """Whether this node leads, or has heard from the leader."""
        role = self.node.replica.role
        return isinstance(role, Leader) or (isinstance(role, Follower) and role.has_fetched)

    @property
    def leaders_seen(self) -> int:
        """How often this replica has heard of a leader, itself included."""
        return 0 if self._watched is None else self._watched.leaders_seen

    @property
    def snapshots_loaded(self) -> int:
        return 0 if self._watched is None else self._watched.snapshots_loaded

    async def leave(self) -> None:
        """Leave the quorum in good order: a leader waits for its successor, but not forever, and needs its listener."""
        for watch in (self._leader_watch, self._voter_watch, self._foreign):
            watch.close()
        for channel in self._channels:
            channel.close()
        await self.snapshots.close()
        if self._watched is not None:
            self._disk_is_free = await self.driver.stop(
                LEAVE_TIMEOUT_IN_ELECTIONS * self.config.controller_quorum_election_timeout_ms
            )
        self._requests.close()
        self._transport.close()

    def close(self) -> None:
        if self._disk_is_free:
            self.log.close()

    def who_leads(self, what: str) -> str:
        """A refusal of what only the leader can do."""
        leader_id = self.driver.leader_id
        if leader_id in (NO_LEADER, self.config.node_id):  # one that resigned remembers itself
            return f"only the leader can serve {what}; node {self.config.node_id} knows of none at the moment"
        place = self.driver.endpoint_of(leader_id)
        where = "" if place is None else f" at {place.host}:{place.port}"
        return f"only the leader can serve {what}, which is node {leader_id}{where}, not node {self.config.node_id}"

    def _find_controller(self) -> ControllerAddress | None:
        leader_id = self.driver.leader_id
        endpoint = None if leader_id < 0 else self.driver.endpoint_of(leader_id)
        return None if endpoint is None else ControllerAddress(leader_id, endpoint.host, endpoint.port)

    def _handle_role_change(self, change: RoleChanged) -> None:
        self.election_meter.handle_role(self.clock.now_ms(), change.role)
        self._elections.record(self.clock.now_ms(), self.config.node_id, change, self.driver.leader_id)
        self._leader_watch.handle_role(change, self.driver.leader_id)
        if self.config.is_controller and change.role == "follower":
            fenced = self._fence.look_at(change.epoch, self.driver.leader_id)
            if fenced is not None:
                raise fenced  # the driver takes no further answer, which might cut the log
        self.states.handle_role_change()

    def _handle_voters(self, change: VotersChanged) -> None:
        self._voter_watch.handle(self.clock.now_ms(), self.driver, change)

    def _handle_unsound_snapshot(self) -> None:
        self.snapshots.handle_unsound()

    def _handle_foreign_peer(self, peer_id: int) -> None:
        self._foreign.was_refused_by(peer_id, self.driver.endpoint_of(peer_id))

    def _why_unreachable(self, peer_id: int) -> str | None:
        return self._transport.why_unreachable(peer_id)

    def _who_is_missing(self) -> str:
        """Why this node may know no leader; a replica that lost its state is of no help to any."""
        hopeless = why_no_election(self.node.leader_epoch)
        if hopeless is not None:
            return hopeless
        servers = range(len(self.node.replica.config.bootstrap_servers))
        ids = tuple(FIRST_BOOTSTRAP_ID - index for index in servers)
        missing = who_is_missing(
            self.config.node_id, self.driver.voters, ids, self.driver.endpoint_of, self._peers.last_from
        )
        return missing + self._repair.why_it_does_not_vote()
