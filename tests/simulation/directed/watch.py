"""What the stage checks beside the world's checkers: voter sets, reads, state machines' notifications, time limits."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from kquorum.raft.inputs import RequestReceived
from kquorum.raft.messages import ChangeVotersResponse, FetchRequest, Response
from kquorum.raft.node import RaftNode
from kquorum.raft.ready import ReadConfirmed, ReadRefused, Ready
from kquorum.raft.roles import Leader
from kquorum.raft.voters import BEFORE_THE_LOG, VotersAt
from kquorum.wire.messages.error_codes import ErrorCode
from tests.simulation.errors import InvariantBroken
from tests.simulation.hosts import Host

if TYPE_CHECKING:
    from tests.simulation.directed.setting import Setting

# How much later than it said it would wait a Fetch may be answered.
PATIENCE_MS = 100


@dataclass(slots=True)
class Floor:
    """All below this was committed when the read began; `outcome` is None until the replica answers."""

    offset: int
    outcome: ReadConfirmed | ReadRefused | None = None


class Watch:
    def __init__(self, world: "Setting") -> None:
        self.world = world
        self.reads: dict[int, Floor] = {}
        self.arrivals: dict[tuple[int, int, int], int] = {}
        self.high_watermarks: dict[tuple[int, int], int] = {}

    # Reads

    def read_begun(self, read_id: int) -> None:
        self.reads[read_id] = Floor(self.world.checkers.committed_end)

    def is_answered(self, read_id: int) -> bool:
        return self.reads[read_id].outcome is not None

    def ready_taken(self, node: RaftNode, ready: Ready) -> None:
        for outcome in ready.reads:
            read = self.reads[outcome.read_id]
            read.outcome = outcome
            if isinstance(outcome, ReadConfirmed) and outcome.offset < read.offset:
                raise InvariantBroken(
                    f"a linearizable read at node {node.node_id} answers {outcome.offset}, "
                    f"though {read.offset} was committed before it began"
                )
        self._check_told_leader(node, ready)

    def _check_told_leader(self, node: RaftNode, ready: Ready) -> None:
        """KAFKA-15345: a state machine has seen all committed records when it learns that it leads."""
        role = node.replica.role
        if ready.leader is None or ready.leader.leader_id != node.node_id or not isinstance(role, Leader):
            return
        if node.high_watermark <= role.epoch_start_offset:
            raise InvariantBroken(
                f"node {node.node_id} tells its state machine to lead epoch {node.leader_epoch}, "
                f"with nothing committed"
            )

    # Changes of the voters

    def answered(self, host: Host, response: Response) -> None:
        """A client that learns that a change was made can rely on it."""
        if not isinstance(response, ChangeVotersResponse) or response.error is not ErrorCode.none:
            return
        node = host.node
        if node is not None and node.replica.voter_history.voters_offset >= self.world.checkers.committed_end:
            raise InvariantBroken(f"node {host.node_id} reports a change of the voters that is not committed")

    # Fetches

    def request_arrived(self, host: Host, event: RequestReceived) -> None:
        if isinstance(event.request, FetchRequest):
            deadline_ms = self.world.now_ms + event.request.max_wait_ms + PATIENCE_MS
            self.arrivals[(host.node_id, host.life, event.request_id)] = deadline_ms

    def forgive(self, host: Host) -> None:
        """This process could not answer in time."""
        self.arrivals = {key: due_ms for key, due_ms in self.arrivals.items() if key[0] != host.node_id}

    def check_waiting(self) -> None:
        """Every Fetch is answered in time (KAFKA-15100 and kin), as long as its server lives."""
        now_ms = self.world.now_ms
        for host in self.world.hosts.values():
            if host.node is None or host.paused_until_ms > now_ms:
                continue
            if host.writes_state_until_ms:
                self.forgive(host)
                continue
            for request_id in host.waiting_replies:
                if self.arrivals.get((host.node_id, host.life, request_id), now_ms) < now_ms:
                    raise InvariantBroken(f"node {host.node_id} left a Fetch without an answer")

    # Voters and high watermark

    def after_turn(self, host: Host, node: RaftNode) -> None:
        self._check_high_watermark(host, node)
        if self.world.is_dynamic:
            sets = self.world.voter_sets(host)
            self._check_voters(node, sets)
            self._check_removed_leader(node, sets)

    def _check_high_watermark(self, host: Host, node: RaftNode) -> None:
        life = (host.node_id, host.life)
        before = self.high_watermarks.get(life, -1)
        if node.high_watermark < before:
            raise InvariantBroken(
                f"the high watermark of node {host.node_id} fell from {before} to {node.high_watermark}"
            )
        self.high_watermarks[life] = node.high_watermark

    def _check_voters(self, node: RaftNode, sets: list[VotersAt]) -> None:
        """The newest set in the log is in force, no two are uncommitted, each is one change from the one before."""
        if sets and node.voters != sets[-1].voters:
            raise InvariantBroken(
                f"node {node.node_id} counts voters {node.voters.ids}, its log says {sets[-1].voters.ids}"
            )
        committed_end = self.world.checkers.committed_end
        if len([entry for entry in sets if entry.offset >= committed_end]) > 1:
            raise InvariantBroken(f"the log of node {node.node_id} has two uncommitted voter sets")
        for before, after in pairwise(entry for entry in sets if entry.offset > BEFORE_THE_LOG):
            gone, new = before.voters.keys - after.voters.keys, after.voters.keys - before.voters.keys
            if len(gone) > 1 or len(new) > 1:
                raise InvariantBroken(
                    f"voters went from {before.voters.ids} to {after.voters.ids} at offset {after.offset} in one step"
                )

    def _check_removed_leader(self, node: RaftNode, sets: list[VotersAt]) -> None:
        role = node.replica.role
        if not isinstance(role, Leader) or node.high_watermark <= role.epoch_start_offset:
            return
        newest = sets[-1]
        if newest.offset < node.high_watermark and not newest.voters.contains(node.replica.key):
            raise InvariantBroken(f"node {node.node_id} leads although its removal is committed")
