"""`python -m tests.simulation.directed [NAME ...]`: play schedules and say what came of each."""

import argparse
import sys

from rich.console import Console
from rich.table import Table

from tests.simulation.directed.schedules import SCHEDULES, ScheduleFailed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.directed", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; all of them without any")
    parser.add_argument("--trace", action="store_true", help="print what happened, a line an event")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(SCHEDULES))
    if unknown:
        print(
            f"no schedule is called {unknown[0]}; there are {', '.join(sorted(SCHEDULES))}", file=sys.stderr
        )
        return 2
    table, failed = Table(show_edge=False), 0
    for title in ("schedule", "what must hold", "virtual ms", "held"):
        table.add_column(title, overflow="fold")
    for name in arguments.names or SCHEDULES:
        played = SCHEDULES[name]
        try:
            stage = played.run()
        except ScheduleFailed as failure:
            failed += 1
            print(failure, file=sys.stderr)
            table.add_row(name, played.what_must_hold, str(failure.now_ms), "NO")
        else:
            if arguments.trace:
                print("\n".join(stage.trace))
            table.add_row(name, played.what_must_hold, str(stage.now_ms), "yes")
    Console().print(table)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
