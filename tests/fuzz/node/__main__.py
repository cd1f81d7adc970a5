"""`python -m tests.fuzz.node --inputs 1000000 --seed N`: hostile inputs at all listeners of a real node; 1 if one of
them held the node's loop for more than 50 ms, ended the node, or got no answer."""

import argparse
import asyncio
import logging
import math
import sys
import tempfile
from pathlib import Path

import uvloop

from tests.fuzz.node.campaign import Campaign
from tests.fuzz.node.measured_node import LIMIT_S
from tests.fuzz.node.ways import WAYS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.node", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, required=True)
    names = [way.name for way in WAYS]
    parser.add_argument("--way", choices=names, action="append", help="may be given again; all by default")
    parser.add_argument("--number", type=int, action="append", help="only this input; may be given again")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="the run ends after so long at the latest"
    )
    parser.add_argument("--limit-ms", type=float, default=LIMIT_S * 1000, help="of a turn (50)")
    options = parser.parse_args()
    logging.getLogger().addHandler(logging.NullHandler())
    ways = [way for way in WAYS if options.way is None or way.name in options.way]
    # What is found stays there.
    folder = Path(tempfile.mkdtemp(prefix=f"kquorum-fuzz-{options.seed}-"))
    campaign = Campaign(
        options.seed,
        options.inputs,
        folder,
        ways=ways,
        only=options.number,
        limit_s=options.limit_ms / 1000,
        seconds=options.minutes * 60,
        on_progress=_tell,
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        reports = campaign.run(runner)
    findings = [finding for report in reports for finding in report.findings]
    inputs, longest_s = sum(each.inputs for each in reports), max(each.longest_s for each in reports)
    print(
        f"seed {options.seed}: {inputs} inputs, {len(findings)} findings, longest turn {longest_s * 1000:.1f} ms; "
        f"files in {folder}"
    )
    return 1 if findings or len(reports) < len(ways) else 0


def _tell(progress: str) -> None:
    print(progress, flush=True)


if __name__ == "__main__":
    sys.exit(main())
