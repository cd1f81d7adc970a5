"""A host's state machine in these worlds: a controller or a broker, fed by the driver's own feed."""

import sys
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kquorum.broker.identity import BrokerIdentity, LifecycleConfig
from kquorum.broker.lifecycle import BrokerLifecycle
from kquorum.broker.lifecycle_states import BrokerState
from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.broker.state_machine import BrokerStateMachine
from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.controller import Controller
from kquorum.metadata.features import registration_features
from kquorum.metadata.image.image import MetadataImage
from kquorum.raft.adapters.delivery import CommitFeed
from kquorum.raft.ports import StateMachine
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.messages.broker_registration import Feature, Listener
from tests.simulation.building import CLUSTER_ID
from tests.simulation.hosts import CheapDice, Host

if TYPE_CHECKING:
    from tests.simulation.controllers.world import ControllerWorld


BATCHES_AT_ONCE = 4


class HostPort:
    """`raft.ports.RaftPort` of a host's running core; a proposal is followed by a turn, as the driver sees to it."""

    def __init__(self, world: "ControllerWorld", host: Host) -> None:
        self._world = world
        self._host = host

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host.node, name)

    def propose(self, now_ms: int, leader_epoch: int, values: Sequence[bytes]) -> int:
        assert self._host.node is not None, "a dead process proposes nothing"
        last_offset = self._host.node.propose(now_ms, leader_epoch, values)
        self._world.turn_soon(self._host)
        return last_offset

    def resign(self, _now_ms: int, _leader_epoch: int) -> None:
        """A controller gives up only over a bug of its own."""
        cause = sys.exc_info()[1]
        assert cause is None, f"the controller of node {self._host.node_id} failed: {cause!r}"
        raise AssertionError(f"the controller of node {self._host.node_id} gave up")


class HostLog:
    """What the feed reads: what was committed on this host and is not delivered yet, though the log may begin later by
    now."""

    def __init__(self) -> None:
        self._batches: deque[LogBatch] = deque()

    def take(self, batches: Sequence[LogBatch]) -> None:
        self._batches.extend(batches)

    def read_batches(self, start_offset: int, _max_bytes: int, end_offset: int) -> list[LogBatch]:
        while self._batches and self._batches[0].next_offset <= start_offset:
            self._batches.popleft()
        return [batch for batch in islice(self._batches, BATCHES_AT_ONCE) if batch.next_offset <= end_offset]


class Machine:
    """What both have; `machine` belongs to one life of the host's process."""

    machine: StateMachine

    def __init__(self, world: "ControllerWorld", host: Host) -> None:
        self.world = world
        self.host = host
        self.life = host.life
        self.wakes_at_ms: int | None = None
        self.is_delivering = False

    def begin(self) -> None:
        self.log = HostLog()
        log: Any = self.log
        self.feed = CommitFeed(log, self.machine, self.host.node_id, 0)

    @property
    def now_ms(self) -> int:
        return self.host.clock_ms(self.world.now_ms)

    @property
    def is_alive(self) -> bool:
        return self.host.life == self.life and self.host.node is not None

    @property
    def image(self) -> MetadataImage:
        raise NotImplementedError

    @property
    def state_hash(self) -> int:
        raise NotImplementedError

    def check(self) -> None:
        self.world.reference.check_state(
            self.host.node_id, self.image.provenance.last_contained_offset, self.state_hash
        )

    def deadline_ms(self) -> int | None:
        return self.machine.next_deadline_ms()

    def handle_time(self) -> None:
        self.machine.handle_time(self.now_ms)

    def arm(self) -> None:
        """Have `wake` called at the deadline."""
        deadline_ms = self.deadline_ms()
        if deadline_ms is None:
            return
        at_ms = max(self.host.world_ms_of(deadline_ms), self.world.now_ms)
        if self.wakes_at_ms is None or at_ms < self.wakes_at_ms:
            self.wakes_at_ms = at_ms
            self.world.at(at_ms - self.world.now_ms, self._wake, at_ms)

    def _wake(self, at_ms: int) -> None:
        if not self.is_alive or self.wakes_at_ms != at_ms:
            return
        self.wakes_at_ms = None
        pause_ms = self.host.paused_until_ms - self.world.now_ms
        if pause_ms > 0:
            self.wakes_at_ms = self.world.now_ms + pause_ms
            self.world.at(pause_ms, self._wake, self.wakes_at_ms)
            return
        deadline_ms = self.deadline_ms()
        if deadline_ms is not None and deadline_ms <= self.now_ms:
            self.handle_time()
        self.arm()


class ControllerMachine(Machine):
    def __init__(self, world: "ControllerWorld", host: Host) -> None:
        super().__init__(world, host)
        config = ControllerConfig(
            default_replication_factor=2,
            broker_session_timeout_ms=world.session_ms,
            metadata_max_idle_interval_ms=4 * world.options.fetch_timeout_ms,
            leader_imbalance_check_interval_seconds=1,
            unclean_leader_election_interval_ms=1000,
        )
        port: Any = HostPort(world, host)
        random_source = CheapDice(host.random_source.randint(0, 2**62))
        self.controller = Controller(config, port, random_source, CLUSTER_ID)
        self.machine = self.controller
        self.begin()

    @property
    def image(self) -> MetadataImage:
        return self.controller.committed_image

    @property
    def state_hash(self) -> int:
        return self.controller.state_hash


class BrokerMachine(Machine):
    def __init__(self, world: "ControllerWorld", host: Host) -> None:
        super().__init__(world, host)
        self.broker = BrokerStateMachine(MetadataCache())
        self.broker.fault_observers.append(self._refuse)
        self.machine = self.broker
        self.begin()
        number = host.node_id
        world.incarnations += 1
        self.incarnation_id = UUID(int=(number << 64) + world.incarnations)
        listener = Listener(name="PLAINTEXT", host=f"b{number}", port=9092)
        identity = BrokerIdentity(
            broker_id=number,
            cluster_id=CLUSTER_ID,
            incarnation_id=self.incarnation_id,
            listeners=(listener,),
            features=registration_features(Feature),
            log_dirs=(UUID(int=number * 1000),),
        )
        timing = LifecycleConfig(
            heartbeat_interval_ms=max(1, world.session_ms // 5),
            session_timeout_ms=world.session_ms,
            initial_registration_timeout_ms=10**9,
        )
        self.lifecycle = BrokerLifecycle(identity, timing, CheapDice(host.random_source.randint(0, 2**62)))
        self.lifecycle.start(self.now_ms)
        self.arm()

    @property
    def image(self) -> MetadataImage:
        return self.broker.image

    @property
    def state_hash(self) -> int:
        return self.broker.state_hash

    @property
    def is_serving(self) -> bool:
        return self.lifecycle.state is BrokerState.RUNNING and not self.lifecycle.is_fenced

    def deadline_ms(self) -> int | None:
        return self.lifecycle.next_deadline_ms()

    def handle_time(self) -> None:
        lifecycle = self.lifecycle
        lifecycle.handle_time(self.now_ms)
        if lifecycle.state is BrokerState.RECOVERY:
            lifecycle.set_ready_to_unfence(self.now_ms)
        request = lifecycle.maybe_next_request(self.now_ms, self.broker.applied_offset)
        if request is not None:
            self.world.admin.ask_for_broker(self, request)

    def _refuse(self, reason: str) -> None:
        raise AssertionError(f"broker {self.host.node_id} cannot replay what was committed: {reason}")
