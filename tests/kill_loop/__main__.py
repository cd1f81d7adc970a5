"""Kill real controllers under load, time after time, and judge whether anything acknowledged was lost.

    python -m tests.kill_loop [--kills 200] [--seed 1] [--in-snapshot --partitions 20000] [--folder DIR] [--json]

Three controllers and a broker, each a process of `kquorum start`; clients create and delete topics through the broker.
Each time one of them gets SIGKILL at a random moment: the leader (half the time), any controller, all controllers at
once, or the broker; with --in-snapshot, a controller while it writes a snapshot. It starts again within a second.
Segments, snapshots and retention are small, so that logs roll and begin later all the while.

At the end: every acknowledged create is in the broker's list and in the state of every node's log, every acknowledged
delete is in none; `kquorum log verify` finds every log sound; the logs are equal, batch by batch, up to what was
committed; no node ended by itself, complained at a start, logged an error or ended SIGTERM with anything but 0.

Exit status: 0 nothing wrong, 1 a violation, 130 interrupted. Progress goes to standard error.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from kquorum.cli.output import error_console, print_json
from tests.kill_loop.loop import KillLoop, Options, Outcome

SHOWN_MAX = 40


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.kill_loop",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument(
        "--seed", type=int, default=None, help="of victims and moments; from the clock without it"
    )
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--segment-bytes", type=int, default=16 * 1024)
    parser.add_argument("--snapshot-bytes", type=int, default=32 * 1024, help="of records between snapshots")
    parser.add_argument("--retention-bytes", type=int, default=96 * 1024)
    parser.add_argument("--in-snapshot", action="store_true", help="kill while the victim writes a snapshot")
    parser.add_argument("--partitions", type=int, default=0, help="made before the first kill, in hundreds")
    parser.add_argument(
        "--folder", type=Path, help="kept; a temporary one without it, kept after a violation"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    if options.kills < 1 or options.clients < 1 or options.partitions < 0:
        parser.error("--kills and --clients must be at least 1, --partitions not negative")
    return options


def main() -> int:
    chosen = parse()
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="kquorum-kill-"))
    seed = time.time_ns() % 1_000_000 if chosen.seed is None else chosen.seed
    options = Options(
        kills=chosen.kills,
        seed=seed,
        clients=chosen.clients,
        segment_bytes=chosen.segment_bytes,
        snapshot_bytes=chosen.snapshot_bytes,
        retention_bytes=chosen.retention_bytes,
        in_snapshot=chosen.in_snapshot,
        partitions=chosen.partitions,
    )
    console = error_console()
    console.print(f"{folder}: seed {seed}", markup=False)
    start_s = time.monotonic()
    try:
        outcome = KillLoop(folder, options, lambda words: console.print(words, markup=False)).run()
    except KeyboardInterrupt:
        return 130
    seconds = round(time.monotonic() - start_s)
    if chosen.json:
        print_json({"seed": seed, "seconds": seconds} | outcome.as_json())
    else:
        tell(outcome, seconds)
    if outcome.violations:
        console.print(f"the folders are kept in {folder}", markup=False)
    elif chosen.folder is None:
        _remove(folder)
    return 1 if outcome.violations else 0


def tell(outcome: Outcome, seconds: int) -> None:
    for name, value in outcome.as_json().items():
        if name not in ("violations", "warnings"):
            print(f"{name.replace('_', ' ')}: {value}")
    for words, count in sorted(outcome.warnings.items(), key=lambda item: -item[1]):
        print(f"warning, {count} times: {words}")
    for violation in outcome.violations[:SHOWN_MAX]:
        print(f"VIOLATION: {violation}")
    print(f"{len(outcome.violations)} violations, {seconds} s")


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
