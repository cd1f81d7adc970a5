"""What a process does with snapshots beside its core: takes them, receives and loads them, and forgets the log below.

It follows the driver: pieces are written as they come; the last one has the whole checked, named, and put in the place
of the log, with nothing else at work on that meanwhile; the state machine loads it while elections and fetches go on.
"""

from random import Random
from typing import TYPE_CHECKING

from kquorum.raft.inputs import (
    LogStartAdvanced,
    SnapshotPieceWritten,
    SnapshotReceived,
    SnapshotRefused,
    SnapshotWritten,
)
from kquorum.raft.ready import Ready, SnapshotChunk
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.simulation.errors import InvariantBroken
from tests.simulation.hosts import Host
from tests.simulation.snapshot_files import SnapshotFile, quorum_records_at, read_snapshot, write_snapshot

if TYPE_CHECKING:
    from tests.simulation.world import World

# The steps after which `Traps` may let a process die.
PIECE_WRITTEN, RECEIVED, DROPPING, DROPPED, TAKEN = range(5)


class Snapshots:
    def __init__(self, world: "World") -> None:
        self.world = world
        self._random = Random(world.seed ^ 0x54A9).random

    def _delay_ms(self, host: Host) -> int:
        return int(self._random() * (host.flush_ms_max + 1))

    # Taking them, and forgetting what they stand for

    def applied(self, host: Host) -> None:
        """The state machine has come further."""
        limit_bytes = self.world.options.snapshot_bytes
        if limit_bytes and host.bytes_since_snapshot >= limit_bytes:
            self.take(host)

    def take(self, host: Host) -> None:
        """Begin to write down what the state machine is now."""
        node, offset = host.node, host.applied
        snapshot_id = OffsetAndEpoch(offset, host.applied_epoch)
        is_busy = host.is_writing_snapshot or host.is_installing or host.loading is not None or host.is_full
        if node is None or offset == 0 or is_busy or snapshot_id in host.disk.snapshots:
            return
        host.is_writing_snapshot = True
        host.bytes_since_snapshot = 0
        history = node.replica.voter_history
        records = quorum_records_at(
            offset, history.kraft_version_at(offset - 1), history.voters_at(offset - 1)
        )
        padding = bytes((host.node_id,)) * (1 + self.world.options.snapshot_padding)
        snapshot = write_snapshot(snapshot_id, host.state, records, padding)
        self.world.at(self._delay_ms(host), self._taken, host, host.life, snapshot)

    def _taken(self, host: Host, life: int, snapshot: SnapshotFile) -> None:
        if host.life != life:
            return
        if host.is_full:
            host.is_writing_snapshot = False
            return
        self.world.note("node %d has a snapshot at %d", host.node_id, snapshot.snapshot_id.offset)
        self.world.tally["snapshots taken"] += 1
        host.disk.put_snapshot(snapshot)
        self.world.checkers.snapshots.put(host, snapshot)
        if self.world.traps.is_dying(host, TAKEN):
            return
        host.is_writing_snapshot = False
        self.world.deliver(host, life, SnapshotWritten(snapshot.snapshot_id))
        if self._random() * 100 < self.world.options.retention_percent:
            self.turn_and_advance(host)

    def turn_and_advance(self, host: Host) -> None:
        """As in the driver, behind a turn: what that answers is read before the log begins later."""
        if host.node is not None and host.has_turn_due and host.paused_until_ms <= self.world.now_ms:
            self.world.turn(host)
        if not host.writes_state_until_ms:
            self.advance(host)

    def advance(self, host: Host) -> None:
        """Forget the log below a snapshot: below the newest one, or one before."""
        node, disk, now_ms = host.node, host.disk, self.world.now_ms
        if node is None or host.paused_until_ms > now_ms or host.is_installing or host.loading is not None:
            return
        known = node.replica.log.snapshots
        ends = sorted(
            each.offset
            for each in disk.snapshots
            # As in the driver: a damaged log may end below a snapshot until it is mended.
            if each in known
            and disk.log_start_offset < each.offset <= min(node.high_watermark, disk.log_end_offset)
        )
        if not ends:
            return
        offset = ends[-1] if self._random() < 0.7 else ends[0]
        self.world.note("the log of node %d begins at %d from now on", host.node_id, offset)
        self.world.tally["log starts advanced"] += 1
        disk.advance_log_start(offset)
        self.world.checkers.snapshots.log_starts(host)
        self.world.deliver(host, host.life, LogStartAdvanced(offset))

    # Receiving them

    def receive(self, host: Host, chunks: tuple[SnapshotChunk, ...]) -> None:
        for chunk in chunks:
            if chunk.position == 0:
                host.part = (chunk.snapshot_id, bytearray())
            part = host.part
            if part is None or part[0] != chunk.snapshot_id or len(part[1]) != chunk.position:
                raise InvariantBroken(
                    f"node {host.node_id} writes byte {chunk.position} of {chunk.snapshot_id} "
                    f"behind {len(part[1]) if part else 0} bytes of {part[0] if part else None}"
                )
            part[1].extend(chunk.data)
            self.world.tally["pieces of snapshots"] += 1
            self.world.at(self._delay_ms(host), self.world.deliver, host, host.life, SnapshotPieceWritten())
            if chunk.is_last:
                host.is_installing = True
                self.world.at(self._delay_ms(host), self._finish, host, host.life)
        self.world.traps.piece_written(host)

    def _finish(self, host: Host, life: int) -> None:
        """Check the whole, and give it its name."""
        if host.life != life:
            return
        assert host.part is not None
        (snapshot_id, data), host.part = host.part, None
        if host.spoils_download:
            host.spoils_download = False
            data[int(self._random() * len(data))] ^= 1 << int(self._random() * 8)
        snapshot = read_snapshot(snapshot_id, bytes(data))
        if snapshot is None or host.is_full:
            self.world.note("node %d received no sound snapshot", host.node_id)
            self.world.tally["snapshots refused"] += 1
            host.is_installing = False
            self.world.deliver(host, life, SnapshotRefused(snapshot_id))
            return
        host.disk.put_snapshot(snapshot)
        self.world.checkers.snapshots.put(host, snapshot)
        if not self.world.traps.is_dying(host, RECEIVED):
            self.world.at(self._delay_ms(host), self._drop_log, host, life, snapshot)

    def _drop_log(self, host: Host, life: int, snapshot: SnapshotFile) -> None:
        """Once no flush is at work on it, the log is emptied, and begins where the snapshot ends."""
        if host.life != life:
            return
        if host.is_flushing:
            self.world.at(1, self._drop_log, host, life, snapshot)
            return
        snapshot_id = snapshot.snapshot_id
        self.world.checkers.log.before_dropping(host, snapshot_id.offset)
        if self.world.traps.is_set(DROPPING):
            host.disk.drop_half_the_log()
            self.world.traps.is_dying(host, DROPPING)
            return
        self.world.note("node %d restarts its log at %d", host.node_id, snapshot_id.offset)
        self.world.tally["snapshots received"] += 1
        host.disk.drop_log_for(snapshot)
        host.truncations += 1
        host.loading = snapshot_id
        self.world.checkers.snapshots.log_starts(host)
        if not self.world.traps.is_dying(host, DROPPED):
            self.world.deliver(host, life, SnapshotReceived(snapshot_id, snapshot.quorum_records))

    # Loading them

    def start_from_newest(self, host: Host) -> None:
        """A process that starts loads its newest snapshot before anything else."""
        self.world.checkers.snapshots.log_starts(host)
        snapshot = host.disk.newest_snapshot()
        if snapshot is not None:
            self.world.clients.loaded(host, snapshot)

    def turned(self, host: Host, ready: Ready) -> None:
        """The core's part of a turn: a snapshot that it received is to be loaded, unless the state machine has begun
        with one as new."""
        assert host.node is not None
        if ready.snapshot_chunks:
            self.receive(host, ready.snapshot_chunks)
        if ready.load_snapshot is not None:
            self.load(host, ready.load_snapshot)
        elif host.is_installing and host.node.replica.installing is None:
            host.is_installing = False
            host.loading = None

    def load(self, host: Host, snapshot_id: OffsetAndEpoch) -> None:
        """Deliveries to the state machine wait until it is done."""
        host.is_installing = False
        host.loading = snapshot_id
        self.world.at(self._delay_ms(host), self._loaded, host, host.life, snapshot_id)

    def _loaded(self, host: Host, life: int, snapshot_id: OffsetAndEpoch) -> None:
        if host.life != life or host.loading != snapshot_id or host.is_installing:
            return
        host.loading = None
        self.world.clients.loaded(host, host.disk.snapshots[snapshot_id])
        assert host.node is not None
        self.world.clients.apply(host, host.node.high_watermark)
