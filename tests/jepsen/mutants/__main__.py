"""Hunt for every planted bug with the run that ought to find it: `python -m tests.jepsen.mutants [NAME ...]`.

Each hunt is a run of the real thing, repeated with other seeds until the bug is found or its time is up. A bug counts
as found when a run is invalid (exit status 1); one that merely leaves runs in doubt has survived. With --controls
the same run is made without the bug as well, and has to be valid. Exit status: 0 all found, 1 not.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.jepsen.checkers.verdicts import EXIT_STATUS, Verdict
from tests.jepsen.core.store import LATEST, RESULTS_FILE
from tests.jepsen.mutants.planting import PLANTED, Planted

HUNT_S = 300.0
RUN_S = 60.0
_VERDICTS = {status: verdict.value for verdict, status in EXIT_STATUS.items()}


@dataclass(frozen=True, slots=True)
class Hunt:
    """`found_by` names the checkers that said invalid; `control` is the verdict of the same run without the bug."""

    name: str
    safeguard: str
    command: str
    found: bool
    found_by: list[str]
    seed: int
    runs: int
    seconds: float
    control: str | None


def hunt(planted: Planted, store: Path, seed: int, *, controls: bool) -> Hunt:
    began = time.monotonic()
    runs = 0
    verdict, found_by = "", list[str]()
    while time.monotonic() - began < HUNT_S and verdict != Verdict.INVALID:
        runs += 1
        verdict, found_by = _run(planted, store, seed + runs - 1, "--mutant", planted.name)
    seconds = time.monotonic() - began
    last = seed + runs - 1
    return Hunt(
        planted.name,
        planted.safeguard,
        " ".join(("python -m tests.jepsen", *_arguments(planted, last), "--mutant", planted.name)),
        verdict == Verdict.INVALID,
        found_by,
        last,
        runs,
        round(seconds, 1),
        _run(planted, store / "controls", last)[0] if controls else None,
    )


def _arguments(planted: Planted, seed: int) -> list[str]:
    return [*planted.hunt, "--time", f"{RUN_S:g}", "--brokers", "2", "--seed", str(seed)]


def _run(planted: Planted, store: Path, seed: int, *more: str) -> tuple[str, list[str]]:
    """The verdict, and the checkers which said invalid."""
    home = store / planted.name
    command = [
        sys.executable,
        "-m",
        "tests.jepsen",
        *_arguments(planted, seed),
        "--no-pages",
        "--store",
        str(home),
        *more,
    ]
    home.mkdir(parents=True, exist_ok=True)
    with (home / "output.log").open("a") as output:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False
        )
    if done.returncode not in _VERDICTS:
        raise SystemExit(done.returncode)
    results = json.loads((home / LATEST / RESULTS_FILE).read_text()) if done.returncode == 1 else {}
    invalid = [
        name for name, each in results.items() if isinstance(each, dict) and each.get("valid?") is False
    ]
    return _VERDICTS[done.returncode], invalid


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.jepsen.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PLANTED)}; all without one")
    parser.add_argument("--store", type=Path, default=Path("store/mutants"))
    parser.add_argument("--seed", type=int, default=1, help="of each hunt's first run (1)")
    parser.add_argument("--controls", action="store_true", help="run each last run without the bug, too")
    parser.add_argument("--out", type=Path, help="append a JSON line for each hunt")
    chosen = parser.parse_args()
    if unknown := sorted(set(chosen.names) - set(PLANTED)):
        parser.error(f"no mutant {', '.join(unknown)}")
    console = Console()
    hunts = []
    for name in chosen.names or PLANTED:
        console.print(f"hunting for {name}", highlight=False)
        hunts.append(hunt(PLANTED[name], chosen.store, chosen.seed, controls=chosen.controls))
        if chosen.out is not None:
            with chosen.out.open("a") as lines:
                lines.write(json.dumps(asdict(hunts[-1])) + "\n")
    console.print(_table(hunts))
    return 0 if all(each.found for each in hunts) else 1


def _table(hunts: list[Hunt]) -> Table:
    table = Table("mutant", "found by", "runs", "seconds", "seed", "control")
    for each in hunts:
        found_by = ", ".join(each.found_by) if each.found else "[red]not found"
        table.add_row(
            each.name, found_by, str(each.runs), f"{each.seconds:g}", str(each.seed), each.control or ""
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
