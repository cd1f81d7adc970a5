"""`python -m tests.simulation.mutants [NAME ...]`: hunt for every mutant; the exit status is 1 if one survives."""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from functools import partial

from rich.console import Console

from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.mutants.hunt import Verdict, hunt
from tests.simulation.mutants.tables import as_json, markdown_of, table_of


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; all of them without any")
    parser.add_argument(
        "--runs", type=int, default=100, help="how many worlds to try for each by chance (100)"
    )
    parser.add_argument("--seed", type=int, default=1, help="the first of them (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    parser.add_argument("--markdown", action="store_true", help="print the tables of docs/mutants.md")
    return parser.parse_args()


def main() -> int:
    arguments = _arguments()
    unknown = sorted(set(arguments.names) - set(MUTANTS))
    if unknown:
        print(f"no mutant is called {unknown[0]}; there are {', '.join(sorted(MUTANTS))}", file=sys.stderr)
        return 2
    begun = time.monotonic()
    names = arguments.names or list(MUTANTS)
    look = partial(hunt, first=arguments.seed, runs=arguments.runs)
    verdicts: list[Verdict] = []
    with Console(stderr=True).status("") as status:
        for verdict in _in_parallel(look, names, arguments.jobs):
            verdicts.append(verdict)
            status.update(f"{len(verdicts)} of {len(names)} mutants")
    survivors = [verdict.name for verdict in verdicts if not verdict.is_caught]
    if arguments.json:
        print(json.dumps([as_json(verdict) for verdict in verdicts], indent=2))
    elif arguments.markdown:
        print(markdown_of(verdicts))
    else:
        Console(width=None if sys.stdout.isatty() else 180).print(table_of(verdicts, arguments.runs))
        seconds = time.monotonic() - begun
        print(f"{len(names)} mutants, {len(names) - len(survivors)} caught, {seconds:.0f} s")
    for name in survivors:
        print(f"{name} survived: {MUTANTS[name].safeguard}", file=sys.stderr)
    return 1 if survivors else 0


def _in_parallel(look: "partial[Verdict]", names: list[str], jobs: int) -> Iterator[Verdict]:
    if jobs == 1:
        yield from map(look, names)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(look, names)


if __name__ == "__main__":
    sys.exit(main())
