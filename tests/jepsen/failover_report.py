"""What the files of `benchmarks.elections --out` say together, as a Markdown table and a picture.

    python -m tests.jepsen.failover_report FILE... [--load-below 4] [--picture docs/pictures/failover.svg]

Several processes may have measured, each into its own file; a line that is in two of them counts once. A machine that
has much else to do is slow in all that takes many short steps: `--load-below` leaves out what was measured then.
"""

import argparse
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks._failover_losses import Loss, UnreadableLossesError, by_setting, read_losses
from benchmarks._failover_picture import picture
from benchmarks._report import percentile

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "failover.svg"
WAYS = ("kill", "pause", "isolate", "stop", "transfer")
# Heading and alignment of each column.
COLUMNS = (
    ("way", "---"),
    ("controllers", "---:"),
    ("election / fetch timeout", "---"),
    ("faults", "---:"),
    ("p50", "---:"),
    ("p90", "---:"),
    ("p99", "---:"),
    ("max", "---:"),
    ("p50 in fetch timeouts", "---:"),
    ("first election", "---:"),
    ("second", "---:"),
    ("later", "---:"),
    ("load, p50", "---:"),
    ("most", "---:"),
)


def merged(parts: Iterable[Iterable[Loss]]) -> list[Loss]:
    """All of them, each once, in the order of time."""
    return sorted({loss for part in parts for loss in part}, key=lambda loss: loss.at_ms)


def row_of(losses: Sequence[Loss]) -> list[str]:
    """Of losses of one setting."""
    first = losses[0]
    times_ms = [loss.to_commit_ms for loss in losses]
    loads = [loss.load for loss in losses]
    elections = [
        sum(low <= loss.epochs <= high for loss in losses) for low, high in ((0, 1), (2, 2), (3, 10**9))
    ]
    return [
        first.way,
        str(first.controllers),
        f"{first.election_ms} / {first.fetch_ms} ms",
        str(len(losses)),
        *(f"{percentile(times_ms, percent):,.0f} ms" for percent in (50, 90, 99, 100)),
        f"{percentile(times_ms, 50) / first.fetch_ms:.2f}",
        *(str(count) for count in elections),
        f"{percentile(loads, 50):.1f}",
        f"{max(loads):.1f}",
    ]


def table(losses: Iterable[Loss]) -> str:
    """Rows by way, then by controllers and timeouts."""
    groups = sorted(by_setting(losses).items(), key=lambda item: (WAYS.index(item[0][0]), item[0]))
    rows = [
        [name for name, _ in COLUMNS],
        [align for _, align in COLUMNS],
        *(row_of(each) for _, each in groups),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def remarks(losses: Sequence[Loss]) -> str:
    """What should be nothing, or is worth a look."""
    late = sum(loss.late_writes for loss in losses)
    returns = sum(loss.later_epochs for loss in losses)
    return (
        f"Leaders lost: {len(losses)}. Writes that the lost leader acknowledged after its loss began: {late}. "
        f"Elections after the return of a lost leader: {returns}.\n"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--picture", type=Path, default=PICTURE, metavar="SVG", help="where it is drawn")
    parser.add_argument("--load-below", type=float, default=math.inf, metavar="LOAD")
    options = parser.parse_args(arguments)
    try:
        everything = merged(read_losses(path) for path in options.files)
        losses = [loss for loss in everything if loss.load < options.load_below]
        if not losses:
            sys.exit("failover_report: these files hold no loss of a leader at such a load")
        options.picture.write_text(picture(losses))
    except (UnreadableLossesError, OSError) as error:
        sys.exit(f"failover_report: {error}")
    print(table(losses))
    print(remarks(losses))
    if len(losses) < len(everything):
        print(f"Left out: {len(everything) - len(losses)} at a load of {options.load_below:g} or more.\n")


if __name__ == "__main__":
    main()
