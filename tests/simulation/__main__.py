"""Run seeds of the simulator: N, N+1, ...; the first that fails is made small and told.

python -m tests.simulation --seed 1 --runs 500 --jobs 2
python -m tests.simulation --seed 42 --trace
python -m tests.simulation --seed 42 --keep 3,7,9 --trace    (only these actions of its schedule)
python -m tests.simulation --controllers --runs 200    (voters run the controller, observers are brokers)
"""

import argparse
import os
import sys

from rich.console import Console

from tests.simulation.run import SimulationFailed, Trim, simulate
from tests.simulation.runner import Totals, run_seeds, table_of
from tests.simulation.shrink import shrink, story_of


def _indexes(text: str) -> tuple[int, ...]:
    return () if text == "none" else tuple(int(part) for part in text.split(","))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--runs", type=int, default=1, help="how many seeds (1)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="in how many processes (one a core)"
    )
    parser.add_argument(
        "--keep-going", action="store_true", help="run on after a failure, and list all of them"
    )
    parser.add_argument("--no-shrink", action="store_true", help="show a failure as it is")
    parser.add_argument("--json", action="store_true", help="print the totals as JSON")
    parser.add_argument(
        "--trace", action="store_true", help="print what happens in one seed, a line an event"
    )
    parser.add_argument(
        "--keep", type=_indexes, help="of one seed's schedule only these actions: 3,7,9 or none"
    )
    parser.add_argument("--faults-until", type=int, help="end the faults of one seed at this millisecond")
    parser.add_argument("--observers", type=int, help="another number of observers in one seed")
    parser.add_argument(
        "--controllers",
        dest="profile",
        action="store_const",
        const="controllers",
        default="core",
        help="worlds of controllers and brokers",
    )
    parser.add_argument("--voters", type=int, help="another number of voters in one seed")
    return parser


def main() -> int:
    arguments = _parser().parse_args()
    console = Console(stderr=arguments.json, soft_wrap=True, highlight=False)
    trim = Trim(arguments.keep, arguments.faults_until, arguments.observers, arguments.voters)
    if arguments.trace or trim != Trim():
        return _run_one(arguments.seed, trim, console, is_traced=arguments.trace, profile=arguments.profile)
    jobs = min(arguments.jobs, 1 + arguments.runs // 40)
    totals = run_seeds(
        arguments.seed,
        arguments.runs,
        jobs,
        console,
        keeps_going=arguments.keep_going,
        profile=arguments.profile,
    )
    if arguments.json:
        print(totals.as_json())
    elif not totals.failures:
        console.print(table_of(totals))
    return _tell_failures(totals, console, is_shrunk=not arguments.no_shrink, profile=arguments.profile)


def _run_one(seed: int, trim: Trim, console: Console, *, is_traced: bool, profile: str) -> int:
    try:
        outcome = simulate(seed, trim=trim, is_traced=is_traced, profile=profile)
    except SimulationFailed as failure:
        console.print(story_of(seed, trim, profile), markup=False)
        console.print("\n".join(failure.trace) if is_traced else "", markup=False)
        console.print(str(failure).splitlines()[0], markup=False)
        return 1
    console.print(story_of(seed, trim, profile), markup=False)
    console.print("\n".join(outcome.trace), markup=False)
    console.print(f"seed {seed} held every invariant: {outcome.events} events, epoch {outcome.epochs}")
    return 0


def _tell_failures(totals: Totals, console: Console, *, is_shrunk: bool, profile: str) -> int:
    if not totals.failures:
        return 0
    for _, message in totals.failures:
        console.print(message.splitlines()[0], markup=False)
    seed, message = totals.failures[0]
    if not is_shrunk:
        console.print(message, markup=False)
        return 1
    console.print(f"\nlooking for a shorter schedule for seed {seed} ...", markup=False)
    failure = shrink(seed, profile=profile)
    console.print(story_of(seed, failure.trim, profile), markup=False)
    console.print(str(failure), markup=False)
    return 1


if __name__ == "__main__":
    sys.exit(main())
