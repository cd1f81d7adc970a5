"""The world of `tests.simulation.world` with real state machines in it."""

from collections.abc import Iterable
from dataclasses import replace

from kquorum.metadata.snapshot import LoadedSnapshot
from kquorum.raft.node import RaftNode
from kquorum.raft.ready import LeaderAndEpoch
from kquorum.wire.log_batch import LogBatch
from tests.simulation.clients import Clients
from tests.simulation.controllers.admin import Admin
from tests.simulation.controllers.machines import BrokerMachine, ControllerMachine, Machine
from tests.simulation.controllers.reference import Reference
from tests.simulation.errors import InvariantBroken
from tests.simulation.history import History
from tests.simulation.hosts import Host
from tests.simulation.options import Options
from tests.simulation.snapshot_files import SnapshotFile
from tests.simulation.world import World

MOST_OBSERVERS = 3
# What is drawn for replicas of nothing in particular, and would only repeat here what it finds there.
LEFT_OUT = ("burst", "bad download", "damaged disk", "lose state", "full disk")
SESSION_IN_FETCH_TIMEOUTS = 4


def options_for(options: Options) -> Options:
    """The world that a seed draws, with brokers in it."""
    return replace(
        options,
        observers=max(options.observers, MOST_OBSERVERS),
        read_percent=0,
        uses_wire=False,
        mixes_releases=False,
        faults=tuple(kind for kind in options.faults if kind not in LEFT_OUT),
    )


class ControllerHistory(History):
    """Each response to a client is checked when it is sent."""

    def __init__(self, world: "ControllerWorld") -> None:
        super().__init__()
        self._world = world

    def check_against(self, committed: Iterable[LogBatch]) -> None:
        self._world.check_end()


class ControllerClients(Clients):
    """Hands what is committed to the controllers and brokers, and asks for changes."""

    world: "ControllerWorld"

    def __init__(self, world: "ControllerWorld") -> None:
        super().__init__(world)
        self.history = ControllerHistory(world)

    def _operate(self, host: Host) -> None:
        self.world.admin.operate(host)

    def apply(self, host: Host, high_watermark: int) -> None:
        machine = self.world.machine_of(host)
        if host.loading is None:
            machine.log.take(host.disk.between(host.applied, high_watermark))
        super().apply(host, high_watermark)
        machine.feed.advance(high_watermark)
        self._deliver(machine)

    def _deliver(self, machine: Machine) -> None:
        """A piece, and the rest in later turns, as the driver does."""
        machine.is_delivering = False
        if not machine.is_alive or machine.host.loading is not None:
            return
        if machine.feed.has_more:
            machine.feed.deliver(machine.now_ms)
            machine.check()
        self.world.maybe_activated(machine)
        machine.arm()
        if machine.feed.has_more and not machine.is_delivering:
            machine.is_delivering = True
            self.world.at(self.world.admin.some_ms(3), self._deliver, machine)

    def lead_changed(self, host: Host, leader: LeaderAndEpoch) -> None:
        machine = self.world.machine_of(host)
        machine.feed.lead_changed(machine.now_ms, leader)
        self.world.maybe_activated(machine)
        machine.arm()

    def loaded(self, host: Host, snapshot: SnapshotFile) -> None:
        super().loaded(host, snapshot)
        machine = self.world.machine_of(host)
        snapshot_id = snapshot.snapshot_id
        self.world.reference.catch_up()
        image = self.world.reference.images.get(snapshot_id.offset - 1)
        if image is None:
            raise InvariantBroken(f"no committed state ends at {snapshot_id.offset}, where a snapshot does")
        machine.feed.begin_loading(snapshot_id)
        machine.feed.loaded(machine.now_ms, snapshot_id, LoadedSnapshot(image, None))
        machine.check()


class ControllerWorld(World):
    clients: ControllerClients

    def __init__(
        self,
        seed: int,
        options: Options,
        node_class: type[RaftNode] = RaftNode,
        *,
        is_traced: bool = False,
        trace: list[str] | None = None,
    ) -> None:
        self.machines: dict[int, Machine] = {}
        self.incarnations = 0
        self.session_ms = SESSION_IN_FETCH_TIMEOUTS * options.fetch_timeout_ms
        # When, by its own clock, a controller became the active one of an epoch.
        self.activated_ms: dict[int, int] = {}
        self._fences_seen = 0
        super().__init__(seed, options, node_class, is_traced=is_traced, trace=trace)

    def make_clients(self) -> ControllerClients:
        self.reference = Reference(self.checkers.committed)
        self.admin = Admin(self)
        return ControllerClients(self)

    def machine_of(self, host: Host) -> Machine:
        """Made for each life of a process."""
        machine = self.machines.get(host.node_id)
        if machine is None or machine.life != host.life:
            kind = ControllerMachine if host.can_be_voter else BrokerMachine
            machine = self.machines[host.node_id] = kind(self, host)
        return machine

    def start(self, host: Host) -> None:
        super().start(host)
        if host.node is not None:
            self.machine_of(host)

    def turn_soon(self, host: Host) -> None:
        """As the driver: what a state machine proposed goes out at the end of this turn of the loop."""
        if host.node is not None and not host.has_turn_due:
            host.has_turn_due = True
            self.at(0, self._shared_turn, host, host.life)

    def shut_down(self, host: Host, patience_ms: int) -> None:
        """A broker asks first whether it may go."""
        machine = self.machines.get(host.node_id)
        if isinstance(machine, BrokerMachine) and machine.is_alive and machine.is_serving:
            self.note("broker %d wants to go", host.node_id)
            machine.lifecycle.begin_controlled_shutdown(machine.now_ms)
            machine.arm()
            self.at(patience_ms + 2 * self.session_ms, self._lose_patience, host, host.life)
        else:
            super().shut_down(host, patience_ms)

    def _lose_patience(self, host: Host, life: int) -> None:
        if host.life == life:
            super().shut_down(host, 1)

    def end_process(self, host: Host) -> None:
        super().shut_down(host, 1)

    # Checks

    def maybe_activated(self, machine: Machine) -> None:
        """A controller that begins to decide knows everything that was ever answered as done."""
        if (
            not isinstance(machine, ControllerMachine)
            or not machine.controller.is_active
            or machine.host.node is None
        ):
            return
        epoch = machine.host.node.leader_epoch
        if epoch in self.activated_ms:
            return
        self.activated_ms[epoch] = machine.now_ms
        self.tally["activations"] += 1
        known = machine.controller.image.topics.by_id
        lost = self.admin.done_topics.keys() - known.keys() - self.reference.removed_topic_ids
        if lost:
            name = self.admin.done_topics[min(lost)]
            raise InvariantBroken(
                f"topic {name} was made, and the controller of epoch {epoch} does not know it"
            )

    def run_until(self, end_ms: int) -> None:
        super().run_until(end_ms)
        self._check_fences()

    def _check_fences(self) -> None:
        """A controller gives every broker a whole session before it takes it for dead."""
        self.reference.catch_up()
        for epoch, time_ms, broker in self.reference.fenced[self._fences_seen :]:
            if broker in self.admin.leaving:
                continue
            self.tally["sessions that expired"] += 1
            since_ms = self.activated_ms.get(epoch)
            if since_ms is not None and time_ms - since_ms < self.session_ms:
                raise InvariantBroken(
                    f"broker {broker[0]} is fenced {time_ms - since_ms} ms after its controller began to decide"
                )
        self._fences_seen = len(self.reference.fenced)

    def check_end(self) -> None:
        """All agree, and every broker gets back to work."""
        bound_ms = self.now_ms + 4000 + 8 * self.session_ms
        while self.now_ms < bound_ms and (missing := self._what_is_missing()):
            self.run_until(self.now_ms + 50)
        if missing := self._what_is_missing():
            raise InvariantBroken(f"in spite of quiet {missing}")
        for machine in self.machines.values():
            machine.check()
        self.tally["topics"] += len(self.reference.image.topics.by_id)

    def _what_is_missing(self) -> str:
        image = self.reference.image
        for node_id, machine in self.machines.items():
            if isinstance(machine, BrokerMachine):
                broker = image.cluster.brokers.get(node_id)
                if not machine.is_serving or broker is None or broker.fenced:
                    return f"broker {node_id} is {machine.lifecycle.state.name} and known as {broker}"
            if machine.image.provenance.last_contained_offset < image.provenance.last_contained_offset:
                return f"node {node_id} is behind"
        return ""
