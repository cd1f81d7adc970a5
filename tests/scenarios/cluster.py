"""A few real replicas in virtual time, and a network that moves only on command.

A turn of a replica follows its driver: one input is stepped, then `take_ready` is carried out in its documented
order. Every clock is the replica's own; nothing compares two of them.
"""

from dataclasses import replace

from kquorum.raft.errors import LogDivergedBelowHighWatermarkError
from kquorum.raft.inputs import (
    Input,
    LogFlushed,
    RequestReceived,
    ResponseReceived,
    SnapshotPieceWritten,
    SnapshotReceived,
    TimeAdvanced,
)
from kquorum.raft.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchResponse,
    FetchSnapshotResponse,
    LogSlice,
    Request,
    Response,
    SnapshotSlice,
)
from kquorum.raft.node import RaftNode
from kquorum.raft.ready import (
    LeaderAndEpoch,
    OutboundRequest,
    OutboundResponse,
    QuorumState,
    ReadConfirmed,
    Ready,
    VotersChanged,
)
from kquorum.raft.voters import NO_VOTERS, VoterSet
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.scenarios.checks import Checks
from tests.scenarios.errors import ScenarioError
from tests.scenarios.host import Asked, Host
from tests.scenarios.network import Message, Network
from tests.scenarios.transcript import Transcript
from tests.scenarios.wording import (
    at_text,
    batch_text,
    kind_of,
    request_text,
    response_text,
    state_text,
    voters_text,
)

EVENTS_MAX = 20_000
SNAPSHOT = b"snapshot"
CHUNK_BYTES = 5


class Cluster:
    def __init__(self) -> None:
        self.hosts: dict[int, Host] = {}
        self.static_voters: VoterSet = NO_VOTERS
        self.network = Network()
        self.transcript = Transcript()
        self.checks = Checks()
        self.answers: list[str] = []
        self.reads: dict[int, str] = {}

    def host(self, node_id: int) -> Host:
        if node_id not in self.hosts:
            raise ScenarioError(f"there is no node {node_id}; there are {sorted(self.hosts)}")
        return self.hosts[node_id]

    def live(self, node_id: int) -> RaftNode:
        node = self.host(node_id).node
        if node is None:
            raise ScenarioError(f"node {node_id} does not run")
        return node

    # Processes

    def start(self, host: Host) -> None:
        host.begin_life()
        summary = host.disk.summary()
        host.node = RaftNode(
            host.config, self.static_voters, summary, host.disk.state, host.random_source, host.now_ms
        )
        self.turn(host)

    def stop(self, host: Host) -> None:
        host.begin_life()
        host.node = None

    def step(self, host: Host, event: Input) -> None:
        """One input and the turn that follows; a replica that must not go on ends here."""
        assert host.node is not None
        try:
            host.node.step(host.now_ms, event)
        except LogDivergedBelowHighWatermarkError as error:
            self.transcript.event(f"{host.node_id} halts: {error}")
            self.stop(host)
            return
        self.turn(host)

    def turn(self, host: Host) -> None:
        node = host.node
        assert node is not None
        ready = node.take_ready(host.now_ms)
        self._write(host, ready)
        for _ in ready.snapshot_chunks:
            node.step(host.now_ms, SnapshotPieceWritten())
        self._send(host, ready)
        self._tell(host, ready)
        host.deadline_ms = ready.deadline_ms
        if ready.is_shut_down:
            self.transcript.event(f"{host.node_id} is shut down")
            self.stop(host)
        elif ready.snapshot_chunks and ready.snapshot_chunks[-1].is_last:
            self._install(host, ready.snapshot_chunks[-1].snapshot_id)
        elif host.flushes_itself and host.disk.flushed_offset < host.disk.end_offset:
            host.disk.flush()
            self.step(host, LogFlushed(host.disk.end_offset, host.truncations))

    def _write(self, host: Host, ready: Ready) -> None:
        for change in ready.role_changes:
            self.transcript.event(
                f"{host.node_id} becomes {change.role} in epoch {change.epoch}: {change.cause}"
            )
            self.checks.role_changed(host.node_id, change)
        if ready.truncate_to is not None:
            host.disk.truncate_to(ready.truncate_to)
            host.truncations += 1
            self.transcript.event(f"{host.node_id} cuts its log at {ready.truncate_to}")
        host.disk.append(ready.append)
        for batch in ready.append:
            self.transcript.event(f"{host.node_id} appends {batch_text(batch)}")
        if ready.quorum_state is not None:
            if ready.quorum_state != (host.disk.state or QuorumState()):
                self.transcript.event(f"{host.node_id} persists {state_text(ready.quorum_state)}")
            host.disk.state = ready.quorum_state

    def _install(self, host: Host, snapshot_id: OffsetAndEpoch) -> None:
        """All of a snapshot is here: the log starts again at its end."""
        host.disk.begin_at(snapshot_id)
        host.truncations += 1
        host.applied = max(host.applied, snapshot_id.offset)
        self.transcript.event(f"{host.node_id} installs the snapshot {at_text(snapshot_id)}")
        self.step(host, SnapshotReceived(snapshot_id, host.disk.summary().quorum_records))

    def _tell(self, host: Host, ready: Ready) -> None:
        if ready.voters_changed is not None:
            self._note_voters(host, ready.voters_changed)
        if ready.has_caught_up:
            what = "lost state" if host.config.damaged_until is None else "log"
            self.transcript.event(f"{host.node_id} has its {what} back")
            host.config = replace(host.config, damaged_until=None)
        if ready.high_watermark is not None:
            self.transcript.event(f"{host.node_id} high watermark {ready.high_watermark}")
            batches = host.disk.between(host.applied, ready.high_watermark)
            self.checks.committed(host.node_id, batches)
            host.applied = max(host.applied, ready.high_watermark)
        if ready.leader is not None:
            self._announce(host, ready.leader)
        for read in ready.reads:
            confirmed = isinstance(read, ReadConfirmed)
            outcome = f"confirmed up to {read.offset}" if isinstance(read, ReadConfirmed) else "refused"
            self.reads[read.read_id] = "confirmed" if confirmed else "refused"
            self.transcript.event(f"{host.node_id} read {read.read_id} {outcome}")

    def _note_voters(self, host: Host, changed: VotersChanged) -> None:
        """The set that a process starts with is shown only where the log or a checkpoint says it."""
        if host.knows_voters or changed.kraft_version > 0:
            voters = voters_text(changed.voters)
            self.transcript.event(
                f"{host.node_id} has voters {voters}, kraft.version {changed.kraft_version}"
            )
        host.knows_voters = True

    def _announce(self, host: Host, leader: LeaderAndEpoch) -> None:
        """What the state machine hears of the leader; of "none" only when it had one."""
        if leader.leader_id >= 0:
            self.transcript.event(
                f"{host.node_id} announces leader {leader.leader_id} of epoch {leader.epoch}"
            )
        elif host.announced_leader_id >= 0:
            self.transcript.event(f"{host.node_id} announces that there is no leader")
        host.announced_leader_id = leader.leader_id

    # Messages

    def _send(self, host: Host, ready: Ready) -> None:
        for request in ready.requests:
            self._send_request(host, request)
        for response in ready.responses:
            self._send_response(host, response)

    def _send_request(self, host: Host, outbound: OutboundRequest) -> None:
        target = self._addressee(host, outbound)
        message = Message(
            source=host.node_id,
            target=target,
            kind=kind_of(outbound.request),
            text=request_text(outbound.request),
            arrive=lambda: self._arrive(target, message),
            request=outbound.request,
            correlation_id=outbound.correlation_id,
            life=host.life,
            asked_as=outbound.destination_id,
        )
        self._transmit(message)

    def _addressee(self, host: Host, outbound: OutboundRequest) -> int:
        """The node that listens there: an endpoint wins over the id, and bootstrap servers have negative ids."""
        endpoint = outbound.endpoint
        if endpoint is None and outbound.destination_id < 0:
            endpoint = host.config.bootstrap_servers[-2 - outbound.destination_id]
        if endpoint is None:
            return outbound.destination_id
        for candidate in self.hosts.values():
            if endpoint in candidate.config.endpoints:
                return candidate.node_id
        return outbound.destination_id

    def _send_response(self, host: Host, outbound: OutboundResponse) -> None:
        asked = host.asked.pop(outbound.request_id)
        response = _with_records(host, outbound.response)
        text = response_text(asked.request, response)
        if asked.by_script:
            line = f"{host.node_id}->{asked.source} {text}"
            self.answers.append(line)
            self.transcript.event(f"{line}")
            return
        self.transmit_answer(host.node_id, int(asked.source), asked, response)

    def transmit_answer(self, source: int, target: int, asked: Asked, response: Response) -> None:
        answer = ResponseReceived(asked.correlation_id, asked.asked_as, response)
        message = Message(
            source=source,
            target=target,
            kind=f"{kind_of(asked.request)}Reply",
            text=response_text(asked.request, response),
            arrive=lambda: self.hand_over(target, asked.life, answer),
        )
        self._transmit(message)

    def _transmit(self, message: Message) -> None:
        if self.network.carries(message.source, message.target):
            self.network.in_flight.append(message)
            self.transcript.message(message.kind, f"  {message.line}")
        else:
            self.transcript.message(message.kind, f"  {message.line} (lost)")

    def _arrive(self, target: int, message: Message) -> None:
        """A request reaches its target; one for a machine that does not run vanishes."""
        host = self.hosts.get(target)
        assert message.request is not None
        if host is None or host.node is None:
            self.transcript.message(message.kind, f"{target} does not run: it is lost")
            return
        asked = Asked(
            message.request, str(message.source), message.life, message.correlation_id, message.asked_as
        )
        if isinstance(message.request, ApiVersionsRequest):
            response = ApiVersionsResponse(kraft_versions=host.config.kraft_versions)
            self.transmit_answer(target, message.source, asked, response)
            return
        self.step(host, RequestReceived(host.await_answer(asked), message.request))

    def hand_over(self, target: int, life: int, event: Input) -> None:
        """Answers are for the process that asked."""
        host = self.host(target)
        if host.node is not None and host.life == life:
            self.step(host, event)

    def ask(self, host: Host, request: Request, source: str) -> None:
        """A request of the script's own making; the answer is shown and goes no further."""
        if host.node is None:
            raise ScenarioError(f"node {host.node_id} does not run")
        asked = Asked(request, source, by_script=True)
        self.step(host, RequestReceived(host.await_answer(asked), request))

    def deliver(self, message: Message, *, by_name: bool = False) -> None:
        if self._is_paused(message.target):
            raise ScenarioError(f"node {message.target} is paused: nothing reaches it")
        self.transcript.hears(f"{message.target} hears {message.kind} of {message.source}")
        message.arrive()
        self.transcript.digested(by_name=by_name)

    def deliver_all(self) -> None:
        """Until nothing is under way but what paused processes will read later."""
        for _ in range(EVENTS_MAX):
            awake = [message for message in self.network.in_flight if not self._is_paused(message.target)]
            if not awake:
                return
            self.network.in_flight.remove(awake[0])
            self.deliver(awake[0])
        raise ScenarioError(f"still talking after {EVENTS_MAX} messages")

    def _is_paused(self, node_id: int) -> bool:
        return node_id in self.hosts and self.hosts[node_id].is_paused

    # Time

    def advance(self, duration_ms: int, *, delivering: bool, only: int | None = None) -> None:
        """Let time pass, for one replica or all, timers firing as they come; all clocks run alike."""
        passed = 0
        for _ in range(EVENTS_MAX):
            if delivering:
                self.deliver_all()
            next_ms = self._next_timer_ms(only)
            if next_ms is None or passed + next_ms > duration_ms:
                self._move_clocks(duration_ms - passed, only)
                return
            self._move_clocks(next_ms, only)
            passed += next_ms
            self.transcript.time = passed
            self._fire(only)
        raise ScenarioError(f"more than {EVENTS_MAX} timers in {duration_ms} ms")

    def _next_timer_ms(self, only: int | None) -> int | None:
        waits = (
            max(0, host.deadline_ms - host.now_ms)
            for host in self._clocks(only)
            if host.runs and host.deadline_ms is not None
        )
        return min(waits, default=None)

    def _fire(self, only: int | None) -> None:
        for host in self._clocks(only):
            if host.runs and host.deadline_ms is not None and host.deadline_ms <= host.now_ms:
                self.step(host, TimeAdvanced())
                return

    def _move_clocks(self, duration_ms: int, only: int | None) -> None:
        for host in self._clocks(only):
            host.now_ms += duration_ms

    def _clocks(self, only: int | None) -> list[Host]:
        return list(self.hosts.values()) if only is None else [self.host(only)]


def _with_records(host: Host, response: Response) -> Response:
    if isinstance(response, FetchResponse) and isinstance(response.records, LogSlice):
        data = host.disk.read(response.records.start_offset, response.records.max_bytes)
        return replace(response, records=data)
    if isinstance(response, FetchSnapshotResponse) and isinstance(response.data, SnapshotSlice):
        # Every snapshot has the same bytes: their content does not matter here.
        position = response.data.position
        return replace(response, data=SNAPSHOT[position : position + CHUNK_BYTES], size=len(SNAPSHOT))
    return response
