"""Run a cluster of real processes, hurt it, and judge what its clients saw.

Exit status: 0 valid, 1 invalid, 2 unknown (also when the cluster could not be started), 130 and 143 interrupted.
Of several runs (--nodes 3,5) the worst counts.
"""

import argparse
import math
import re
import sys
import time
from pathlib import Path
from random import Random

from rich.console import Console
from rich.table import Table

from kquorum.cli.processes import NodeFailed
from tests.jepsen.checkers.verdicts import EXIT_STATUS, VALID_KEY, Results, Verdict, worst
from tests.jepsen.core.history import MalformedHistory
from tests.jepsen.core.judging import judge_stored
from tests.jepsen.core.members import CONTROLLERS_MAX
from tests.jepsen.core.run import NETS, Interrupted, Options, Setting, run
from tests.jepsen.faults.catalogue import ALL as ALL_FAULTS
from tests.jepsen.faults.catalogue import FAULTS, NONE, UnknownFault, plan
from tests.jepsen.mutants.planting import PLANTED
from tests.jepsen.net.network import NetworkUnavailable
from tests.jepsen.report.terminal import print_summary
from tests.jepsen.workloads.catalogue import ALL, WORKLOADS, UnknownWorkload, kinds_of

_CONTROLLERS = range(1, CONTROLLERS_MAX + 1)
_WHOLE = re.compile(r"-?\d+")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.jepsen", description=__doc__)
    parser.add_argument("--list", action="store_true", help="show all workloads and nemeses, and end")
    parser.add_argument(
        "--workload",
        default="topics-set",
        metavar="W",
        help=f"{', '.join(WORKLOADS)}; several with commas between them run side by side; {ALL} (topics-set)",
    )
    parser.add_argument(
        "--nemesis",
        default="isolate-leader",
        metavar="N",
        help=f"a fault of --list; a,b: one after the other; a+b: at the same time; a>b: b half-way through a; "
        f"{ALL_FAULTS}: every fault, at random, several at once; {NONE} (isolate-leader)",
    )
    parser.add_argument("--time", type=float, default=20.0, metavar="S", help="seconds of load (20)")
    parser.add_argument("--nodes", type=_counts, default=(3,), metavar="N[,N]", help="controllers (3)")
    parser.add_argument("--brokers", type=int, default=3, help="brokers (3)")
    parser.add_argument("--net", choices=NETS, default="auto", help="network namespaces or proxies")
    parser.add_argument("--rate", type=float, default=40.0, help="operations a second of each workload (40)")
    parser.add_argument("--concurrency", type=int, default=12, help="clients of each workload (12)")
    parser.add_argument("--quiet", type=float, default=5.0, metavar="S", help="seconds before each fault (5)")
    parser.add_argument("--fault", type=float, default=8.0, metavar="S", help="seconds of each fault (8)")
    parser.add_argument(
        "--op-timeout", type=float, default=5.0, metavar="S", help="a client waits so long (5)"
    )
    parser.add_argument("--seed", type=int, default=None, help="of the operations; from the clock without it")
    parser.add_argument(
        "--mutant", metavar="NAME", help="plant this bug into every node (tests.jepsen.mutants)"
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a config of every node, over those of the harness; may be given several times",
    )
    parser.add_argument("--no-pages", action="store_true", help="write no timeline, plots and index page")
    parser.add_argument("--store", type=Path, default=Path("store"), help="folder of the runs (store)")
    parser.add_argument(
        "--judge", type=Path, metavar="FOLDER", help="only judge the history of an earlier run"
    )
    return parser


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    figures = (options.time, options.rate, options.fault, options.op_timeout, options.quiet)
    if not all(math.isfinite(figure) for figure in figures):
        parser.error("times and rates must be numbers that are finite")
    if min(options.time, options.rate, options.fault, options.op_timeout) <= 0 or options.quiet < 0:
        parser.error("times and rates must be above 0")
    if options.brokers < 1 or options.concurrency < 1:
        parser.error("--brokers and --concurrency must be at least 1")
    if options.mutant is not None and options.mutant not in PLANTED:
        parser.error(f"no mutant '{options.mutant}'; there are {', '.join(PLANTED)}")
    try:
        kinds_of(options.workload)
        plan(options.nemesis, 0, 0, 1, Random(0))
    except (UnknownWorkload, UnknownFault) as error:
        parser.error(str(error))
    return options


def _counts(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) in _CONTROLLERS for part in parts):
        raise argparse.ArgumentTypeError(f"from 1 to {CONTROLLERS_MAX} controllers, not {text!r}")
    return tuple(int(part) for part in parts)


def _setting(text: str) -> Setting:
    key, separator, value = (part.strip() for part in text.partition("="))
    if not (key and separator):
        raise argparse.ArgumentTypeError(f"KEY=VALUE, not {text!r}")
    return key, int(value) if _WHOLE.fullmatch(value) else value


def main() -> int:
    chosen = parse()
    console = Console()
    if chosen.list:
        print_catalogue(console)
        return 0
    if chosen.judge is not None:
        return _exit_status([_judged(console, chosen.judge)])
    verdicts = []
    for nodes in chosen.nodes:
        try:
            verdicts.append(_run(console, chosen, nodes))
        except Interrupted as interrupted:
            console.print(f"stopped by {interrupted}; nothing is left running")
            return interrupted.exit_status
    return _exit_status(verdicts)


def _exit_status(verdicts: list[Verdict]) -> int:
    return EXIT_STATUS[worst(verdicts)]


def _run(console: Console, chosen: argparse.Namespace, nodes: int) -> Verdict:
    try:
        return _told(console, run(options_of(chosen, nodes), chosen.store, console).results)
    except (NetworkUnavailable, NodeFailed, OSError) as error:
        return _no_verdict(console, error)


def _judged(console: Console, folder: Path) -> Verdict:
    try:
        return _told(console, judge_stored(folder))
    except (MalformedHistory, UnknownWorkload, OSError, ValueError, KeyError) as error:
        return _no_verdict(console, error)


def _told(console: Console, results: Results) -> Verdict:
    print_summary(console, results)
    verdict = results[VALID_KEY]
    assert isinstance(verdict, Verdict)
    return verdict


def _no_verdict(console: Console, error: Exception) -> Verdict:
    console.print(f"no verdict: {error}", style="yellow", highlight=False, markup=False)
    return Verdict.UNKNOWN


def print_catalogue(console: Console) -> None:
    for title, rows in (
        ("workloads", [(kind.name, kind.about) for kind in WORKLOADS.values()]),
        ("nemeses", [(fault.name, fault.about) for fault in FAULTS.values()]),
    ):
        table = Table(title=title, title_justify="left")
        table.add_column("name", no_wrap=True)
        table.add_column("what it does")
        for row in rows:
            table.add_row(*row)
        console.print(table)


def options_of(chosen: argparse.Namespace, nodes: int) -> Options:
    return Options(
        workload=chosen.workload,
        nemesis=chosen.nemesis,
        time_s=chosen.time,
        nodes=nodes,
        brokers=chosen.brokers,
        net=chosen.net,
        rate=chosen.rate,
        concurrency=chosen.concurrency,
        quiet_s=chosen.quiet,
        fault_s=chosen.fault,
        op_timeout_s=chosen.op_timeout,
        mutant=chosen.mutant,
        config=tuple(chosen.config),
        pages=not chosen.no_pages,
        seed=time.time_ns() % 1_000_000 if chosen.seed is None else chosen.seed,
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # while nothing runs yet, or while a stored run is judged
        sys.exit(130)
