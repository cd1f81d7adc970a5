"""The stage: what a script can make happen, each a word."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from kquorum.raft.inputs import LogFlushed, ReadRequested
from kquorum.raft.messages import FetchRequest, Request, Response, VoteRequest, VoteResponse
from kquorum.raft.node import RaftNode
from tests.simulation.directed.post import Message, Post, Rule
from tests.simulation.directed.setting import Script
from tests.simulation.disk import SimulatedDisk
from tests.simulation.errors import InvariantBroken
from tests.simulation.hosts import Host

FOREVER_MS = 10**9
# Far from the numbers of the world's own clients.
FIRST_READ = 10**6


class Stage(Post):
    """A world that follows a script: nothing fails unless the script says so."""

    operator: Script
    reads_begun = 0

    # Time

    def run(self, for_ms: int) -> None:
        self.run_until(self.now_ms + for_ms)
        self.watch.check_waiting()

    def until(self, condition: Callable[[], bool], within_ms: int, what: str) -> None:
        bound_ms = self.now_ms + within_ms
        while not condition():
            if self.now_ms >= bound_ms:
                raise InvariantBroken(f"not within {within_ms} ms: {what}")
            self.run(1)

    # What the script does

    def node(self, node_id: int) -> RaftNode:
        node = self.hosts[node_id].node
        assert node is not None, f"node {node_id} does not run"
        return node

    def elect(self, node_id: int, within_ms: int = 10_000) -> None:
        """No other node gets a vote until this node leads."""
        others = self.drop(partial(_is_vote_of_another, node_id))
        self.until(lambda: self.node(node_id).role == "leader", within_ms, f"node {node_id} leads")
        self.end(others)

    def stand(self, node_id: int, within_ms: int = 10_000) -> None:
        """No other node gets a vote until this node is a candidate."""
        others = self.drop(partial(_is_vote_of_another, node_id))
        self.until(lambda: self.node(node_id).role == "candidate", within_ms, f"node {node_id} stands")
        self.end(others)

    def stand_together(self, *nominees: int) -> Rule:
        """Candidates of one epoch, at the start of a quorum; their vote requests are kept in the rule."""
        votes = self.hold(lambda message: isinstance(message.body, VoteRequest) and not message.body.pre_vote)
        others = self.drop(lambda message: _is_by_others(nominees, message))
        answers = self.hold(lambda message: isinstance(message.body, VoteResponse))
        self._until_all(nominees, "prospective")
        self.run(2)
        self.release(answers)
        self._until_all(nominees, "candidate")
        self.run(1)
        self.end(votes, others)
        return votes

    def _until_all(self, node_ids: tuple[int, ...], role: str) -> None:
        self.until(
            lambda: all(self.node(one).role == role for one in node_ids), 5000, f"{node_ids} are {role}"
        )

    def append(self, node_id: int, records: int = 1) -> bool:
        return self.clients.append(self.hosts[node_id], records)

    def leads(self) -> int:
        host = self.leader()
        return -1 if host is None else host.node_id

    def settle(self, within_ms: int = 5000) -> None:
        """Everybody who runs has and knows what the leader has."""
        self.until(self._is_settled, within_ms, "every node has applied all that the leader has")

    def _is_settled(self) -> bool:
        leader = self.leader()
        if leader is None or leader.node is None:
            return False
        end_offset = leader.node.log_end_offset
        return all(host.applied == end_offset for host in self.hosts.values() if host.node is not None)

    def finish(self) -> None:
        """No faults any more: the quorum takes a record and agrees, and clients saw nothing impossible."""
        self.mend()
        for host in self.hosts.values():
            self.unstick(host.node_id)
        self.settle()
        self.until(lambda: self.append(self.leads()), 5000, "a leader takes a record")
        self.settle()
        self.clients.history.check_against(self.checkers.committed.batches)

    def power_off(self, node_id: int) -> None:
        """What is not flushed is gone."""
        host = self.hosts[node_id]
        host.disk.pending.clear()
        self.crash(host)

    def power_on(self, node_id: int) -> None:
        self.revive(self.hosts[node_id])

    def wipe(self, node_id: int) -> None:
        """A node that is off loses what is on its disk, but not its directory id, which the operator kept."""
        self._lose_disk(self.hosts[node_id])
        self.hosts[node_id].disk.has_lost_its_state = True

    def replace_disk(self, node_id: int) -> None:
        """A node that is off gets a new disk, freshly formatted: another replica (KIP-853)."""
        host = self.hosts[node_id]
        self._lose_disk(host)
        host.directory_id = UUID(int=1000 + node_id)

    def _lose_disk(self, host: Host) -> None:
        assert host.node is None
        self.operator.former_disks.setdefault(host.key, []).append(host.disk)
        host.disk = SimulatedDisk(host.disk.random_source, host.disk.segment_batches)

    def stick(self, node_id: int) -> None:
        """Flushes of this disk do not end."""
        self.hosts[node_id].is_flushing = True

    def unstick(self, node_id: int) -> None:
        host = self.hosts[node_id]
        host.is_flushing = False
        if host.node is not None:
            self.turn(host)

    def begin_flush(self, node_id: int) -> Callable[[], None]:
        """A flush of all that is written now; it ends, and the core hears of it, when the answer is called."""
        host = self.hosts[node_id]
        operations = host.disk.begin_flush()
        flushed = LogFlushed(host.disk.log_end_offset, host.truncations)

        def end() -> None:
            host.disk.end_flush(operations)
            self.deliver(host, host.life, flushed)

        return end

    def pause(self, node_id: int) -> None:
        """The process stands still until `resume`. What is sent to it meanwhile is lost, and its timers with it: what
        the script does next wakes it."""
        self.hosts[node_id].paused_until_ms = FOREVER_MS

    def resume(self, node_id: int) -> None:
        host = self.hosts[node_id]
        host.paused_until_ms = self.now_ms
        self.watch.forgive(host)

    # Snapshots

    def take_snapshot(self, node_id: int) -> int:
        """Of what this node's state machine is now; answers where it ends."""
        host = self.hosts[node_id]
        self.snapshots.take(host)
        self.run(1)
        assert host.disk.newest_snapshot() is not None
        return host.applied

    def forget_log(self, node_id: int) -> int:
        """Take a snapshot, and forget the log below it; answers where the log begins now."""
        end_offset = self.take_snapshot(node_id)
        host = self.hosts[node_id]
        # The newest or an older one, by a random draw.
        while host.disk.log_start_offset < end_offset:
            self.snapshots.advance(host)
        return end_offset

    # Clients

    def ask(self, node_id: int, request: Request, within_ms: int = 0) -> Response | None:
        """An operator's request and its answer; None if that is not there within the time."""
        self.ask_as_operator(node_id, request)
        bound_ms = self.now_ms + within_ms
        while self.operator.answer_to(request) is None and self.now_ms < bound_ms:
            self.run(1)
        return self.operator.answer_to(request)

    def begin_read(self, node_id: int, *, takes_turn: bool = True) -> int:
        """A linearizable read; `watch.reads` has its outcome."""
        self.reads_begun += 1
        host, number = self.hosts[node_id], FIRST_READ + self.reads_begun
        host.reads[number] = self.clients.history.begin_read(self.now_ms)
        self.watch.read_begun(number)
        self.node(node_id).step(host.clock_ms(self.now_ms), ReadRequested(number))
        if takes_turn:
            self.turn(host)
        return number


def _is_vote_of_another(node_id: int, message: Message) -> bool:
    return isinstance(message.body, VoteRequest) and message.body.candidate.id != node_id


def _is_by_others(nominees: tuple[int, ...], message: Message) -> bool:
    """Messages that would start or announce another node's epoch."""
    if isinstance(message.body, VoteRequest):
        return message.body.candidate.id not in nominees
    return isinstance(message.body, FetchRequest)
