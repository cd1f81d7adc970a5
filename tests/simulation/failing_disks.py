"""Disks that run full, and disks that lose what they had promised to keep; what both must not lead to."""

from copy import copy
from typing import TYPE_CHECKING

from kquorum.raft.inputs import WritesPaused
from kquorum.raft.messages import Request, Response, VoteRequest, VoteResponse
from kquorum.raft.ready import Ready
from tests.simulation.errors import InvariantBroken
from tests.simulation.hosts import Host

if TYPE_CHECKING:
    from tests.simulation.world import World

STANDING = ("prospective", "candidate")


class FailingDisks:
    def __init__(self, world: "World") -> None:
        self.world = world

    # Full disks

    def fill(self, host: Host, for_ms: int) -> None:
        """No space from now on, but for election states, whatever becomes of the process."""
        if host.is_full:
            return
        self.world.note("the disk of node %d is full", host.node_id)
        self.world.tally["full disks"] += 1
        host.is_full = True
        self._tell(host, is_paused=True)
        self.world.at(for_ms, self.make_room, host)

    def make_room(self, host: Host) -> None:
        if host.is_full:
            self.world.note("the disk of node %d has space again", host.node_id)
            host.is_full = False
            self._tell(host, is_paused=False)

    def _tell(self, host: Host, *, is_paused: bool) -> None:
        """In a turn of its own, so that what comes out was asked for with or without space."""
        node = host.node
        if node is None or host.paused_until_ms > self.world.now_ms:
            # It finds out when it writes again; a process that sleeps does not.
            self.world.at(1, self._tell_later, host, host.life, is_paused)
            return
        node.step(host.clock_ms(self.world.now_ms), WritesPaused(is_paused))
        host.paused_writes_since_ms = self.world.now_ms if is_paused else None
        host.written_when_full = node.replica.log.log_end_offset
        self.world.turn(host)

    def _tell_later(self, host: Host, life: int, is_paused: bool) -> None:
        if host.life == life and host.node is not None and host.is_full == is_paused:
            self._tell(host, is_paused=is_paused)

    def started(self, host: Host) -> None:
        """A process that finds its disk full says so before anything else."""
        if host.is_full and host.node is not None:
            host.node.step(host.clock_ms(self.world.now_ms), WritesPaused(is_paused=True))
            host.paused_writes_since_ms = self.world.now_ms
            host.written_when_full = host.node.replica.log.log_end_offset

    # Damage

    def damage(self, host: Host, down_ms: int, amount: int) -> None:
        """Bits flip while a process is down: in the log, or (0) in a snapshot. What cannot be got back from the others
        would be no fault of the core's, so no other voter may be recovering, and a majority must be left."""
        world = self.world
        if not world.operator.may_lose(host):
            return
        if host.node is not None:
            world.crash(host)
            world.at(down_ms, world.revive, host)
        is_hit = self.lose(host, amount)
        if is_hit:
            world.note("the disk of node %d is damaged: %s", host.node_id, host.disk.damaged_until)
            world.tally["damaged disks"] += 1

    def lose(self, host: Host, amount: int) -> bool:
        """This many batches off the end of the log, or a snapshot; a leader may have counted what it held."""
        before = copy(host.disk)
        before.durable, before.durable_ends = list(before.durable), list(before.durable_ends)
        before.snapshots = dict(before.snapshots)
        self.world.operator.former_disks.setdefault(host.key, []).append(before)
        host.disk_before_damage = before
        return host.disk.damage_snapshot() if amount == 0 else host.disk.damage_log(amount)

    # What must hold

    def after_turn(self, host: Host, ready: Ready) -> None:
        node = host.node
        assert node is not None
        if ready.has_caught_up and host.damaged_epoch is not None:
            if not node.replica.config.can_be_voter:
                host.disk.flush_now()  # the core does not wait for it, so the repair is recorded after a flush
            self._check_whole(host)
            host.damaged_epoch = None
        if host.damaged_epoch is not None and node.role in (*STANDING, "leader"):
            raise InvariantBroken(f"node {host.node_id} has lost part of its log and became {node.role}")
        if host.paused_writes_since_ms is not None:
            self._check_paused(host, ready, host.paused_writes_since_ms)

    def _check_paused(self, host: Host, ready: Ready, since_ms: int) -> None:
        node = host.node
        assert node is not None
        if (
            any(batch.base_offset >= host.written_when_full for batch in ready.append)
            or ready.snapshot_chunks
        ):
            raise InvariantBroken(f"node {host.node_id} writes, though its disk is full")
        if node.role in STANDING:
            raise InvariantBroken(f"node {host.node_id} became {node.role}, though its disk is full")
        # It hands over within an election timeout of its own clock, unless it is stopped meanwhile.
        patience_ms = 2 * self.world.options.election_timeout_ms + 10
        if node.role == "leader" and self.world.now_ms > max(since_ms, host.paused_until_ms) + patience_ms:
            raise InvariantBroken(
                f"node {host.node_id} leads on, though its disk is full since {since_ms} ms"
            )

    def _check_whole(self, host: Host) -> None:
        """What it may have acknowledged before it was damaged is on its disk again."""
        log = self.world.checkers.log
        assert host.disk_before_damage is not None
        before, now = (log.held_by(disk) for disk in (host.disk_before_damage, host.disk))
        if now < before:
            raise InvariantBroken(
                f"node {host.node_id} holds its log to be whole, but it had {before} of what is committed, "
                f"and has {now} now"
            )

    def response_leaves(self, host: Host, request: Request, response: Response) -> None:
        """A voter that lost part of its log votes for no candidate that might lack what it had acknowledged."""
        if not isinstance(request, VoteRequest) or not isinstance(response, VoteResponse):
            return
        if host.damaged_epoch is None or not response.vote_granted:
            return
        if request.last_offset_epoch <= host.damaged_epoch:
            raise InvariantBroken(
                f"node {host.node_id} has lost part of its log, and votes for node {request.candidate.id}"
            )
