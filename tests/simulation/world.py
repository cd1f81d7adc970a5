"""The world: one queue of events in virtual time, everything random drawn from one seed.

A replica's turn follows the driver's: inputs are stepped, `take_ready` is carried out in its documented order,
the election state is "written" before any message leaves, flushes end later and out of step with everything.
"""

from collections import Counter
from random import Random

from kquorum.raft.inputs import Input, LogFlushed, QuorumStateWritten, ShutdownRequested, TimeAdvanced
from kquorum.raft.node import RaftNode
from kquorum.raft.ready import OutboundRequest, QuorumState, Ready
from kquorum.raft.voters import NO_VOTERS
from tests.simulation.building import CLUSTER_ID, FIRST_OBSERVER, build_host, config_of
from tests.simulation.checkers import Checkers
from tests.simulation.clients import Clients
from tests.simulation.events import EventQueue
from tests.simulation.failing_disks import FailingDisks
from tests.simulation.hosts import CheapDice, Host
from tests.simulation.membership import Operator, bootstrap_records, static_voters
from tests.simulation.network import Network
from tests.simulation.options import Options
from tests.simulation.snapshots import Snapshots
from tests.simulation.traps import Traps

CALM_FLUSH_MS = 2


class World(EventQueue):
    def __init__(
        self,
        seed: int,
        options: Options,
        node_class: type[RaftNode] = RaftNode,
        *,
        is_traced: bool = False,
        trace: list[str] | None = None,
    ) -> None:
        super().__init__(is_traced=is_traced, trace=trace)
        self.seed = seed
        self.options = options
        self.node_class = node_class
        self.is_faulty = True
        self.tally: Counter[str] = Counter()
        self.random_source = Random(seed)
        self.checkers = Checkers(self)
        self.network = Network(self)
        self.clients = self.make_clients()
        self.traps = Traps(self)
        self.snapshots = Snapshots(self)
        self.failing_disks = FailingDisks(self)
        self.operator = Operator(self)
        self.cluster_id = CLUSTER_ID
        controllers = range(1, options.voters + options.spares + 1)
        ids = [*controllers, *range(FIRST_OBSERVER, FIRST_OBSERVER + options.observers)]
        self.hosts = {node_id: build_host(self, node_id) for node_id in ids}
        first = [self.hosts[node_id] for node_id in controllers[: options.voters]]
        self.voters = NO_VOTERS if options.quorum == "dynamic" else static_voters(first)
        if options.quorum == "dynamic":
            for host in first:
                host.disk.bootstrap = bootstrap_records(first)
            self.checkers.committed.before = bootstrap_records(first)
        for host in self.hosts.values():
            self.start(host)

    def make_clients(self) -> Clients:
        return Clients(self)

    # Who is there

    def host_at(self, outbound: OutboundRequest) -> Host | None:
        """The machine that a request is sent to."""
        if outbound.endpoint is None:
            return self.hosts.get(outbound.destination_id)
        host = self.hosts[int(outbound.endpoint.host.removeprefix("host-"))]
        return host if host.endpoint == outbound.endpoint else None

    def leader(self) -> Host | None:
        """The host that leads the newest epoch."""
        leaders = [
            host for host in self.hosts.values() if host.node is not None and host.node.role == "leader"
        ]
        return max(leaders, key=lambda host: host.node.leader_epoch if host.node else -1, default=None)

    # Processes

    def start(self, host: Host) -> None:
        host.forget_process()
        if host.disk.has_lost_its_state:
            self.checkers.forget_epoch(host)
        host.disk.reopen()
        self.snapshots.start_from_newest(host)
        state = host.disk.state
        host.node = self.node_class(
            config_of(self, host),
            self.voters,
            host.disk.summary(),
            state,
            CheapDice(host.random_source.randint(0, 2**62)),
            host.clock_ms(self.now_ms),
        )
        self.note(
            "node %d starts in epoch %d at %d", host.node_id, host.node.leader_epoch, host.disk.log_end_offset
        )
        if host.disk.damaged_until is not None:
            host.damaged_epoch = host.node.leader_epoch
        self.failing_disks.started(host)
        self.turn(host)

    def crash(self, host: Host) -> None:
        self.note("node %d crashes", host.node_id)
        self.tally["crashes"] += 1
        host.disk.crash()
        self.checkers.log.forget_lost(host, host.unsaid)
        self._end(host)

    def _end(self, host: Host) -> None:
        host.forget_process()
        self.checkers.forget_life(host)

    def crash_and_revive(self, host: Host, revive_ms: int) -> None:
        if host.node is not None:
            self.crash(host)
            self.at(revive_ms, self.revive, host)

    def revive(self, host: Host) -> None:
        if host.node is None:
            self.start(host)

    def shut_down(self, host: Host, patience_ms: int) -> None:
        """Ask a process to leave in good order; after a while it is stopped whether it has or not."""
        if host.node is None:
            return
        self.note("node %d is asked to shut down", host.node_id)
        self.tally["shutdowns"] += 1
        life = host.life
        self.deliver(host, life, ShutdownRequested())
        if host.life == life:
            self.at(patience_ms, self._stop, host, life)

    def _stop(self, host: Host, life: int) -> None:
        """A process that ends leaves what it wrote to the operating system, which loses nothing."""
        if host.node is None or host.life != life:
            return
        self.note("node %d ends", host.node_id)
        host.disk.end_flush(host.disk.begin_flush())
        self._end(host)
        self.at(1 + host.random_source.randint(0, 2 * self.options.fetch_timeout_ms), self.revive, host)

    def heal(self) -> None:
        """Faults end: the network is calm, every process runs."""
        self.note("faults end")
        self.is_faulty = False
        self.network.calm()
        self.traps.clear()
        for host in self.hosts.values():
            host.paused_until_ms = self.now_ms
            host.dies_at_step = 0
            host.flush_fails = False
            self.failing_disks.make_room(host)
            host.flush_ms_max = min(CALM_FLUSH_MS, host.flush_ms_max)
            host.state_ms = (0, min(CALM_FLUSH_MS, host.state_ms[1]))
            self.revive(host)

    # Turns

    def deliver(self, host: Host, life: int, event: Input) -> None:
        """Hand an input over, later if the process is paused or its disk at work on an election state, never to another
        life of it."""
        node = host.node
        if node is None or host.life != life:
            return
        busy_until_ms = max(host.paused_until_ms, host.writes_state_until_ms)
        if busy_until_ms > self.now_ms or host.writes_state_until_ms:
            self.at(busy_until_ms - self.now_ms, self.deliver, host, life, event)
            return
        node.step(host.clock_ms(self.now_ms), event)
        if not self.options.shares_turns:
            self.turn(host)
        elif not host.has_turn_due:
            # As in the driver's loop, all that arrives in the same millisecond shares one turn.
            host.has_turn_due = True
            self.at(0, self._shared_turn, host, life)

    def _shared_turn(self, host: Host, life: int) -> None:
        if host.life == life and host.node is not None:
            host.has_turn_due = False
            self.turn(host)

    def turn(self, host: Host) -> None:
        node = host.node
        assert node is not None
        if host.writes_state_until_ms:
            return  # the turn comes when that is done
        ready = node.take_ready(host.clock_ms(self.now_ms))
        if host.dies_at_step and (ready.append or ready.snapshot_chunks or ready.quorum_state is not None):
            self._die_in_turn(host, ready)
            return
        unknown = self.checkers.log.unknown(ready.append)
        self._store(host, ready)
        if ready.quorum_state is not None and host.state_ms[1] > 0:
            host.unsaid = unknown
            delay_ms = host.random_source.randint(*host.state_ms)
            host.writes_state_until_ms = self.now_ms + delay_ms
            self.at(delay_ms, self._state_written_late, host, host.life, ready)
            return
        if ready.quorum_state is not None:
            self._state_written(host, ready.quorum_state)
        self._finish(host, node, ready)
        self._arm_timer(host, ready)
        if ready.is_shut_down:
            self._stop(host, host.life)

    def _state_written_late(self, host: Host, life: int, ready: Ready) -> None:
        """The disk was long at work on an election state: what waited for it goes on, with a turn of its own."""
        if host.life != life:
            return
        assert host.node is not None
        assert ready.quorum_state is not None
        host.writes_state_until_ms = 0
        host.unsaid = []
        self._state_written(host, ready.quorum_state)
        self._finish(host, host.node, ready)
        if ready.is_shut_down:
            self._stop(host, life)
        elif host.life == life:
            self.turn(host)

    def _state_written(self, host: Host, state: QuorumState) -> None:
        assert host.node is not None
        host.disk.state = state
        host.node.step(host.clock_ms(self.now_ms), QuorumStateWritten())

    def _finish(self, host: Host, node: RaftNode, ready: Ready) -> None:
        """What may be said and done once the election state is on the disk."""
        for change in ready.role_changes:
            self.note("node %d %s in epoch %d: %s", host.node_id, change.role, change.epoch, change.cause)
            self.checkers.role_taken(host, change)
            self.traps.role_taken(host, change)
        self.checkers.after_ready(host, node, ready)
        self.failing_disks.after_turn(host, ready)
        if ready.requests or ready.responses:
            self.network.send(host, ready)
        if ready.high_watermark is not None:
            self.clients.apply(host, ready.high_watermark)
        if ready.leader is not None:
            self.clients.lead_changed(host, ready.leader)
        if ready.reads:
            self.clients.reads_done(host, ready)
        if ready.has_caught_up:
            self.note("node %d has caught up", host.node_id)
            host.disk.has_lost_its_state, host.disk.damaged_until = False, None
        if host.disk.pending and not host.is_flushing:
            self._begin_flush(host)

    def _store(self, host: Host, ready: Ready) -> None:
        """What must be written before anything is said of it."""
        disk = host.disk
        if ready.truncate_to is not None:
            self.checkers.log.before_truncation(host, ready.truncate_to)
            disk.truncate_to(ready.truncate_to)
            host.truncations += 1
        if ready.append:
            self.checkers.log.before_append(host, ready.append)
            disk.append(ready.append)
        self.snapshots.turned(host, ready)

    def _die_in_turn(self, host: Host, ready: Ready) -> None:
        """The process dies with its turn half carried out: after the append, the state, or the messages."""
        if ready.truncate_to is not None:
            host.disk.truncate_to(ready.truncate_to)
        unknown = self.checkers.log.unknown(ready.append)
        self.checkers.log.before_append(host, ready.append)
        host.disk.append(ready.append)
        if host.dies_at_step >= 2 and ready.quorum_state is not None:
            host.disk.state = ready.quorum_state
        if host.dies_at_step >= 3:
            self.network.send(host, ready)
        else:
            host.unsaid = unknown
        self.note("node %d dies in its turn, after step %d", host.node_id, host.dies_at_step)
        self.crash_and_revive(host, host.revives_after_ms)

    def _arm_timer(self, host: Host, ready: Ready) -> None:
        """One wake-up call is in the queue at most, and it goes on to the deadline if that was put off since."""
        deadline_ms = ready.deadline_ms
        if deadline_ms is None:
            host.timer_at_ms = None
            return
        assert deadline_ms > host.clock_ms(self.now_ms)
        host.timer_at_ms = at_ms = host.world_ms_of(deadline_ms)
        if host.wakes_at_ms is None or at_ms < host.wakes_at_ms:
            host.wakes_at_ms = at_ms
            self.at(at_ms - self.now_ms, self._wake, host, host.life, at_ms)

    def _wake(self, host: Host, life: int, at_ms: int) -> None:
        if host.life != life or host.wakes_at_ms != at_ms:
            return
        host.wakes_at_ms = None
        if host.timer_at_ms is None:
            return
        if host.timer_at_ms > self.now_ms:
            host.wakes_at_ms = host.timer_at_ms
            self.at(host.timer_at_ms - self.now_ms, self._wake, host, life, host.timer_at_ms)
            return
        host.timer_at_ms = None
        host.is_timer_turn = True
        self.deliver(host, life, TimeAdvanced())

    # Flushes

    def _begin_flush(self, host: Host) -> None:
        host.is_flushing = True
        flushed = LogFlushed(host.disk.log_end_offset, host.truncations)
        delay_ms = host.random_source.randint(0, host.flush_ms_max)
        self.at(delay_ms, self._end_flush, host, host.life, host.disk.begin_flush(), flushed)

    def _end_flush(self, host: Host, life: int, operations: int, flushed: LogFlushed) -> None:
        if host.life != life:
            return
        if host.flush_fails:
            # What an fsync could not write is nowhere, and asking again would be answered with a lie: it dies.
            self.note("node %d: the disk refuses to flush", host.node_id)
            self.tally["flush errors"] += 1
            self.crash_and_revive(host, host.revives_after_ms)
            return
        host.disk.end_flush(operations)
        host.is_flushing = False
        self.deliver(host, life, flushed)
