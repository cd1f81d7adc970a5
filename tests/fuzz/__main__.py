"""`python -m tests.fuzz --minutes 10 [--decoder NAME] --seed N`: each decoder gets an equal share of the time."""

import argparse
import logging
import resource
import sys
import time

from tests.fuzz.decoders import DECODERS
from tests.fuzz.running import fuzz

# So that a length that is believed ends in a MemoryError and not with the machine.
ADDRESS_SPACE_BYTES = 4 * 1024**3


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--decoder", choices=sorted(DECODERS), action="append", help="may be given again")
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    names = options.decoder or list(DECODERS)
    findings = 0
    for name in names:
        began_s = time.monotonic()
        tried, found = fuzz(name, options.seed, options.minutes * 60 / len(names))
        findings += len(found)
        print(
            f"{name}: {tried} inputs in {time.monotonic() - began_s:.0f} s, {len(found)} findings", flush=True
        )
        for each in found:
            print(each, flush=True)
    print(f"seed {options.seed}: {findings} findings in {len(names)} decoders")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
