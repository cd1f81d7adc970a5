"""`python -m tests.fuzz.listener --inputs 1000000 --seed N`: garbage at a live listener; 1 if that did harm."""

import argparse
import asyncio
import logging
import resource
import sys

import uvloop

from tests.fuzz.listener.campaign import Campaign

# So that a length that is believed ends in a MemoryError and not with the machine.
ADDRESS_SPACE_BYTES = 4 * 1024**3


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.listener", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--warm-up", type=int, help="inputs before memory is looked at (a tenth)")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio")
    options = parser.parse_args()
    logging.getLogger().addHandler(logging.NullHandler())
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    warm_up = options.inputs // 10 if options.warm_up is None else options.warm_up
    factory = uvloop.new_event_loop if options.loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        report = runner.run(Campaign(options.seed, options.inputs, warm_up, _tell).run())
    print(report)
    return 1 if report.findings else 0


def _tell(progress: str) -> None:
    print(progress, flush=True)


if __name__ == "__main__":
    sys.exit(main())
