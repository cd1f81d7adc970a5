"""`python -m tests.simulation --seed N --runs K`: run seeds N, N+1, ...; the first failure says how to replay it."""

import argparse
import sys

from tests.simulation.run import Outcome, SimulationFailed, simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--runs", type=int, default=1, help="how many seeds")
    parser.add_argument("--trace", action="store_true", help="print what happened, a line an event")
    arguments = parser.parse_args()
    outcomes: list[Outcome] = []
    print(f"seeds {arguments.seed} to {arguments.seed + arguments.runs - 1}")
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        try:
            outcomes.append(simulate(seed))
        except SimulationFailed as failure:
            print(failure)
            return 1
        if arguments.trace:
            print("\n".join(outcomes[-1].trace))
    events = sum(outcome.events for outcome in outcomes)
    acknowledged = sum(outcome.acknowledged for outcome in outcomes)
    print(
        f"{len(outcomes)} runs held every invariant: {events} events, {acknowledged} acknowledged proposals"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
