"""Worlds of the consensus core (`tests.simulation.world`), with an operator that asks `kquorum may` first.

A spell of faults, of which some replicas stay down, lag or have lost their state. Then the operator asks about
replicas drawn at random, as the command does: two looks at the leader's DescribeQuorum, and the product's own view of
them. A yes is acted upon at once, without any shutdown in order: the process dies, and for a format its disk is
emptied. Meanwhile an append that begins then must be acknowledged, and all invariants of the simulator hold.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

from kquorum.cli.clients.quorum_client import QuorumStatus, ReplicaLag
from kquorum.cli.commands.may.action import Action
from kquorum.cli.commands.may.collecting import view_of
from kquorum.cli.commands.may.decision import ClusterView, decide
from kquorum.cli.commands.quorum.voter_checks import ObservedQuorum, replica_id_of
from kquorum.raft.leader.fetch_handler import describe_quorum
from kquorum.raft.messages import DescribeQuorumResponse, RemoveRaftVoterRequest, ReplicaStatus
from kquorum.raft.voters import ZERO_DIRECTORY
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.uuids import uuid_to_text
from tests.simulation.disk import SimulatedDisk
from tests.simulation.errors import InvariantBroken
from tests.simulation.faults import carry_out
from tests.simulation.hosts import Host
from tests.simulation.membership import Wish
from tests.simulation.run import _converge, plan_of
from tests.simulation.world import World

LOOKS = 4
"""How often the operator looks again when the leader changes meanwhile."""


@dataclass(frozen=True, slots=True)
class Asked:
    action: Action
    nodes: tuple[int, ...]


def _lag(status: ReplicaStatus) -> ReplicaLag:
    has_fetched = status.last_fetch_timestamp_ms >= 0
    return ReplicaLag(
        replica_id=status.replica_id,
        directory_id=None if status.directory_id == ZERO_DIRECTORY else uuid_to_text(status.directory_id),
        log_end_offset=status.log_end_offset if status.log_end_offset >= 0 else None,
        lag=None,
        last_fetch_timestamp_ms=status.last_fetch_timestamp_ms if has_fetched else None,
        last_caught_up_timestamp_ms=None,
    )


def observed(
    answer: DescribeQuorumResponse, now_ms: int, kraft_version: int, first: ObservedQuorum | None
) -> ObservedQuorum:
    status = QuorumStatus(
        leader_id=answer.leader_id,
        leader_epoch=answer.leader_epoch,
        high_watermark=answer.high_watermark,
        voters=tuple(map(_lag, answer.current_voters)),
        observers=tuple(map(_lag, answer.observers)),
    )
    before = () if first is None else (*first.status.voters, *first.status.observers)
    return ObservedQuorum(
        status=status,
        levels={"kraft.version": kraft_version},
        now_ms=now_ms,
        fetched_before={replica_id_of(each): each.last_fetch_timestamp_ms for each in before},
    )


class Operator:
    """Asks, acts and watches, one question after the other."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.tally: Counter[str] = Counter()
        self.down = set[int]()

    def look(self, first: ObservedQuorum | None = None) -> ObservedQuorum | None:
        """What the leader says; None without one."""
        leader = self.world.leader()
        if leader is None or leader.node is None:
            return None
        now_ms = leader.clock_ms(self.world.now_ms)
        answer = describe_quorum(leader.node.replica, now_ms)
        if answer.error is not ErrorCode.none:
            return None
        is_dynamic = any(each.directory_id != ZERO_DIRECTORY for each in answer.current_voters)
        return observed(answer, now_ms, int(is_dynamic), first)

    def view(self) -> ClusterView | None:
        header = pb.ImageChunk(header=pb.ImageHeader())
        for _ in range(LOOKS):
            # What a node sent before it died must not look like a sign of life.
            self.world.run_until(self.world.now_ms + self.world.options.fetch_timeout_ms)
            first = self.look()
            self.world.run_until(self.world.now_ms + self.world.options.fetch_timeout_ms)
            second = None if first is None else self.look(first)
            if first is None or second is None:
                continue
            term = (first.status.leader_id, first.status.leader_epoch)
            if term == (second.status.leader_id, second.status.leader_epoch):
                return view_of(first, second, [header])
        return None

    def carry_out(self, asked: Asked, *, force: bool = False) -> bool:
        """Whether it was allowed. Raises InvariantBroken if what was done does harm."""
        view = self.view()
        if view is None:
            self.tally["no: no leader"] += 1
            return False
        verdict = decide(view, asked.action, asked.nodes)
        self.world.note("operator: may %s %s: %s", asked.action, asked.nodes, verdict.reasons or "yes")
        for reason in verdict.reasons:
            self.tally[f"no: {reason.why}"] += 1
        if not verdict.is_yes and not force:
            return False
        self.tally[f"yes: {asked.action}"] += 1
        hosts = [self.world.hosts[node_id] for node_id in asked.nodes]
        if asked.action is Action.REMOVE and not self._remove(hosts[0]):
            self.tally["removals refused"] += 1
            return False
        for host in hosts:
            self._take_down(host, asked.action)
        self._watch()
        for host in hosts:
            if asked.action is not Action.REMOVE:
                self.world.revive(host)
        if asked.action is not Action.REMOVE:
            self.world.run_until(self.world.now_ms + 3 * self.world.options.fetch_timeout_ms)
        return verdict.is_yes

    def _take_down(self, host: Host, action: Action) -> None:
        if host.node is not None:
            self.world.crash(host)
        if action is not Action.FORMAT:
            return
        world = self.world
        world.operator.former_disks.setdefault(host.key, []).append(host.disk)
        host.disk = SimulatedDisk(host.disk.random_source, host.disk.segment_batches)
        host.disk.has_lost_its_state = True

    def _remove(self, host: Host) -> bool:
        """Until the leader has committed a set without it; whether that came about."""
        world = self.world

        def request() -> RemoveRaftVoterRequest | None:
            leader = world.leader()
            voters = leader.node.voters.voters if leader is not None and leader.node is not None else {}
            found = voters.get(host.node_id)
            if found is None:
                return None
            return RemoveRaftVoterRequest(cluster_id=world.cluster_id, voter=found.key)

        if request() is None:
            return True  # an observer
        world.operator._wish(Wish(f"remove node {host.node_id}", request))
        bound_ms = world.now_ms + world.options.quiet_ms
        while world.now_ms < bound_ms:
            world.run_until(world.now_ms + 40)
            leader = world.leader()
            if leader is None or leader.node is None or leader.node_id == host.node_id:
                continue
            if host.node_id not in leader.node.voters.voters and leader.node.high_watermark >= 0:
                view = self.look()
                if view is not None and view.status.high_watermark >= leader.node.log_end_offset:
                    return True
        if world.operator.wish is None:
            return False  # the leader refused it for good
        raise InvariantBroken(
            f"node {host.node_id} may be removed, and is not in {world.options.quiet_ms} ms"
        )

    def _watch(self) -> None:
        world = self.world
        acted_ms = world.now_ms
        while world.now_ms < acted_ms + world.options.quiet_ms:
            world.run_until(world.now_ms + 40)
            if world.clients.history.last_acknowledged_begun_ms > acted_ms:
                return
        raise InvariantBroken(f"no append was acknowledged in {world.options.quiet_ms} ms")


def settle(world: World, down: list[Host]) -> None:
    """Faults end, except that these replicas stay down until the schedule starts them."""
    world.is_faulty = False
    world.network.calm()
    world.traps.clear()
    for host in world.hosts.values():
        host.paused_until_ms = world.now_ms
        host.dies_at_step = 0
        host.flush_fails = False
        world.failing_disks.make_room(host)
        host.flush_ms_max = min(2, host.flush_ms_max)
        host.state_ms = (0, min(2, host.state_ms[1]))
        if host in down and host.node is not None:
            world.crash(host)


class MayFailed(AssertionError):
    """Carries the seed and what happened last."""

    def __init__(self, seed: int, cause: BaseException, trace: list[str]) -> None:
        tail = "\n".join(trace[-60:])
        super().__init__(f"seed {seed}: {type(cause).__name__}: {cause}\n{tail}")
        self.cause = cause


def simulate(seed: int, *, questions: int = 3, is_traced: bool = False) -> Counter[str]:
    """Run one seed; raises MayFailed. A run that fails is run again to be told."""
    options, schedule = plan_of(seed)
    draw = Random(seed ^ 0x3A7)
    trace: list[str] = []
    try:
        world = World(seed, options, is_traced=is_traced, trace=trace)
        for fault in schedule:
            world.at(fault.at_ms, carry_out, world, fault)
        world.clients.begin()
        world.run_until(draw.randint(options.faults_until_ms // 4, options.faults_until_ms))
        controllers = [host for host in world.hosts.values() if host.can_be_voter]
        down = draw.sample(controllers, min(len(controllers) - 1, draw.choice((0, 0, 0, 1, 2))))
        settle(world, down)
        world.run_until(world.now_ms + draw.choice((0, 1, 4)) * options.fetch_timeout_ms)
        operator = Operator(world)
        for _ in range(questions):
            action = draw.choice((Action.STOP, Action.STOP, Action.RESTART, Action.FORMAT, Action.REMOVE))
            count = 2 if action is Action.STOP and len(controllers) > 4 and draw.random() < 0.3 else 1
            nodes = tuple(host.node_id for host in draw.sample(controllers, count))
            operator.carry_out(Asked(action, nodes))
        world.heal()
        _converge(world)
        world.clients.history.check_against(world.checkers.committed.batches)
    except Exception as cause:
        if not is_traced:
            return simulate(seed, questions=questions, is_traced=True)
        raise MayFailed(seed, cause, trace) from cause
    return operator.tally
