"""Run a cluster of real processes, hurt it, and judge what its clients saw.

Exit status: 0 valid, 1 invalid, 2 unknown (also when the cluster could not be started), 130 and 143 interrupted.
"""

import argparse
import sys
import time
from pathlib import Path

from rich.console import Console

from cli.processes import NodeFailed
from tests.jepsen.checkers.verdicts import EXIT_STATUS, VALID_KEY, Verdict
from tests.jepsen.faults.nemesis import ISOLATE_LEADER, NONE
from tests.jepsen.history import MalformedHistory
from tests.jepsen.net.network import NetworkUnavailable
from tests.jepsen.report.terminal import print_summary
from tests.jepsen.run import NETS, WORKLOADS, Interrupted, Options, judge_stored, run
from tests.jepsen.workloads.topics_set import NAME


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.jepsen", description=__doc__)
    parser.add_argument("--workload", choices=WORKLOADS, default=NAME)
    parser.add_argument("--nemesis", choices=(ISOLATE_LEADER, NONE), default=ISOLATE_LEADER)
    parser.add_argument("--time", type=float, default=20.0, metavar="S", help="seconds of load (20)")
    parser.add_argument("--nodes", type=int, default=3, help="controllers (3)")
    parser.add_argument("--brokers", type=int, default=3, help="brokers (3)")
    parser.add_argument("--net", choices=NETS, default="auto", help="network namespaces or proxies")
    parser.add_argument("--rate", type=float, default=40.0, help="operations a second (40)")
    parser.add_argument("--concurrency", type=int, default=12, help="clients (12)")
    parser.add_argument("--quiet", type=float, default=5.0, metavar="S", help="seconds before each fault (5)")
    parser.add_argument("--fault", type=float, default=8.0, metavar="S", help="seconds of each fault (8)")
    parser.add_argument(
        "--op-timeout", type=float, default=5.0, metavar="S", help="a client waits so long (5)"
    )
    parser.add_argument("--seed", type=int, default=None, help="of the operations; from the clock without it")
    parser.add_argument("--store", type=Path, default=Path("store"), help="folder of the runs (store)")
    parser.add_argument(
        "--judge", type=Path, metavar="FOLDER", help="only judge the history of an earlier run"
    )
    options = parser.parse_args(arguments)
    if min(options.time, options.rate, options.fault, options.op_timeout) <= 0 or options.quiet < 0:
        parser.error("times and rates must be above 0")
    if not 1 <= options.nodes <= 9 or options.brokers < 1:
        parser.error("--nodes must be 1 to 9, --brokers at least 1")
    if options.concurrency < 2 * options.brokers:
        parser.error("--concurrency must be at least twice --brokers: each has a client that only reads")
    return options


def main() -> int:
    chosen = parse()
    console = Console()
    try:
        if chosen.judge is not None:
            results = judge_stored(chosen.judge)
        else:
            results = run(_options(chosen), chosen.store, console).results
    except Interrupted as interrupted:
        console.print(f"stopped by {interrupted}; nothing is left running")
        return interrupted.exit_status
    except (NetworkUnavailable, NodeFailed, MalformedHistory, OSError) as error:
        console.print(f"no verdict: {error}", style="yellow", highlight=False, markup=False)
        return EXIT_STATUS[Verdict.UNKNOWN]
    print_summary(console, results)
    return EXIT_STATUS[results[VALID_KEY]]


def _options(chosen: argparse.Namespace) -> Options:
    return Options(
        workload=chosen.workload,
        nemesis=chosen.nemesis,
        time_s=chosen.time,
        nodes=chosen.nodes,
        brokers=chosen.brokers,
        net=chosen.net,
        rate=chosen.rate,
        concurrency=chosen.concurrency,
        quiet_s=chosen.quiet,
        fault_s=chosen.fault,
        op_timeout_s=chosen.op_timeout,
        seed=time.time_ns() % 1_000_000 if chosen.seed is None else chosen.seed,
    )


if __name__ == "__main__":
    sys.exit(main())
