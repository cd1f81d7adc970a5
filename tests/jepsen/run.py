"""One run: a network, a cluster in it, the interpreter over both, the checkers, the store."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from types import FrameType

from rich.console import Console

from tests.jepsen.checkers.availability import HEAL, Availability
from tests.jepsen.checkers.node_logs import NodeLogs
from tests.jepsen.checkers.set_full import SetFull
from tests.jepsen.checkers.verdicts import VALID_KEY, Checker, Results, Stats, Verdict, check_all
from tests.jepsen.cluster import Cluster, Members
from tests.jepsen.faults.nemesis import Nemesis, QuorumView, plan
from tests.jepsen.generator import SECOND_NS, Phases, Schedule, Together
from tests.jepsen.history import History, read_history
from tests.jepsen.interpreter import Interpreter
from tests.jepsen.net.namespaces import NamespaceNetwork
from tests.jepsen.net.network import Network, NetworkUnavailable
from tests.jepsen.net.proxies import ProxyNetwork
from tests.jepsen.report.terminal import Reporter
from tests.jepsen.store import HISTORY_FILE, RunFolder
from tests.jepsen.workloads import topics_set

NETS = ("auto", "netns", "proxy")
WORKLOADS = (topics_set.NAME,)
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`concurrency` is the number of clients; each speaks to one broker."""

    workload: str = topics_set.NAME
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
    """Raises NetworkUnavailable, NodeFailed or Interrupted; the folder then holds what there is."""
    folder = RunFolder(store, options.workload)
    members = Members.of(options.nodes, options.brokers)
    reporter = Reporter(console, options.time_s)
    with ExitStack() as stack:
        stack.enter_context(interruptible())
        network = open_network(stack, options.net, members)
        folder.write_test(asdict(options) | {"network": network.name, "members": asdict(members)})
        reporter.say(f"{folder.path}: {len(members.all)} nodes, network: {network.name}, seed {options.seed}")
        cluster = stack.enter_context(Cluster(folder.path, members, network))
        as_client(network, cluster.wait_until_brokers_serve)
        history = _run_ops(options, members, network, reporter, folder)
        counters = network.counters()
    results = judge(folder.path, history, members.brokers)
    results["network"] = {"name": network.name, "bytes": counters}
    folder.write_results(results)
    return Outcome(folder.path, history, results)


def judge(folder: Path, history: History, brokers: Sequence[int]) -> Results:
    checkers: list[Checker] = [Stats(), SetFull(brokers), Availability(), NodeLogs(folder)]
    return check_all(checkers, history)


def judge_stored(folder: Path) -> Results:
    """Judge the history in a run's folder again. Raises OSError or MalformedHistory."""
    history = read_history(folder / HISTORY_FILE)
    brokers = sorted({op.node for op in history if op.node is not None})
    return judge(folder, history, brokers)


def _run_ops(
    options: Options, members: Members, network: Network, reporter: Reporter, folder: RunFolder
) -> History:
    """The history is written also when the run is interrupted."""
    workload = topics_set.TopicsSet(members.brokers, options.rate, options.concurrency, Random(options.seed))
    steps = plan(options.nemesis, options.time_s, options.quiet_s, options.fault_s)
    generator = Phases(
        Together(workload.main(round(options.time_s * SECOND_NS)), Schedule(steps)),
        Schedule([(0.0, HEAL)]),
        workload.final(),
    )
    nodes = [members.brokers[place % len(members.brokers)] for place in range(options.concurrency)]
    interpreter = Interpreter(
        [topics_set.make_worker(network, node, options.op_timeout_s) for node in nodes],
        nodes,
        Nemesis(network, QuorumView(network, members.controllers), members.all),
        reporter.on_event,
        reporter.on_idle,
    )
    try:
        with reporter:
            return interpreter.run(generator)
    finally:
        folder.write_history(interpreter.history)


def open_network(stack: ExitStack, kind: str, members: Members) -> Network:
    """`auto` takes namespaces where they work, proxies elsewhere. Raises NetworkUnavailable."""
    if kind in ("auto", "netns"):
        try:
            return stack.enter_context(NamespaceNetwork(members.all))
        except NetworkUnavailable:
            if kind == "netns":
                raise
    return stack.enter_context(ProxyNetwork(members.all, targets=members.controllers))


def as_client(network: Network, work: Callable[[], None]) -> None:
    """Do it in a thread of the clients' side; raises what it raises."""
    failures: list[BaseException] = []

    def enter_and_work() -> None:
        try:
            network.enter_as_client()
            work()
        except Exception as error:  # noqa: BLE001 - carried over to the thread that waits
            failures.append(error)

    thread = threading.Thread(target=enter_and_work, name="jepsen-client", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)  # in short waits, so that a signal is heard
    if failures:
        raise failures[0]


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
