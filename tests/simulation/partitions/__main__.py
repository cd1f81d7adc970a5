"""Run seeds of the worlds of partitions; the first that fails is printed with its last events.

python -m tests.simulation.partitions --seed 1 --runs 500
python -m tests.simulation.partitions --seed 42 --trace
python -m tests.simulation.partitions --mutant never_truncates --runs 200
"""

import argparse
import logging
import sys
from contextlib import nullcontext

from tests.simulation.partitions.mutants import MUTANTS, mutated
from tests.simulation.partitions.world import PartitionsFailed, simulate


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.partitions",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--runs", type=int, default=1, help="how many seeds (1)")
    parser.add_argument("--trace", action="store_true", help="print what happens, a line an event")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="with this safeguard taken out")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        with mutated(arguments.mutant) if arguments.mutant else nullcontext():
            try:
                world = simulate(seed, is_traced=arguments.trace)
            except PartitionsFailed as failure:
                print(failure)
                return 1
        if arguments.trace:
            print("\n".join(world.trace))
    print(f"seeds {arguments.seed} to {arguments.seed + arguments.runs - 1} held every invariant")
    return 0


if __name__ == "__main__":
    sys.exit(main())
