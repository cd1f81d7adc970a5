"""Clients: they append and read at a node that says it leads, or at any node, and record the responses."""

from random import Random
from typing import TYPE_CHECKING

from kquorum.raft.errors import NotLeaderError
from kquorum.raft.inputs import ReadRequested
from kquorum.raft.ready import LeaderAndEpoch, ReadConfirmed, Ready
from tests.simulation.history import History
from tests.simulation.hosts import Host
from tests.simulation.snapshot_files import SnapshotFile, next_state

if TYPE_CHECKING:
    from tests.simulation.world import World


class Clients:
    def __init__(self, world: "World") -> None:
        self.world = world
        self.history = History()
        self.is_working = True
        self._random = Random(world.seed ^ 0xC11E).random
        self._next_value = 0
        self._next_read = 0

    def begin(self) -> None:
        self.world.at(1, self._work)

    def _work(self) -> None:
        if not self.is_working:
            return
        host = self._pick()
        if host.node is not None and host.paused_until_ms <= self.world.now_ms:
            self._operate(host)
        every_ms = self.world.options.operation_every_ms
        self.world.at(1 + int(self._random() * 2 * every_ms), self._work)

    def _pick(self) -> Host:
        """A host that says it leads, there may be two of them, or any other."""
        hosts = list(self.world.hosts.values())
        if self._random() < 0.8:
            leaders = [host for host in hosts if host.node is not None and host.node.role == "leader"]
            hosts = leaders or hosts
        return hosts[int(self._random() * len(hosts))]

    def _operate(self, host: Host) -> None:
        if self._random() * 100 < self.world.options.read_percent:
            self.read(host)
            return
        roll = self._random()
        if roll < 0.75:
            self.append(host, 1 + int(roll * 4) % 3)
        elif roll < 0.9:
            self.read_committed(host)
        else:
            self.read_local(host)

    # Appends

    def append(self, host: Host, records: int) -> bool:
        """Propose a group of records; answers whether a leader took it."""
        node = host.node
        if node is None or host.paused_until_ms > self.world.now_ms:
            return False
        values = tuple(self._value() for _ in range(records))
        append = self.history.begin_append(self.world.now_ms, values)
        try:
            last_offset = node.propose(host.clock_ms(self.world.now_ms), node.leader_epoch, values)
        except NotLeaderError:
            self.history.refused(append)
            return False
        append.leader_epoch = node.leader_epoch
        append.first_offset = last_offset + 1 - records
        self.history.taken(append)
        host.appends[last_offset] = append
        self.world.turn(host)
        return True

    def burst(self, host: Host, appends: int) -> None:
        """Many appends at once."""
        for _ in range(appends):
            if not self.append(host, 1):
                return

    def _value(self) -> bytes:
        self._next_value += 1
        return b"value %d" % self._next_value

    # State machines

    def apply(self, host: Host, high_watermark: int) -> None:
        """Hand committed batches to the state machine, each once and in order, and answer whose they are."""
        if host.loading is not None:
            return
        for batch in host.disk.between(host.applied, high_watermark):
            self.world.checkers.delivered(host, batch)
            host.applied = batch.last_offset + 1
            host.applied_epoch = batch.leader_epoch
            host.state = next_state(host.state, batch)
            host.bytes_since_snapshot += len(batch.data)
            if host.appends:
                self._answer(host, batch.base_offset, batch.last_offset, batch.leader_epoch)
            self.world.snapshots.applied(host)
        if host.confirmed_reads:
            self._end_reads(host)

    def lead_changed(self, host: Host, leader: LeaderAndEpoch) -> None:
        """This state machine decides nothing."""

    def loaded(self, host: Host, snapshot: SnapshotFile) -> None:
        """The state machine starts over from a snapshot; what it had proposed below has an outcome that is not known
        here."""
        snapshot_id = snapshot.snapshot_id
        self.world.checkers.snapshots.loaded(host, snapshot_id)
        host.applied, host.applied_epoch, host.state = snapshot_id.offset, snapshot_id.epoch, snapshot.state
        host.bytes_since_snapshot = 0
        host.appends = {offset: append for offset, append in host.appends.items() if offset >= host.applied}
        self._end_reads(host)

    def _answer(self, host: Host, first_offset: int, last_offset: int, epoch: int) -> None:
        """A proposer that sees its own record committed in the epoch of its proposal tells its client."""
        for offset in range(first_offset, last_offset + 1):
            append = host.appends.pop(offset, None)
            if append is not None and append.leader_epoch == epoch:
                self.history.acknowledge(append)

    def _end_reads(self, host: Host) -> None:
        """A confirmed read is answered once the state machine has come that far."""
        waiting = []
        for read, offset in host.confirmed_reads:
            if host.applied >= offset:
                self.history.end_read(read, offset, host.applied)
            else:
                waiting.append((read, offset))
        host.confirmed_reads = waiting

    # Reads

    def read(self, host: Host) -> None:
        """A linearizable read."""
        self._next_read += 1
        host.reads[self._next_read] = self.history.begin_read(self.world.now_ms)
        self.world.deliver(host, host.life, ReadRequested(self._next_read))

    def reads_done(self, host: Host, ready: Ready) -> None:
        for outcome in ready.reads:
            read = host.reads.pop(outcome.read_id)
            if isinstance(outcome, ReadConfirmed):
                host.confirmed_reads.append((read, outcome.offset))
            else:
                self.history.refused_reads += 1
        self._end_reads(host)

    def read_committed(self, host: Host) -> None:
        """What this state machine has applied: committed, perhaps long ago."""
        self.world.checkers.committed_read(host)
        self.history.committed_reads += 1

    def read_local(self, host: Host) -> None:
        """The end of this log, committed or not."""
        self.world.checkers.local_read(host)
        self.history.local_reads += 1
