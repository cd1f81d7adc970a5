"""What a hunt came to: as a table, as JSON, and as a page of the documentation."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.markup import escape
from rich.table import Table

from tests.simulation.directed.schedules import SCHEDULES
from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.mutants.hunt import Catch, Verdict


def as_json(verdict: Verdict) -> dict[str, Any]:
    safeguard = MUTANTS[verdict.name].safeguard
    return {"mutant": verdict.name, "safeguard": safeguard, "caught": verdict.is_caught} | {
        "by_chance": asdict(verdict.by_chance) if verdict.by_chance else None,
        "by_schedule": asdict(verdict.by_schedule) if verdict.by_schedule else None,
    }


def table_of(verdicts: Sequence[Verdict], runs: int) -> Table:
    table = Table(show_edge=False, show_lines=True)
    table.add_column("mutant, and the safeguard that is gone", ratio=4)
    table.add_column("caught by chance", ratio=2)
    table.add_column("caught by schedule", ratio=2)
    table.add_column("invariant", ratio=4)
    for verdict in verdicts:
        chance, schedule = verdict.by_chance, verdict.by_schedule
        table.add_row(
            f"[bold]{verdict.name}[/]\n{MUTANTS[verdict.name].safeguard}",
            f"{chance.means}, run {chance.runs}, {_time(chance)}" if chance else f"not in {runs} runs",
            f"{schedule.means}, {_time(schedule)}" if schedule else "no",
            escape(_invariants(verdict)) or "[bold red]SURVIVED[/]",
        )
    return table


def _invariants(verdict: Verdict) -> str:
    return "\n".join(catch.invariant for catch in (verdict.by_chance, verdict.by_schedule) if catch)


def _time(catch: Catch) -> str:
    return f"{catch.virtual_ms / 1000:.1f} virtual s"


def markdown_of(verdicts: Sequence[Verdict]) -> str:
    """The two tables of docs/mutants.md."""
    lines = [
        "| mutant | safeguard that is gone | by chance | by schedule | what broke |",
        "|---|---|---|---|---|",
    ]
    for verdict in verdicts:
        chance, schedule = verdict.by_chance, verdict.by_schedule
        first = chance or schedule
        cells = (
            f"`{verdict.name}`",
            MUTANTS[verdict.name].safeguard,
            f"{chance.means}, run {chance.runs}, {_time(chance)}" if chance else "-",
            f"`{schedule.means}`, {_time(schedule)}" if schedule else "-",
            first.invariant.replace("|", "/") if first else "**survived**",
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| schedule | what must hold |", "|---|---|"]
    lines += [f"| `{name}` | {schedule.what_must_hold} |" for name, schedule in SCHEDULES.items()]
    return "\n".join(lines)
