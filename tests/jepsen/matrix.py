"""Every workload under every nemesis: `python -m tests.jepsen.matrix --nodes 3,5 --time 60`.

A cell is a run of one nemesis with workloads side by side (`--workloads a,b+c`: first a alone, then b and c in one
cluster). Its row goes into STORE/matrix.jsonl as soon as it is judged; `--resume` leaves out what has a row already,
but for verdicts named by `--again`. Seeds are made of the cell's name, so that a row tells how to run it again.

The audit's tables need Spark, which is slow to start: cells leave them out, and are unknown where the audit is among
their workloads. `python -m tests.jepsen.core.audit_replay FOLDER...` makes those of many runs at once; after that,
`--rejudge` judges every cell again from the store.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.jepsen.checkers.verdicts import EXIT_STATUS, VALID_KEY, Verdict, as_json
from tests.jepsen.core.history import NEMESIS_NAME
from tests.jepsen.core.judging import judge_stored
from tests.jepsen.core.store import HISTORY_FILE, LATEST, RESULTS_FILE
from tests.jepsen.faults.catalogue import ALL, FAULTS, NONE
from tests.jepsen.workloads.catalogue import WORKLOADS

EACH = "each"
ROWS_FILE = "matrix.jsonl"
_VERDICTS = {status: verdict.value for verdict, status in EXIT_STATUS.items()}


@dataclass(frozen=True, slots=True)
class Cell:
    workloads: str
    nemesis: str
    nodes: int

    @property
    def name(self) -> str:
        return f"{self.workloads.replace(',', '+')} {self.nemesis} {self.nodes}"


@dataclass(frozen=True, slots=True)
class Row:
    """`verdicts` by checker; `faults` that happened, by name; `operations` of clients, and how many ended ok."""

    cell: str
    workloads: str
    nemesis: str
    nodes: int
    seed: int
    time_s: float
    verdict: str
    verdicts: dict[str, str]
    faults: dict[str, int]
    operations: int
    ok: int
    longest_without_write_ms: int | None
    command: str
    folder: str
    load: float
    at: str


class Matrix:
    def __init__(self, store: Path, time_s: float, seed: int, more: Sequence[str]) -> None:
        self._store = store
        self._time_s = time_s
        self._seed = seed
        self._more = tuple(more)

    def run(self, cell: Cell) -> Row:
        """Raises nothing of the run's: what went wrong is an unknown verdict, with the output beside the run."""
        seed = zlib.crc32(f"{cell.name} {self._seed}".encode()) % 1_000_000
        home = self._store / cell.name.replace(" ", "_")
        arguments = ["--workload", cell.workloads, "--nemesis", cell.nemesis, "--nodes", str(cell.nodes)]
        arguments += ["--time", f"{self._time_s:g}", "--seed", str(seed), *self._more]
        home.mkdir(parents=True, exist_ok=True)
        with (home / "output.log").open("a") as output:
            done = subprocess.run(
                [sys.executable, "-m", "tests.jepsen", *arguments, "--no-pages", "--store", str(home)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "KQUORUM_JEPSEN_AUDIT": "later"},
                check=False,
            )
        verdict = _VERDICTS.get(done.returncode, f"exit status {done.returncode}")
        return _row(cell, seed, self._time_s, verdict, home, " ".join(["python -m tests.jepsen", *arguments]))


def _row(cell: Cell, seed: int, time_s: float, verdict: str, home: Path, command: str) -> Row:
    folder = (home / LATEST).resolve()
    results = _results(folder)
    stats = results.get("stats", {})
    return Row(
        cell=cell.name,
        workloads=cell.workloads,
        nemesis=cell.nemesis,
        nodes=cell.nodes,
        seed=seed,
        time_s=time_s,
        verdict=verdict,
        verdicts={
            name: _word(each[VALID_KEY])
            for name, each in results.items()
            if isinstance(each, dict) and VALID_KEY in each
        },
        faults=_faults(folder / HISTORY_FILE),
        operations=stats.get("count", 0),
        ok=stats.get("ok", 0),
        longest_without_write_ms=results.get("availability", {}).get("longest_without_write_ms"),
        command=command,
        folder=str(folder.relative_to(home.parent.resolve())),
        load=round(os.getloadavg()[0], 1),
        at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def rejudged(row: Row, store: Path) -> Row:
    """As today's checkers see it; the row itself where its run is gone."""
    folder = store / row.folder
    if not (folder / HISTORY_FILE).exists():
        return row
    results = judge_stored(folder)
    (folder / RESULTS_FILE).write_text(json.dumps(as_json(results), indent=2, default=str) + "\n")
    verdicts = {name: each[VALID_KEY].value for name, each in results.items() if name != VALID_KEY}
    return replace(row, verdict=results[VALID_KEY].value, verdicts=verdicts)


def _results(folder: Path) -> dict[str, Any]:
    path = folder / RESULTS_FILE
    found = json.loads(path.read_text()) if path.exists() else {}
    assert isinstance(found, dict)
    return found


def _word(value: object) -> str:
    if value is True:
        return Verdict.VALID.value
    return Verdict.INVALID.value if value is False else Verdict.UNKNOWN.value


def _faults(history: Path) -> dict[str, int]:
    counts: dict[str, int] = {}
    if not history.exists():
        return counts
    for line in history.read_text().splitlines():
        op = json.loads(line)
        if op["process"] == NEMESIS_NAME and op["type"] == "info" and "error" not in op and op["f"] != "heal":
            counts[op["f"]] = counts.get(op["f"], 0) + 1
    return counts


def cells(workloads: Sequence[str], nemeses: Sequence[str], nodes: Sequence[int]) -> Iterator[Cell]:
    for count in nodes:
        for nemesis in nemeses:
            for group in workloads:
                yield Cell(group, nemesis, count)


def rows_of(path: Path) -> dict[str, Row]:
    """The last row of each cell."""
    if not path.exists():
        return {}
    rows = [Row(**json.loads(line)) for line in path.read_text().splitlines()]
    return {row.cell: row for row in rows}


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.jepsen.matrix", description=__doc__)
    parser.add_argument(
        "--workloads", default=EACH, help="groups with commas between them, a group's workloads with +; each"
    )
    parser.add_argument("--nemeses", default=EACH, help=f"names with commas between them; each; also {ALL}")
    parser.add_argument("--nodes", default="3,5", help="numbers of controllers (3,5)")
    parser.add_argument("--time", type=float, default=60.0, help="seconds of load in each cell (60)")
    parser.add_argument("--jobs", type=int, default=1, help="cells at the same time (1)")
    parser.add_argument("--seed", type=int, default=1, help="of the matrix; each cell's is made of it")
    parser.add_argument("--store", type=Path, default=Path("store/matrix"))
    parser.add_argument("--rows", type=Path, help="the file of rows, if not STORE/matrix.jsonl")
    parser.add_argument("--resume", action="store_true", help="leave out cells that have a row")
    parser.add_argument("--again", default="", help="with --resume: verdicts that are tried again")
    parser.add_argument(
        "--rejudge",
        action="store_true",
        help="run nothing, judge again what is in the store, of --workloads if there are",
    )
    parser.add_argument("more", nargs="*", metavar="-- OPTION", help="for every run, such as --brokers 2")
    return parser.parse_args(arguments)


def main() -> int:
    chosen = parse()
    groups = list(WORKLOADS) if chosen.workloads == EACH else chosen.workloads.split(",")
    nemeses = [NONE, *FAULTS] if chosen.nemeses == EACH else chosen.nemeses.split(",")
    wanted = list(
        cells(
            [group.replace("+", ",") for group in groups],
            nemeses,
            [int(each) for each in chosen.nodes.split(",")],
        )
    )
    rows_path = chosen.rows or chosen.store / ROWS_FILE
    chosen.store.mkdir(parents=True, exist_ok=True)
    if chosen.rejudge:
        of_groups = None if chosen.workloads == EACH else {cell.workloads for cell in wanted}
        return _rejudge(chosen.store, rows_path, of_groups)
    if chosen.resume:
        again = set(chosen.again.split(","))
        done = {name for name, row in rows_of(rows_path).items() if row.verdict not in again}
        wanted = [cell for cell in wanted if cell.name not in done]
    return _run_all(
        wanted, Matrix(chosen.store, chosen.time, chosen.seed, chosen.more), rows_path, chosen.jobs
    )


def _rejudge(store: Path, rows_path: Path, groups: Collection[str] | None) -> int:
    """The rows of these groups of workloads, or all. A cell whose verdict is another one now gets another row, and the
    last one counts."""
    console = Console()
    rows = []
    for row in rows_of(rows_path).values():
        if groups is not None and row.workloads not in groups:
            continue
        rows.append(rejudged(row, store))
        if rows[-1] != row:
            _keep(rows[-1], rows_path)
        if rows[-1].verdict != row.verdict:
            console.print(f"{row.cell}: {row.verdict}, now {rows[-1].verdict}", highlight=False)
    return 0 if all(row.verdict == Verdict.VALID for row in rows) else 1


def _keep(row: Row, rows_path: Path) -> None:
    with rows_path.open("a") as lines:
        lines.write(json.dumps(asdict(row)) + "\n")


def _run_all(wanted: Sequence[Cell], matrix: Matrix, rows_path: Path, jobs: int) -> int:
    console = Console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    all_valid = True
    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(max_workers=jobs) as pool:
        task = progress.add_task("cells", total=len(wanted))
        for done in as_completed([pool.submit(matrix.run, cell) for cell in wanted]):
            row = done.result()
            _keep(row, rows_path)
            progress.advance(task)
            console.print(f"{row.at} {row.cell}: {row.verdict}", highlight=False)
            all_valid = all_valid and row.verdict == Verdict.VALID
    return 0 if all_valid else 1


if __name__ == "__main__":
    sys.exit(main())
