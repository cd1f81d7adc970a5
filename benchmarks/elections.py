"""How long clients go without a leader: from its death, its clean shutdown or its hand-over to the next commit.

    python -m benchmarks.elections [--times 10] [--fast] [--json] [--timeouts default tight] [--controllers 3]
                                   [--ways kill stop transfer pause isolate] [--out FILE] [--folder DIR]

Real controllers on loopback, each a process of `kquorum start`, and one client that writes through whichever controller
takes it (a record a write, one at a time, every 10 ms; while none takes it, all are asked every 2 ms, also when the
last one leaves a request open). Each time the leader is taken away: `kill` is SIGKILL, `stop` is SIGTERM, `transfer`
hands leadership to another voter, `pause` is SIGSTOP, `isolate` cuts it off from the other controllers but not from the
client. The time counts from the signal (or the request, or the cut) to the first write that another controller
acknowledges. Then the lost one comes back, and before the next time all run and have replayed the whole log: one that
was paused or cut off believes to lead still, and has to step down.

The limit of a kill, a pause or a cut is the fetch timeout: no voter may doubt a leader sooner. The limit of an
announced departure is a write of the same run, which takes a round of messages and two flushes. That no acknowledged
write is lost is checked throughout.

With `--out`, each loss is a line of JSON in the file as soon as it is measured, and those which the file holds already
count as done. Files of several processes make one report: `python -m tests.jepsen.failover_report FILE...`.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from benchmarks._failover_cluster import FailoverCluster
from benchmarks._failover_losses import (
    Loss,
    LossFile,
    Setting,
    UnreadableLossesError,
    by_setting,
    open_losses,
)
from benchmarks._failover_ways import WAYS, WAYS_THAT_CUT_LINKS, WayUnavailableError
from benchmarks._failover_writer import SearchingWriter
from benchmarks._quorum_writer import (
    AcknowledgedWriteLostError,
    NoWriteAcknowledgedError,
    WriteRefusedError,
)
from benchmarks._report import hardware, percentile, print_result
from kquorum.cli.output import error_console
from kquorum.cli.processes import NodeFailed
from tests.support.cluster import CLUSTER_ID

if TYPE_CHECKING:
    from rich.progress import Progress

COMMIT_TIMEOUT_S = 60.0
DEFAULT_TIMES, FAST_TIMES = 10, 2
# What ends the benchmark, and is a result itself.
FAILURES = (NodeFailed, NoWriteAcknowledgedError, WriteRefusedError, AcknowledgedWriteLostError)


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


class Bench:
    """A cluster with these timeouts, and the client that writes to it, while the `with` block lasts."""

    def __init__(self, folder: Path, controllers: int, timeouts: Timeouts, *, links_can_be_cut: bool) -> None:
        self.timeouts = timeouts
        self.cluster = FailoverCluster(
            folder, controllers, timeouts.overrides(), links_can_be_cut=links_can_be_cut
        )
        addresses = {
            node_id: ("127.0.0.1", self.cluster.ports[node_id]) for node_id in self.cluster.controller_ids
        }
        self.writer = SearchingWriter(addresses, CLUSTER_ID)
        self._lowest_epoch = 0

    def __enter__(self) -> Self:
        self.cluster.__enter__()
        self.writer.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.writer.__exit__(None, None, None)
        self.cluster.destroy()

    def lose_leader(self, way: str) -> Loss:
        """Take the leader away once, and bring everything back."""
        status = self.cluster.settle(self._lowest_epoch)
        leader_id, settled_s = status.leader_id, time.perf_counter()
        self.writer.first(lambda write: write.node_id == leader_id, settled_s, COMMIT_TIMEOUT_S)
        load, at_ms = os.getloadavg()[0], time.time_ns() // 1_000_000
        with WAYS[way](self.cluster, leader_id) as deed:
            start_s = time.perf_counter()
            deed()
            commit = self.writer.first(lambda write: write.node_id != leader_id, start_s, COMMIT_TIMEOUT_S)
            epoch = self.cluster.epoch_above(status.leader_epoch)
        self._lowest_epoch = epoch
        last_epoch = self.cluster.settle(epoch).leader_epoch
        last = self.writer.last_before(commit.at_s)
        assert last is not None, "the leader acknowledged a write before it was taken away"
        return Loss(
            way=way,
            controllers=len(self.cluster.controller_ids),
            election_ms=self.timeouts.election_ms,
            fetch_ms=self.timeouts.fetch_ms,
            to_commit_ms=(commit.at_s - start_s) * 1000,
            without_writes_ms=(commit.at_s - last.at_s) * 1000,
            epochs=epoch - status.leader_epoch,
            later_epochs=last_epoch - epoch,
            late_writes=self.writer.count_by(leader_id, start_s),
            write_ms=percentile(self.writer.latencies_s(settled_s, start_s), 50) * 1000,
            leader_id=leader_id,
            next_leader_id=commit.node_id,
            load=round(load, 2),
            at_ms=at_ms,
        )


def row_of(losses: Sequence[Loss]) -> dict[str, object]:
    """Of losses of one setting; `timeouts` of elections and of fetches. Times in ms, `no_writes_ms` and `write_ms`
    medians. Of the median to the next commit: how many fetch timeouts, and how many median writes of the same runs, it
    took."""
    to_commit = [loss.to_commit_ms for loss in losses]
    p50 = percentile(to_commit, 50)
    write_ms = percentile([loss.write_ms for loss in losses], 50)
    return {
        "way": losses[0].way,
        "timeouts": f"{losses[0].election_ms}/{losses[0].fetch_ms}",
        "times": len(losses),
        "p50_ms": p50,
        "p99_ms": percentile(to_commit, 99),
        "max_ms": max(to_commit),
        "no_writes_ms": percentile([loss.without_writes_ms for loss in losses], 50),
        "fetch_timeouts": p50 / losses[0].fetch_ms,
        "write_ms": write_ms,
        "writes": p50 / write_ms,
        "epochs_max": max(loss.epochs for loss in losses),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured: each way so often, with each of the timeouts."""

    timeouts: Sequence[Timeouts]
    ways: Sequence[str]
    times: int
    controllers: int

    def benches(self) -> Iterator[tuple[Timeouts, bool, list[str]]]:
        """Each with its ways, and whether these need links that can be cut."""
        for timeouts in self.timeouts:
            for cut in (False, True):
                ways = [way for way in self.ways if (way in WAYS_THAT_CUT_LINKS) is cut]
                if ways:
                    yield timeouts, cut, ways

    def setting(self, timeouts: Timeouts, way: str) -> Setting:
        return way, self.controllers, timeouts.election_ms, timeouts.fetch_ms

    def settings(self) -> list[Setting]:
        """In the order of the rows."""
        return [self.setting(timeouts, way) for timeouts in self.timeouts for way in self.ways]


def measure(folder: Path, plan: Plan, losses: LossFile, progress: "Progress") -> list[dict[str, object]]:
    """Add what is missing to the losses; answers the ways that were skipped, with the reason."""
    skipped: list[dict[str, object]] = []
    for timeouts, cut, ways in plan.benches():
        left = {way: plan.times - losses.count(plan.setting(timeouts, way)) for way in ways}
        left = {way: times for way, times in left.items() if times > 0}
        if not left:
            continue
        name = f"{timeouts.name}-{plan.controllers}{'-cut' if cut else ''}"
        with Bench(folder / name, plan.controllers, timeouts, links_can_be_cut=cut) as bench:
            skipped += _measure_ways(bench, left, losses, progress)
    return skipped


def _measure_ways(
    bench: Bench, left: Mapping[str, int], losses: LossFile, progress: "Progress"
) -> Iterator[dict[str, object]]:
    """In turn, so that a machine which is busy for a while is so for all of them."""
    name = bench.timeouts.name
    tasks = {way: progress.add_task(f"{way}, {name} timeouts", total=times) for way, times in left.items()}
    available = set(left)
    for turn in range(max(left.values())):
        for way in [way for way, times in left.items() if turn < times and way in available]:
            try:
                losses.add(bench.lose_leader(way))
            except WayUnavailableError as error:
                available.discard(way)
                yield {"way": way, "timeouts": name, "skipped": str(error)}
            progress.advance(tasks[way])


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
    parser.add_argument("--controllers", type=int, choices=(3, 5), default=3)
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="add each loss to it, and go on where it ends"
    )
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep what the nodes write here")
    options = parser.parse_args(arguments)
    if options.times < 1:
        parser.error(f"--times is {options.times}; it must be at least 1")
    if options.folder is not None and options.folder.exists():
        parser.error(f"--folder {options.folder} exists already")
    if options.fast:
        options.times, options.timeouts = FAST_TIMES, ["tight"]
    return options


@contextmanager
def _nodes_folder(chosen: Path | None) -> Iterator[Path]:
    if chosen is not None:
        yield chosen.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="kquorum-bench-") as folder:
        yield Path(folder)


def print_losses(
    plan: Plan,
    machine: Mapping[str, object],
    measured: Iterable[Loss],
    skipped: list[dict[str, object]],
    *,
    as_json: bool,
) -> None:
    groups = by_setting(measured)
    chosen = {setting: groups[setting] for setting in plan.settings() if setting in groups}
    tables = {
        "from the loss to the next commit": [row_of(losses) for losses in chosen.values()],
        "skipped": skipped,
    }
    if as_json:
        tables["losses"] = [asdict(loss) for losses in chosen.values() for loss in losses]
    settings = {"times": plan.times, "controllers": plan.controllers}
    print_result("elections", machine, settings, tables, as_json=as_json)


def main() -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    options, machine = options_of(), hardware()
    plan = Plan(
        timeouts=[TIMEOUTS[name] for name in options.timeouts],
        ways=options.ways,
        times=options.times,
        controllers=options.controllers,
    )
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with (
            open_losses(options.out) as losses,
            _nodes_folder(options.folder) as folder,
            Progress(*columns, console=error_console()) as progress,
        ):
            skipped = measure(folder, plan, losses, progress)
    except (UnreadableLossesError, *FAILURES) as error:
        kept = f"\nwhat the nodes wrote is kept in {options.folder}" if options.folder is not None else ""
        sys.exit(f"elections: {type(error).__name__}: {error}{kept}")
    print_losses(plan, machine, losses.losses, skipped, as_json=options.json)


if __name__ == "__main__":
    main()
