"""The world: one queue of events in virtual time, everything random drawn from one seed.

A replica's turn follows the driver's: inputs are stepped, `take_ready` is carried out in its documented order,
the election state is "written" before any message leaves, flushes end later and out of step with everything.
"""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from raft.batches import LogBatch
from raft.config import QuorumConfig
from raft.errors import NotLeaderError
from raft.inputs import (
    FailureReason,
    Input,
    LogFlushed,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    TimeAdvanced,
)
from raft.messages import FetchResponse, LogSlice, Request, Response, VoteRequest, VoteResponse
from raft.node import RaftNode
from raft.ready import OutboundRequest, OutboundResponse, Ready
from raft.voters import ReplicaKey, Voter, VoterSet
from tests.simulation.checkers import Checkers
from tests.simulation.disk import SimulatedDisk
from tests.simulation.options import Options

CLUSTER_ID = "simulated-cluster-id00"


@dataclass
class Host:
    """One machine: its disk outlives the process."""

    node_id: int
    disk: SimulatedDisk
    flush_ms_max: int
    node: RaftNode | None = None
    life: int = 0
    paused_until_ms: int = 0
    truncations: int = 0
    flushing: bool = False
    timer_at_ms: int | None = None
    applied: int = 0
    waiting_replies: dict[int, tuple[int, int, Request]] = field(default_factory=dict)
    next_request_id: int = 0
    proposals: dict[int, int] = field(default_factory=dict)


class World:
    def __init__(self, seed: int, options: Options, node_class: type[RaftNode] = RaftNode) -> None:
        self.seed = seed
        self.options = options
        self.dice = Random(seed)
        self.node_class = node_class
        self.now_ms = 0
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.events = 0
        self.cut_links: set[tuple[int, int]] = set()
        self.is_faulty = True
        self.checkers = Checkers()
        self.acknowledged: dict[int, bytes] = {}
        self.correlations: dict[tuple[int, int, int], int] = {}
        self.trace: list[str] = []
        voter_ids = range(1, options.voters + 1)
        self.voters = VoterSet.of(*(Voter(ReplicaKey(node_id)) for node_id in voter_ids))
        ids = [*voter_ids, *range(101, 101 + options.observers)]
        self.hosts = {node_id: self._host(node_id) for node_id in ids}
        for host in self.hosts.values():
            self.start(host)

    def _host(self, node_id: int) -> Host:
        """Disks are of different speeds: that a leader's is the slowest is what makes its own flush count."""
        factor = self.dice.choice((0, 1, 4))
        disk = SimulatedDisk(Random(self.dice.getrandbits(64)))
        return Host(node_id, disk, flush_ms_max=factor * self.options.flush_ms_max)

    # Events

    def at(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.events += 1
        heapq.heappush(self.queue, (self.now_ms + delay_ms, self.events, action))

    def run_until(self, end_ms: int) -> None:
        while self.queue and self.queue[0][0] <= end_ms:
            self.now_ms, _, action = heapq.heappop(self.queue)
            action()
        self.now_ms = end_ms

    def note(self, line: str) -> None:
        self.trace.append(f"{self.now_ms:>6} {line}")

    # Processes

    def start(self, host: Host) -> None:
        is_voter = host.node_id in self.voters.voters
        config = QuorumConfig(
            node_id=host.node_id,
            directory_id=UUID(int=host.node_id),
            cluster_id=CLUSTER_ID,
            can_be_voter=is_voter,
            election_timeout_ms=self.options.election_timeout_ms,
            max_fetch_bytes=self.options.max_fetch_bytes,
        )
        host.life += 1
        host.applied = 0
        host.truncations = 0
        host.flushing = False
        host.timer_at_ms = None
        host.waiting_replies = {}
        host.proposals = {}
        dice = Random(self.dice.getrandbits(64))
        host.node = self.node_class(
            config, self.voters, host.disk.summary(), host.disk.state, dice, self.now_ms
        )
        self.note(
            f"node {host.node_id} starts in epoch {host.node.leader_epoch} at {host.disk.log_end_offset}"
        )
        self.turn(host)

    def crash(self, host: Host) -> None:
        self.note(f"node {host.node_id} crashes")
        host.node = None
        host.life += 1
        host.paused_until_ms = 0
        host.disk.crash()
        self.checkers.forget_life(host.node_id)

    def crash_and_revive(self, host: Host, revive_ms_max: int = 0) -> None:
        if host.node is not None:
            self.crash(host)
            self.at(
                self.dice.randint(1, revive_ms_max or self.options.revive_ms_max), lambda: self.revive(host)
            )

    def revive(self, host: Host) -> None:
        if host.node is None:
            self.start(host)

    def deliver(self, host: Host, life: int, event: Input) -> None:
        """Hand an input over, later if the process is paused, never to another life of it."""
        if host.node is None or host.life != life:
            return
        if host.paused_until_ms > self.now_ms:
            self.at(host.paused_until_ms - self.now_ms, lambda: self.deliver(host, life, event))
            return
        host.node.step(self.now_ms, event)
        self.turn(host)

    def turn(self, host: Host) -> None:
        node = host.node
        assert node is not None
        ready = node.take_ready(self.now_ms)
        if ready.truncate_to is not None:
            host.disk.truncate_to(ready.truncate_to)
            host.truncations += 1
        host.disk.append(ready.append)
        if ready.quorum_state is not None:
            host.disk.state = ready.quorum_state
        for change in ready.role_changes:
            self.note(f"node {host.node_id} {change.role} in epoch {change.epoch}: {change.cause}")
            if change.role == "leader":
                self._maybe_crash_new_leader(host)
        self.checkers.after_ready(self.now_ms, node, ready, host.disk.batches)
        self._send(host, ready)
        self._apply_committed(host, node, ready)
        self._maybe_flush(host)
        self._arm_timer(host, ready)

    def _arm_timer(self, host: Host, ready: Ready) -> None:
        host.timer_at_ms = ready.deadline_ms
        if ready.deadline_ms is None:
            return
        assert ready.deadline_ms > self.now_ms
        life, armed_for = host.life, ready.deadline_ms

        def fire() -> None:
            if host.life == life and host.timer_at_ms == armed_for:
                self.deliver(host, life, TimeAdvanced())

        self.at(armed_for - self.now_ms, fire)

    def _maybe_flush(self, host: Host) -> None:
        if host.flushing or not host.disk.pending:
            return
        host.flushing = True
        life, truncations = host.life, host.truncations
        operations, end_offset = host.disk.begin_flush(), host.disk.log_end_offset

        def done() -> None:
            if host.life == life:
                host.disk.end_flush(operations)
                host.flushing = False
                self.deliver(host, life, LogFlushed(end_offset, truncations))

        flush_ms_max = host.flush_ms_max if self.is_faulty else min(2, host.flush_ms_max)
        self.at(self.dice.randint(0, flush_ms_max), done)

    # Network

    def _send(self, host: Host, ready: Ready) -> None:
        for request in ready.requests:
            self._transmit_request(host, request)
        for response in ready.responses:
            self._transmit_response(host, response)

    def _transmit_request(self, host: Host, outbound: OutboundRequest) -> None:
        target = self.hosts[outbound.destination_id]
        life = host.life

        def arrive() -> None:
            if target.node is None:
                failed = RequestFailed(outbound.correlation_id, target.node_id, FailureReason.DISCONNECTED)
                self._over_link(target.node_id, host.node_id, lambda: self.deliver(host, life, failed))
                return
            target.next_request_id += 1
            request_id = target.next_request_id
            target.waiting_replies[request_id] = (host.node_id, life, outbound.request)
            self.correlations[(target.node_id, target.life, request_id)] = outbound.correlation_id
            self.deliver(target, target.life, RequestReceived(request_id, outbound.request))

        self._over_link(host.node_id, target.node_id, arrive)

    def _transmit_response(self, host: Host, outbound: OutboundResponse) -> None:
        source_id, source_life, request = host.waiting_replies.pop(outbound.request_id)
        correlation_id = self.correlations.pop((host.node_id, host.life, outbound.request_id))
        response = self._resolve(host, outbound.response)
        if isinstance(request, VoteRequest) and isinstance(response, VoteResponse) and response.vote_granted:
            self.checkers.vote_granted(host.node_id, request)
            self._maybe_crash_after_vote(host)
        source = self.hosts[source_id]
        answer = ResponseReceived(correlation_id, host.node_id, response)
        self._over_link(host.node_id, source_id, lambda: self.deliver(source, source_life, answer))

    def _maybe_crash_new_leader(self, host: Host) -> None:
        """Epochs that end before their first record has spread are how logs come to differ (Raft, figure 8)."""
        if self.is_faulty and self.dice.randrange(100) < self.options.crash_new_leader_percent:
            life = host.life
            delay_ms = self.dice.randint(0, 4 * self.options.delay_ms_max)
            self.at(delay_ms, lambda: self.crash_and_revive(host) if host.life == life else None)

    def _maybe_crash_after_vote(self, host: Host) -> None:
        """The worst moment for a voter to die is right after its word was given."""
        if self.is_faulty and self.dice.randrange(100) < self.options.crash_after_vote_percent:
            life = host.life
            self.at(0, lambda: self.crash_and_revive(host) if host.life == life else None)

    def _resolve(self, host: Host, response: Response) -> Response:
        if isinstance(response, FetchResponse) and isinstance(response.records, LogSlice):
            data = host.disk.read(response.records.start_offset, response.records.max_bytes)
            return FetchResponse(
                leader_id=response.leader_id,
                leader_epoch=response.leader_epoch,
                high_watermark=response.high_watermark,
                log_start_offset=response.log_start_offset,
                records=data,
            )
        return response

    def _over_link(self, source_id: int, target_id: int, arrive: Callable[[], None]) -> None:
        if (source_id, target_id) in self.cut_links:
            return
        copies = 1
        delay_ms_max = self.options.delay_ms_max if self.is_faulty else min(10, self.options.delay_ms_max)
        if self.is_faulty:
            if self.dice.randrange(100) < self.options.loss_percent:
                return
            copies += self.dice.randrange(100) < self.options.duplicate_percent
        for _ in range(copies):
            self.at(self.dice.randint(1, delay_ms_max), arrive)

    def cut(self, one_side: Iterable[int], one_way: bool) -> None:
        inside = set(one_side)
        for a in self.hosts:
            for b in self.hosts:
                if a in inside and b not in inside:
                    self.cut_links.add((a, b))
                    if not one_way:
                        self.cut_links.add((b, a))

    # State machines

    def _apply_committed(self, host: Host, node: RaftNode, ready: Ready) -> None:
        if ready.high_watermark is None:
            return
        for batch in host.disk.between(host.applied, ready.high_watermark):
            self._acknowledge(host, batch)
            host.applied = batch.next_offset

    def _acknowledge(self, host: Host, batch: LogBatch) -> None:
        """A proposer that sees its own record committed in the epoch of its proposal tells its client."""
        for record in batch.records:
            epoch = host.proposals.pop(record.offset, None)
            if epoch == batch.leader_epoch and record.value is not None:
                self.acknowledged[record.offset] = record.value

    def propose(self, host: Host) -> bool:
        node = host.node
        if node is None or host.paused_until_ms > self.now_ms:
            return False
        value = b"value %d" % self.dice.getrandbits(48)
        try:
            offset = node.propose(self.now_ms, node.leader_epoch, [value])
        except NotLeaderError:
            return False
        host.proposals[offset] = node.leader_epoch
        self.turn(host)
        return True
