"""A schedule written by hand for controllers: what chance brings about in one world of eight."""

from collections.abc import Callable
from dataclasses import replace

from kquorum.raft.inputs import RequestReceived
from kquorum.raft.messages import TransferLeadershipRequest
from kquorum.wire.protocol.api_keys import ApiKey
from tests.simulation.controllers.machines import BrokerMachine, ControllerMachine
from tests.simulation.controllers.world import ControllerWorld
from tests.simulation.errors import InvariantBroken
from tests.simulation.hosts import Host, WaitingReply
from tests.simulation.run import plan_of

TOPICS = 80
PATIENCE_MS = 20_000


def leads_before_it_has_replayed() -> ControllerWorld:
    """A controller that has the whole log, and has replayed a part of it, decides nothing before it has the rest.

    A standby starts again and fetches a high watermark far above what its controller was handed; in that moment
    leadership is handed to it. It leads in the sense of Raft at once; its controller must wait for the rest of what
    was answered.
    """
    world = _calm_world()
    world.until(lambda: _active(world) is not None, "a controller decides")
    world.until(lambda: _serving(world) == 3, "three brokers serve")
    leader = _active(world)
    assert leader is not None
    for number in range(TOPICS):
        _create(world, leader, f"topic-{number}")
    world.until(lambda: len(world.admin.done_topics) == TOPICS, "the topics are made")
    standby = world.hosts[next(n for n in (1, 2, 3) if n != leader.node_id)]
    world.run_until(world.now_ms + 50)
    world.crash(standby)
    world.revive(standby)
    world.until(lambda: _is_replaying(world, standby), "the standby replays")
    leader.next_request_id += 1
    request = TransferLeadershipRequest(target_id=standby.node_id)
    leader.waiting_replies[leader.next_request_id] = WaitingReply(None, 0, 0, 0, request, 0)
    world.deliver(leader, leader.life, RequestReceived(leader.next_request_id, request))
    world.until(
        lambda: standby.node is not None and standby.node.replica.announced.leader_id == standby.node_id,
        "the standby leads",
    )
    assert standby.node is not None
    if world.machine_of(standby).feed.applied_offset >= standby.node.high_watermark:
        raise AssertionError("the schedule is void: the standby had replayed all before it led")
    world.until(lambda: _active(world) is standby, "its controller decides")
    world.check_end()
    return world


class DirectedWorld(ControllerWorld):
    def until(self, condition: Callable[[], bool], what: str) -> None:
        bound_ms = self.now_ms + PATIENCE_MS
        while not condition():
            if self.now_ms >= bound_ms:
                raise InvariantBroken(f"not within {PATIENCE_MS} ms: {what}")
            self.run_until(self.now_ms + 1)


def _calm_world() -> DirectedWorld:
    options = replace(
        plan_of(1, "controllers")[0],
        quorum="static",
        voters=3,
        spares=0,
        observers=3,
        election_timeout_ms=100,
        fetch_timeout_ms=300,
        delay_ms_max=1,
        flush_ms_max=0,
        state_ms_max=0,
        clock_drift_percent=0,
        shares_turns=True,
        max_fetch_bytes=1_000_000,
        snapshot_bytes=0,
        retention_percent=0,
        faults=(),
        fault_count=0,
    )
    return DirectedWorld(1, options, is_traced=True)


def _active(world: ControllerWorld) -> Host | None:
    for machine in world.machines.values():
        if isinstance(machine, ControllerMachine) and machine.is_alive and machine.controller.is_active:
            return machine.host
    return None


def _serving(world: ControllerWorld) -> int:
    return sum(
        isinstance(machine, BrokerMachine) and machine.is_serving for machine in world.machines.values()
    )


def _create(world: DirectedWorld, leader: Host, name: str) -> None:
    entry = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()}
    values = {"topics": [entry], "timeout": 1000, "validate_only": False}
    world.admin.ask(None, leader, ApiKey.CREATE_TOPICS, values, lambda _answer: None)
    world.run_until(world.now_ms + 2)


def _is_replaying(world: ControllerWorld, host: Host) -> bool:
    """It has the log, and its state machine was handed the first of it."""
    if host.node is None or host.node.high_watermark < TOPICS:
        return False
    return world.machine_of(host).feed.applied_offset < TOPICS // 2
