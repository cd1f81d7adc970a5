"""One run: a network, a cluster in it, the interpreter over both, the checkers, the store."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random
from types import FrameType

from rich.console import Console

from tests.jepsen.checkers.availability import HEAL, Availability
from tests.jepsen.checkers.faults_happened import FaultsHappened
from tests.jepsen.checkers.node_logs import NodeLogs
from tests.jepsen.checkers.verdicts import VALID_KEY, Checker, Results, Stats, Verdict, check_all
from tests.jepsen.cluster import Cluster, DiskMaker
from tests.jepsen.disk.build import Shim, ShimUnavailable
from tests.jepsen.disk.faulty_disk import FaultyDisk
from tests.jepsen.faults.catalogue import NONE, NemesisPlan, plan
from tests.jepsen.faults.fault import Scene
from tests.jepsen.faults.nemesis import Nemesis
from tests.jepsen.faults.quorum_view import QuorumView
from tests.jepsen.generator import (
    SECOND_NS,
    Generator,
    OnSeats,
    Phases,
    Schedule,
    SideBySide,
    Step,
    Together,
)
from tests.jepsen.history import History, read_history
from tests.jepsen.interpreter import Interpreter
from tests.jepsen.members import Members
from tests.jepsen.mutants.environment import planted_environment
from tests.jepsen.net.iproute import back_at_the_end
from tests.jepsen.net.namespaces import NamespaceNetwork
from tests.jepsen.net.network import Network, NetworkUnavailable
from tests.jepsen.net.proxies import ProxyNetwork
from tests.jepsen.report.terminal import Reporter
from tests.jepsen.store import HISTORY_FILE, TEST_FILE, RunFolder
from tests.jepsen.workloads.catalogue import kinds_of
from tests.jepsen.workloads.workload import Judged, Seat, Setup, Workload, WorkloadKind

NETS = ("auto", "netns", "proxy")
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`rate` and `concurrency` are each workload's own: operations a second, and clients."""

    workload: str = "topics-set"
    nemesis: str
    time_s: float = 20.0
    nodes: int = 3
    brokers: int = 3
    net: str = "auto"
    rate: float = 40.0
    concurrency: int = 12
    quiet_s: float = 5.0
    fault_s: float = 8.0
    op_timeout_s: float = 5.0
    seed: int = 1
    mutant: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    folder: Path
    history: History
    results: Results

    @property
    def verdict(self) -> Verdict:
        verdict = self.results[VALID_KEY]
        assert isinstance(verdict, Verdict)
        return verdict


class Interrupted(BaseException):
    """A signal asked us to end; everything is cleaned up on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_status = 128 + number


def run(options: Options, store: Path, console: Console) -> Outcome:
    """Raises NetworkUnavailable, NodeFailed, UnknownWorkload, UnknownFault or Interrupted; what there is by then is
    in the run's folder."""
    kinds = kinds_of(options.workload)
    dice = Random(options.seed)
    nemesis = plan(options.nemesis, options.time_s, options.quiet_s, options.fault_s, dice)
    members = Members.of(options.nodes, options.brokers, max(kind.spares for kind in kinds))
    # A comma in a folder of logs would part two folders.
    folder = RunFolder(store, "+".join(kind.name for kind in kinds))
    reporter = Reporter(console, options.time_s)
    with ExitStack() as stack:
        stack.enter_context(interruptible())
        network = open_network(stack, options.net, members)
        # Before there are threads: those of libraries (gRPC's) are then on the clients' side like this one.
        stack.enter_context(as_client(network))
        folder.write_test(asdict(options) | {"network": network.name, "members": asdict(members)})
        reporter.say(f"{folder.path}: {len(members.all)} nodes, network: {network.name}, seed {options.seed}")
        make_disk, no_disks = _disk_maker(nemesis)
        cluster = Cluster(
            folder.path,
            members,
            network,
            overrides=_overrides(kinds),
            environment={} if options.mutant is None else planted_environment(options.mutant),
            make_disk=make_disk,
            no_disks=no_disks,
        )
        stack.enter_context(cluster)
        cluster.wait_until_brokers_serve()
        scene = Scene(network, cluster, members, QuorumView(network, members.quorum), dice)
        history = _Running(options, kinds, scene, reporter, folder).run(nemesis)
        counters = network.counters()
    results = judge(folder.path, kinds, members, history, is_hurt=bool(nemesis.steps))
    results["network"] = {"name": network.name, "bytes": counters}
    folder.write_results(results)
    return Outcome(folder.path, history, results)


def _overrides(kinds: Sequence[WorkloadKind]) -> dict[str, object]:
    return {key: value for kind in kinds for key, value in kind.config.items()}


def _disk_maker(nemesis: NemesisPlan) -> tuple[DiskMaker | None, str]:
    """With the reason where there is none."""
    if not nemesis.needs_shim:
        return None, "no fault of this run needs faulty disks"
    try:
        shim = Shim.build(Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kquorum")
    except (ShimUnavailable, OSError) as error:
        return None, str(error)
    return partial(FaultyDisk, shim), ""


def judge(
    folder: Path, kinds: Sequence[WorkloadKind], members: Members, history: History, *, is_hurt: bool
) -> Results:
    """`is_hurt`: there should have been faults."""
    judged = Judged(folder=folder, members=members)
    writes = frozenset(f for kind in kinds for f in kind.writes)
    reads = frozenset(f for kind in kinds for f in kind.reads)
    checkers: list[Checker] = [Stats(), *(each for kind in kinds for each in kind.checkers(judged))]
    if is_hurt:
        checkers.append(FaultsHappened())
    return check_all([*checkers, Availability(writes, reads), NodeLogs(folder)], history)


def judge_stored(folder: Path) -> Results:
    """Judge the history in a run's folder again. Raises OSError, MalformedHistory or UnknownWorkload."""
    history = read_history(folder / HISTORY_FILE)
    test = json.loads((folder / TEST_FILE).read_text())
    members = Members(**{name: tuple(node_ids) for name, node_ids in test["members"].items()})
    return judge(folder, kinds_of(test["workload"]), members, history, is_hurt=test["nemesis"] != NONE)


@dataclass(frozen=True, slots=True)
class _Part:
    workload: Workload
    seats: tuple[Seat, ...]


class _Running:
    """The operations of one run: those of its workloads side by side, and the nemesis'."""

    def __init__(
        self,
        options: Options,
        kinds: Sequence[WorkloadKind],
        scene: Scene,
        reporter: Reporter,
        folder: RunFolder,
    ) -> None:
        self._time_ns = round(options.time_s * SECOND_NS)
        self._scene = scene
        self._reporter = reporter
        self._folder = folder
        self._parts = [self._part(kind, options) for kind in kinds]

    def run(self, nemesis: NemesisPlan) -> History:
        """The history is written also when the run is interrupted."""
        generator = Phases(
            Together(self._beside(lambda each: each.main(self._time_ns)), Schedule(nemesis.steps)),
            Schedule([Step(0.0, HEAL)]),
            self._beside(lambda each: each.final()),
        )
        seats = [seat for part in self._parts for seat in part.seats]
        interpreter = Interpreter(
            [seat.worker for seat in seats],
            [seat.node for seat in seats],
            Nemesis(self._scene, [kind.make() for kind in nemesis.faults]),
            self._reporter.on_event,
            self._reporter.on_idle,
        )
        try:
            with self._reporter:
                return interpreter.run(generator)
        finally:
            self._folder.write_history(interpreter.history)

    def _part(self, kind: WorkloadKind, options: Options) -> _Part:
        setup = Setup(
            network=self._scene.network,
            cluster=self._scene.cluster,
            members=self._scene.members,
            # A workload's dice are its own: which others run beside it does not change what it asks.
            dice=Random(f"{kind.name} {options.seed}"),
            rate=options.rate,
            concurrency=max(options.concurrency, kind.seats_min(self._scene.members)),
            op_timeout_s=options.op_timeout_s,
        )
        workload = kind.make(setup)
        return _Part(workload, tuple(workload.seats()))

    def _beside(self, part_of: Callable[[Workload], Generator]) -> Generator:
        total = sum(len(part.seats) for part in self._parts)
        firsts = [sum(len(part.seats) for part in self._parts[:place]) for place in range(len(self._parts))]
        return SideBySide(
            *(
                OnSeats(first, len(part.seats), total, part_of(part.workload))
                for first, part in zip(firsts, self._parts, strict=True)
            )
        )


def open_network(stack: ExitStack, kind: str, members: Members) -> Network:
    """`auto` takes namespaces where they work, proxies elsewhere. Raises NetworkUnavailable."""
    if kind in ("auto", "netns"):
        try:
            return stack.enter_context(NamespaceNetwork(members.all))
        except NetworkUnavailable:
            if kind == "netns":
                raise
    return stack.enter_context(ProxyNetwork(members.all, targets=members.quorum))


@contextmanager
def as_client(network: Network) -> Iterator[None]:
    """This thread is on the clients' side, and with it all threads that begin within the block."""
    with ExitStack() as stack:
        if isinstance(network, NamespaceNetwork):
            stack.enter_context(back_at_the_end())
        network.enter_as_client()
        yield


@contextmanager
def interruptible() -> Iterator[None]:
    """The first SIGINT or SIGTERM raises Interrupted; more of them do not disturb the cleaning up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _STOP_SIGNALS}
    owner = os.getpid()

    def stop(number: int, _: FrameType | None) -> None:
        if os.getpid() != owner:
            os._exit(128 + number)  # a child between fork and exec
        for each in _STOP_SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(number)

    for number in _STOP_SIGNALS:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
