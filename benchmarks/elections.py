"""How long clients go without a leader: from its death, its clean shutdown or its hand-over to the next commit.

    python -m benchmarks.elections [--times 10] [--fast] [--json] [--timeouts default tight] [--ways kill stop transfer]

Three real controllers on loopback, each a process of `kquorum start`, and one client that writes through whichever
controller takes it (a record a write, one at a time, every 10 ms; while none takes it, all are asked every 2 ms). Each
time the leader is taken away: `kill` is SIGKILL, `stop` is SIGTERM, `transfer` hands leadership to another voter. The
time counts from the signal (or the request) to the first write that another controller acknowledges. Before the next
time all three run and have the whole log again.

The limit of a kill is the fetch timeout: nobody may doubt a leader sooner. The limit of an announced departure is a
write of the same run, which takes a round of messages and two flushes. That no acknowledged write is lost is checked
throughout.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from benchmarks._quorum_writer import Acknowledged, Writer
from benchmarks._report import hardware, percentile, print_result
from cli.errors import CliError
from cli.output import error_console
from cli.processes import NodeFailed, wait_until
from cli.quorum_status import QuorumStatus
from tests.support.cluster import CLUSTER_ID, Cluster

if TYPE_CHECKING:
    from rich.progress import Progress

COMMIT_TIMEOUT_S = 60.0
CATCH_UP_TIMEOUT_S = 60.0
TRANSFER_TIMEOUT_S = 10.0
DEFAULT_TIMES, FAST_TIMES = 10, 2


class WayUnavailableError(Exception):
    """The nodes cannot lose their leader this way; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """The two which decide how soon a lost leader is replaced, in ms."""

    name: str
    election_ms: int
    fetch_ms: int

    def overrides(self) -> dict[str, object]:
        return {
            "controller.quorum.election.timeout.ms": self.election_ms,
            "controller.quorum.fetch.timeout.ms": self.fetch_ms,
            "controller.quorum.election.backoff.max.ms": self.election_ms,
        }


TIMEOUTS = {
    timeouts.name: timeouts
    for timeouts in (
        Timeouts(name="default", election_ms=1000, fetch_ms=2000),
        Timeouts(name="tight", election_ms=250, fetch_ms=500),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """One leader lost: seconds to the first commit under the next, seconds without any acknowledged write, the epochs
    that it took (1: the first election had a winner), and the seconds that writes took before."""

    to_commit_s: float
    without_writes_s: float
    epochs: int
    write_s: tuple[float, ...]


Deed = Callable[[], object]


@contextmanager
def kill(cluster: Cluster, leader_id: int) -> Iterator[Deed]:
    yield lambda: cluster.kill(leader_id)


@contextmanager
def stop(cluster: Cluster, leader_id: int) -> Iterator[Deed]:
    """The deed returns when the process has ended, which is after it handed over."""
    yield lambda: cluster.terminate(leader_id)


@contextmanager
def transfer(cluster: Cluster, leader_id: int) -> Iterator[Deed]:
    """To the next controller in the order of ids. Raises WayUnavailableError where nodes do not offer it."""
    import grpc

    from wire.proto.quorum_pb2 import TransferLeadershipRequest
    from wire.proto.quorum_pb2_grpc import QuorumStub

    others = [node_id for node_id in cluster.controller_ids if node_id != leader_id]
    request = TransferLeadershipRequest(target_id=min(others, key=lambda other: (other < leader_id, other)))

    def hand_over() -> None:
        try:
            stub.TransferLeadership(request, timeout=TRANSFER_TIMEOUT_S)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                raise WayUnavailableError("the nodes do not serve TransferLeadership") from error
            raise NodeFailed(f"node {leader_id} did not hand over: {error.details()}") from error

    with grpc.insecure_channel(f"127.0.0.1:{cluster.grpc_ports[leader_id]}") as channel:
        grpc.channel_ready_future(channel).result(TRANSFER_TIMEOUT_S)
        stub = QuorumStub(channel)  # type: ignore[no-untyped-call]
        yield hand_over


# Each prepares what may take its time, and gives the deed itself.
Way = Callable[[Cluster, int], AbstractContextManager[Deed]]
WAYS: dict[str, Way] = {"kill": kill, "stop": stop, "transfer": transfer}


class Bench:
    """A cluster with these timeouts, and the client that writes to it, while the `with` block lasts."""

    def __init__(self, folder: Path, timeouts: Timeouts) -> None:
        self.timeouts = timeouts
        self.cluster = Cluster(
            folder, controllers=3, brokers=0, overrides=timeouts.overrides(), with_grpc=True
        )
        addresses = {
            node_id: ("127.0.0.1", self.cluster.ports[node_id]) for node_id in self.cluster.controller_ids
        }
        self.writer = Writer(addresses, CLUSTER_ID)

    def __enter__(self) -> Self:
        self.cluster.write_config()
        try:
            self.cluster.start()
            self.writer.__enter__()
        except BaseException:
            self.cluster.destroy()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.writer.__exit__(None, None, None)
        self.cluster.destroy()

    def lose_leader(self, way: Way) -> Loss:
        """Take the leader away once, and bring everything back."""
        status = self.settle()
        leader_id, settled_s = status.leader_id, time.perf_counter()
        self.writer.first(lambda write: write.node_id == leader_id, settled_s, COMMIT_TIMEOUT_S)
        with way(self.cluster, leader_id) as deed:
            start_s = time.perf_counter()
            deed()
        commit = self.writer.first(lambda write: write.node_id != leader_id, start_s, COMMIT_TIMEOUT_S)
        last = self.writer.last_by(leader_id, settled_s)
        write_s = self.writer.latencies_s(settled_s, start_s)
        if not self.cluster.is_running(leader_id):
            self.cluster.start_node(leader_id)
        epochs = self.settle().leader_epoch - status.leader_epoch
        return self._loss(start_s, commit, last, epochs, write_s)

    def _loss(
        self,
        start_s: float,
        commit: Acknowledged,
        last: Acknowledged | None,
        epochs: int,
        write_s: list[float],
    ) -> Loss:
        assert last is not None, "the leader acknowledged a write before it was taken away"
        return Loss(
            to_commit_s=commit.at_s - start_s,
            without_writes_s=commit.at_s - last.at_s,
            epochs=epochs,
            write_s=tuple(write_s),
        )

    def settle(self) -> QuorumStatus:
        """Wait until all voters have the log as it stood when this was called, under one leader."""
        self.cluster.leader_id(COMMIT_TIMEOUT_S)
        target = max(voter.log_end_offset or 0 for voter in self.cluster.quorum().voters)
        found: list[QuorumStatus] = []

        def is_level() -> bool:
            try:
                found.append(self.cluster.quorum())
            except CliError:
                return False
            return all((voter.log_end_offset or -1) >= target for voter in found[-1].voters)

        if not wait_until(is_level, CATCH_UP_TIMEOUT_S, interval_s=0.05):
            raise NodeFailed(
                f"the controllers were not level within {CATCH_UP_TIMEOUT_S:.0f} s:\n{self.cluster.tails()}"
            )
        return found[-1]


def row_of(timeouts: Timeouts, way: str, losses: list[Loss]) -> dict[str, object]:
    """Times in ms, `no_writes_ms` and `write_ms` medians. Of the median to the next commit: how many fetch timeouts,
    and how many median writes of the same runs, it took."""
    to_commit = [loss.to_commit_s * 1000 for loss in losses]
    writes = [seconds * 1000 for loss in losses for seconds in loss.write_s]
    p50 = percentile(to_commit, 50)
    return {
        "way": way,
        "election_ms": timeouts.election_ms,
        "fetch_ms": timeouts.fetch_ms,
        "times": len(losses),
        "p50_ms": p50,
        "p99_ms": percentile(to_commit, 99),
        "max_ms": max(to_commit),
        "no_writes_ms": percentile([loss.without_writes_s * 1000 for loss in losses], 50),
        "fetch_timeouts": p50 / timeouts.fetch_ms,
        "write_ms": percentile(writes, 50),
        "writes": p50 / percentile(writes, 50),
        "epochs_max": max(loss.epochs for loss in losses),
    }


def measure(
    folder: Path, timeouts: Iterable[Timeouts], ways: Iterable[str], times: int, progress: "Progress"
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """The measured rows, and those that were skipped with the reason."""
    rows: list[dict[str, object]] = []
    skipped: list[dict[str, object]] = []
    for each in timeouts:
        with Bench(folder / each.name, each) as bench:
            for way in ways:
                task = progress.add_task(f"{way}, {each.name} timeouts", total=times)
                losses: list[Loss] = []
                try:
                    for _ in range(times):
                        losses.append(bench.lose_leader(WAYS[way]))
                        progress.advance(task)
                except WayUnavailableError as error:
                    skipped.append({"way": way, "timeouts": each.name, "skipped": str(error)})
                else:
                    rows.append(row_of(each, way, losses))
    return rows, skipped


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=DEFAULT_TIMES, help="leaders lost, for each row")
    parser.add_argument(
        "--fast", action="store_true", help=f"tight timeouts only, {FAST_TIMES} leaders for each row"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--timeouts", nargs="+", choices=tuple(TIMEOUTS), default=list(TIMEOUTS))
    parser.add_argument("--ways", nargs="+", choices=tuple(WAYS), default=list(WAYS))
    options = parser.parse_args(arguments)
    if options.times < 1:
        parser.error(f"--times is {options.times}; it must be at least 1")
    if options.fast:
        options.times, options.timeouts = FAST_TIMES, ["tight"]
    return options


def main() -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    options, machine = options_of(), hardware()
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        tempfile.TemporaryDirectory(prefix="kquorum-bench-") as folder,
        Progress(*columns, console=error_console()) as progress,
    ):
        chosen = [TIMEOUTS[name] for name in options.timeouts]
        rows, skipped = measure(Path(folder), chosen, options.ways, options.times, progress)
    settings = {"times": options.times, "controllers": 3}
    tables = {"from the loss to the next commit": rows, "skipped": skipped}
    print_result("elections", machine, settings, tables, as_json=options.json)


if __name__ == "__main__":
    main()
