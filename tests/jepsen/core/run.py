"""One run: a network, a cluster in it, the interpreter over both, the checkers, the store."""

import os
import shlex
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random
from types import FrameType

from rich.console import Console

from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.cluster import Cluster, DiskMaker
from tests.jepsen.core.history import History
from tests.jepsen.core.judging import judge
from tests.jepsen.core.members import Members
from tests.jepsen.core.operations import Operations
from tests.jepsen.core.store import RunFolder
from tests.jepsen.disk.build import Shim, ShimUnavailable
from tests.jepsen.disk.faulty_disk import FaultyDisk
from tests.jepsen.faults.catalogue import NemesisPlan, plan
from tests.jepsen.faults.fault import Scene
from tests.jepsen.faults.quorum_view import QuorumView
from tests.jepsen.mutants.environment import planted_environment
from tests.jepsen.net.iproute import back_at_the_end
from tests.jepsen.net.namespaces import NamespaceNetwork
from tests.jepsen.net.network import Network, NetworkUnavailable
from tests.jepsen.net.proxies import ProxyNetwork
from tests.jepsen.report import write_report
from tests.jepsen.report.terminal import Reporter
from tests.jepsen.workloads.catalogue import kinds_of
from tests.jepsen.workloads.workload import WorkloadKind

NETS = ("auto", "netns", "proxy")
Setting = tuple[str, int | str]
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`rate` and `concurrency` are each workload's own: operations a second, and clients. `config` is every node's, and
    outdoes what the harness sets."""

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
    config: tuple[Setting, ...] = ()
    pages: bool = True

    @property
    def command(self) -> str:
        """What runs this again, with the same seed."""
        words = ["python -m tests.jepsen", f"--workload {self.workload}", f"--nemesis '{self.nemesis}'"]
        words += [f"--time {self.time_s:g}", f"--nodes {self.nodes}", f"--brokers {self.brokers}"]
        words += [f"--net {self.net}", f"--rate {self.rate:g}", f"--concurrency {self.concurrency}"]
        words += [
            f"--quiet {self.quiet_s:g}",
            f"--fault {self.fault_s:g}",
            f"--op-timeout {self.op_timeout_s:g}",
        ]
        words += [f"--seed {self.seed}", *([] if self.mutant is None else [f"--mutant {self.mutant}"])]
        words += [f"--config {shlex.quote(f'{key}={value}')}" for key, value in self.config]
        return " ".join(words)


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
    random_source = Random(options.seed)
    nemesis = plan(options.nemesis, options.time_s, options.quiet_s, options.fault_s, random_source)
    members = Members.of(options.nodes, options.brokers, max(kind.spares for kind in kinds))
    # A comma in a folder of logs would part two folders.
    folder = RunFolder(store, "+".join(kind.name for kind in kinds))
    reporter = Reporter(console, options.time_s)
    test: dict[str, object] = asdict(options) | {"members": asdict(members), "command": options.command}
    with ExitStack() as stack:
        stack.enter_context(interruptible())
        network = open_network(stack, options.net, members)
        # Before there are threads: those of libraries (gRPC's) are then on the clients' side like this one.
        stack.enter_context(as_client(network))
        test |= {"network": network.name}
        folder.write_test(test)
        reporter.say(f"{folder.path}: {len(members.all)} nodes, network: {network.name}, seed {options.seed}")
        make_disk, no_disks = _disk_maker(nemesis)
        cluster = Cluster(
            folder.path,
            members,
            network,
            overrides=_overrides(kinds) | dict(options.config),
            environment={} if options.mutant is None else planted_environment(options.mutant),
            make_disk=make_disk,
            no_disks=no_disks,
        )
        stack.enter_context(cluster)
        cluster.wait_until_brokers_serve()
        scene = Scene(network, cluster, members, QuorumView(network, members.quorum), random_source)
        history = Operations(options, kinds, scene, reporter, folder).run(nemesis)
        counters = network.counters()
    results = judge(folder.path, kinds, members, history, nemesis=options.nemesis)
    results["network"] = {"name": network.name, "counters": counters}
    folder.write_results(results)
    if options.pages:
        for problem in write_report(folder.path, history, results, test):
            reporter.say(f"warning: {problem}")
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
