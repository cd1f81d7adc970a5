"""What must be true after every event (design, "What correct means"); each breach raises with the facts."""

from typing import TYPE_CHECKING

from kquorum.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from kquorum.raft.node import RaftNode
from kquorum.raft.ready import QuorumState, Ready, RoleChanged
from kquorum.raft.roles import Follower, Leader
from kquorum.raft.voters import ReplicaKey
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.simulation.committed import CommittedLog
from tests.simulation.errors import InvariantBroken
from tests.simulation.hosts import Host
from tests.simulation.log_checks import LogChecks
from tests.simulation.membership_checks import may_stand
from tests.simulation.snapshot_checks import SnapshotChecks

if TYPE_CHECKING:
    from tests.simulation.world import World

# Turns in one second of the world which a replica may take because of its own timer, and to no effect, beside those
# in which it looks at its entry among the voters.
IDLE_TURNS_A_SECOND = 5
# A peer that does not answer is asked again after the back-off of 20 ms; some clocks run 20% fast.
TIMER_TURNS_A_PEER = 60


class Checkers:
    """Watches every replica of a run: `log` its log and what is committed, `snapshots` its snapshots."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.log = LogChecks(world)
        self.snapshots = SnapshotChecks(self.log.committed)
        self.leaders: dict[int, tuple[Host, int]] = {}
        self.votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}
        self.epochs: dict[ReplicaKey, int] = {}
        self.told: dict[ReplicaKey, tuple[int, int]] = {}
        """The newest high watermark that each replica was sent, and the epoch of the leader that sent it."""
        self.idle_turns: dict[tuple[int, int], int] = {}
        self.max_idle_turns = 0
        self.timer_turns: dict[tuple[int, int], int] = {}
        self.stable_epoch: int | None = None
        self.stable_until_ms = 0

    @property
    def committed(self) -> CommittedLog:
        return self.log.committed

    @property
    def committed_end(self) -> int:
        return self.log.committed.end_offset

    def forget_life(self, host: Host) -> None:
        """A replica died: its high watermark is relearned, its epoch is not."""
        self.log.forget_life(host)

    def forget_epoch(self, host: Host) -> None:
        """Its disk was emptied: this replica begins again, but what it promised still counts."""
        self.epochs.pop(host.key, None)

    # Turns

    def after_ready(self, host: Host, node: RaftNode, ready: Ready) -> None:
        if host.is_timer_turn:
            host.is_timer_turn = False
            self._check_idleness(host, ready)
        self._check_state(host, node)
        self.snapshots.core_knows(node)
        role = node.replica.role
        if isinstance(role, Leader):
            self._check_single_leader(host, node, role)
        for outbound in ready.requests:
            _check_request(host, node, outbound.request)
        if ready.high_watermark is not None:
            self.log.commits(host, node, ready.high_watermark)

    def _check_idleness(self, host: Host, ready: Ready) -> None:
        """A replica whose timer fires and leads to nothing is on its way to a busy loop (KAFKA-17751); and even one
        that retries whatever it can has no more to do than ask everybody again after each back-off."""
        second = (host.node_id, self.world.now_ms // 1000)
        self.timer_turns[second] = self.timer_turns.get(second, 0) + 1
        if self.timer_turns[second] > 30 + TIMER_TURNS_A_PEER * len(self.world.hosts):
            raise InvariantBroken(
                f"node {host.node_id} wakes up {self.timer_turns[second]} times in a second"
            )
        if ready.requests or ready.responses or ready.role_changes or ready.append:
            return
        key = (host.node_id, self.world.now_ms // 1000)
        turns = self.idle_turns[key] = self.idle_turns.get(key, 0) + 1
        self.max_idle_turns = max(self.max_idle_turns, turns)
        if turns > IDLE_TURNS_A_SECOND + 1300 // self.world.options.fetch_timeout_ms:
            raise InvariantBroken(
                f"node {host.node_id} ({host.node.role if host.node else '-'}) spins: "
                f"{turns} idle turns within a second"
            )

    def _check_state(self, host: Host, node: RaftNode) -> None:
        """The epoch never goes back, over all lives, and what is on disk is what the replica acts upon."""
        key, epoch = node.replica.key, node.leader_epoch
        if epoch < self.epochs.get(key, 0):
            raise InvariantBroken(f"node {host.node_id} went back from epoch {self.epochs[key]} to {epoch}")
        self.epochs[key] = epoch
        if node.replica.has_lost_its_state:
            return
        if host.disk.state != node.replica.state:
            raise InvariantBroken(
                f"node {host.node_id} acts upon {node.replica.state}, but its disk says {host.disk.state}"
            )

    def _check_single_leader(self, host: Host, node: RaftNode, role: Leader) -> None:
        life = (host, host.life)
        other = self.leaders.get(node.leader_epoch)
        if other is None:
            self.leaders[node.leader_epoch] = life
            self.log.leader_begins(host, node)
        elif other != life:
            raise InvariantBroken(
                f"nodes {other[0].node_id} and {host.node_id} both lead epoch {node.leader_epoch}"
            )

    # Roles

    def is_settled(self, leader: Host) -> bool:
        """Whether every other voter has fetched from this leader, so that none of them would help to disturb it."""
        if leader.node is None or self.world.now_ms <= self.stable_until_ms:
            return False
        for voter_id in leader.node.voters.others(leader.node_id):
            node = self.world.hosts[voter_id].node
            if node is None or node.leader_id != leader.node_id:
                return False
            role = node.replica.role
            if not isinstance(role, Follower) or not role.has_fetched:
                return False
        return True

    def expect_stable(self, leader: Host, until_ms: int) -> None:
        assert leader.node is not None
        self.world.tally["leaders that must stay"] += 1
        self.stable_epoch, self.stable_until_ms = leader.node.leader_epoch, until_ms

    def role_taken(self, host: Host, change: RoleChanged) -> None:
        """A candidate is a voter in its own view, or was until a record that may not be committed
        (KAFKA-17067), and no node disturbs a leader that a majority hears."""
        node = host.node
        is_expected_stable = self.stable_epoch is not None and self.world.now_ms < self.stable_until_ms
        if is_expected_stable and self.world.is_faulty and change.epoch > (self.stable_epoch or 0):
            raise InvariantBroken(f"node {host.node_id} disturbs the leader of epoch {self.stable_epoch}")
        if change.role not in ("prospective", "candidate", "leader") or node is None:
            return
        if node.replica.has_lost_its_state:
            raise InvariantBroken(f"node {host.node_id} lost its state and became {change.role}")
        if node.replica.installing is not None:
            raise InvariantBroken(
                f"node {host.node_id} became {change.role} while its log was being replaced"
            )
        if not host.can_be_voter or not may_stand(host, node.voters, node.high_watermark):
            raise InvariantBroken(f"node {host.node_id} is no voter and became {change.role}")

    # Delivery and reads

    def delivered(self, host: Host, batch: LogBatch) -> None:
        """Each committed batch once, in order, without a gap."""
        if batch.base_offset != host.applied:
            raise InvariantBroken(
                f"node {host.node_id} was handed offset {batch.base_offset} after {host.applied}"
            )

    def committed_read(self, host: Host) -> None:
        if host.applied > self.committed_end:
            raise InvariantBroken(f"node {host.node_id} shows what is not committed")

    def local_read(self, host: Host) -> None:
        node = host.node
        if node is not None and node.log_end_offset < host.applied and host.damaged_epoch is None:
            raise InvariantBroken(f"the log of node {host.node_id} ends before what it has applied")

    # Messages

    def response_leaves(self, host: Host, request: Request, response: Response) -> None:
        """A voter votes once an epoch, crashes or not, and its word is on disk before it is given. A leader tells no
        replica a lower high watermark than an earlier leader did: a Kafka broker ends its process over that."""
        if isinstance(request, FetchRequest) and isinstance(response, FetchResponse):
            self._told(host, request.replica, response)
        if not isinstance(request, VoteRequest) or not isinstance(response, VoteResponse):
            return
        if request.pre_vote or not response.vote_granted:
            return
        self._voted(host.key, request.replica_epoch, request.candidate)
        if not _remembers_vote(host.disk.state, request.replica_epoch, request.candidate):
            raise InvariantBroken(
                f"node {host.node_id} grants node {request.candidate.id} its vote in epoch "
                f"{request.replica_epoch}, but its disk says {host.disk.state}"
            )

    def _told(self, host: Host, replica: ReplicaKey, response: FetchResponse) -> None:
        epoch, high_watermark = self.told.get(replica, (-1, -1))
        if (
            response.error is not ErrorCode.none
            or response.high_watermark < 0
            or response.leader_epoch < epoch
        ):
            return
        if response.high_watermark < high_watermark:
            raise InvariantBroken(
                f"node {host.node_id} tells {replica.id} the high watermark {response.high_watermark} in epoch "
                f"{response.leader_epoch}, which was told {high_watermark} in epoch {epoch}"
            )
        self.told[replica] = (response.leader_epoch, response.high_watermark)

    def _voted(self, voter: ReplicaKey, epoch: int, candidate: ReplicaKey) -> None:
        earlier = self.votes.setdefault((voter, epoch), candidate)
        if earlier != candidate:
            raise InvariantBroken(
                f"node {voter.id} voted for {earlier.id} and {candidate.id} in epoch {epoch}"
            )


def _remembers_vote(state: QuorumState | None, epoch: int, candidate: ReplicaKey) -> bool:
    """Whether a voter that starts with this state gives no other candidate its vote in `epoch`: in one turn it may have
    voted and gone on to a newer epoch."""
    if state is None:
        return False
    return state.leader_epoch > epoch or (state.leader_epoch == epoch and state.voted == candidate)


def _check_request(host: Host, node: RaftNode, request: Request) -> None:
    """A replica's claims are on its disk before they are sent."""
    state = host.disk.state
    if node.replica.has_lost_its_state and not isinstance(request, VoteRequest | BeginQuorumEpochRequest):
        return
    assert state is not None
    match request:
        case VoteRequest(pre_vote=False):
            is_true = _remembers_vote(state, request.replica_epoch, node.replica.key)
        case VoteRequest():
            is_true = state.leader_epoch >= request.replica_epoch
        case FetchRequest() | FetchSnapshotRequest():
            is_true = state.leader_epoch >= request.current_leader_epoch
        case BeginQuorumEpochRequest() | EndQuorumEpochRequest():
            said = (request.leader_epoch, host.node_id)
            is_true = (
                state.leader_epoch > request.leader_epoch or (state.leader_epoch, state.leader_id) == said
            )
        case _:
            is_true = True
    if not is_true:
        raise InvariantBroken(f"node {host.node_id} sends {request}, but its disk says {state}")
