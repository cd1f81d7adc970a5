"""Many seeds over several processes: totals, a progress bar, and the first failure made small."""

import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tests.simulation.run import Outcome, SimulationFailed, simulate

SEEDS_PER_CHUNK = 20


@dataclass
class Totals:
    """What a batch of runs came to; `failures` are (seed, message)."""

    runs: int = 0
    events: int = 0
    virtual_ms: int = 0
    acknowledged: int = 0
    epochs: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    seconds: float = 0.0

    def count(self, outcome: Outcome) -> None:
        self.runs += 1
        self.events += outcome.events
        self.virtual_ms += outcome.virtual_ms
        self.acknowledged += outcome.acknowledged
        self.epochs += outcome.epochs
        self.tally.update(outcome.tally)

    def add(self, other: "Totals") -> None:
        self.runs += other.runs
        self.events += other.events
        self.virtual_ms += other.virtual_ms
        self.acknowledged += other.acknowledged
        self.epochs += other.epochs
        self.tally.update(other.tally)
        self.failures.extend(other.failures)

    def as_json(self) -> str:
        values = {
            "runs": self.runs,
            "seconds": round(self.seconds, 1),
            "events": self.events,
            "events_per_second": round(self.events / max(self.seconds, 1e-9)),
            "virtual_seconds": self.virtual_ms // 1000,
            "acknowledged_records": self.acknowledged,
            "epochs": self.epochs,
            **{name.replace(" ", "_"): number for name, number in sorted(self.tally.items())},
            "failed_seeds": [seed for seed, _ in self.failures],
        }
        return json.dumps(values, indent=2)


def run_chunk(seeds: range, profile: str = "core") -> Totals:
    """Run these seeds; those that fail are noted and do not stop the others."""
    totals = Totals()
    for seed in seeds:
        try:
            totals.count(simulate(seed, profile=profile))
        except SimulationFailed as failure:
            totals.failures.append((seed, str(failure)))
    return totals


def run_seeds(
    first: int, runs: int, jobs: int, console: Console, *, keeps_going: bool = False, profile: str = "core"
) -> Totals:
    """Run `runs` seeds from `first` in `jobs` processes, up to the first failure unless it `keeps_going`."""
    begun = time.monotonic()
    totals = Totals()
    chunks = [
        range(start, min(start + SEEDS_PER_CHUNK, first + runs))
        for start in range(first, first + runs, SEEDS_PER_CHUNK)
    ]
    with _progress(console) as progress:
        task = progress.add_task(f"seeds {first} to {first + runs - 1}", total=runs)
        for part in _parts(chunks, jobs, profile):
            totals.add(part)
            progress.update(task, completed=totals.runs + len(totals.failures))
            if totals.failures and not keeps_going:
                break
    totals.seconds = time.monotonic() - begun
    return totals


def _parts(chunks: Iterable[range], jobs: int, profile: str) -> Iterator[Totals]:
    run = partial(run_chunk, profile=profile)
    if jobs == 1:
        yield from map(run, chunks)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(run, chunks)


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


def table_of(totals: Totals) -> Table:
    table = Table(title=f"{totals.runs} runs held every invariant", title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    seconds = max(totals.seconds, 1e-9)
    table.add_row("events", f"{totals.events:,}")
    table.add_row("events per second", f"{totals.events / seconds:,.0f}")
    table.add_row("wall-clock seconds", f"{totals.seconds:,.1f}")
    table.add_row("virtual hours", f"{totals.virtual_ms / 3_600_000:,.1f}")
    table.add_row("acknowledged records", f"{totals.acknowledged:,}")
    table.add_row("epochs", f"{totals.epochs:,}")
    for name, number in sorted(totals.tally.items()):
        table.add_row(name, f"{number:,}")
    return table
