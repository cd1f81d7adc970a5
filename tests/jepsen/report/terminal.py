"""Progress while a run lasts, and the summary after it, on the terminal."""

from collections import Counter
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.generator import SECOND_NS
from tests.jepsen.history import Op, OpType

_STYLES = {Verdict.VALID: "bold green", Verdict.INVALID: "bold red", Verdict.UNKNOWN: "bold yellow"}
_VIOLATIONS = ("lost", "vanished", "reappeared", "unexpected", "duplicated")


class Reporter:
    """A bar of the run's time with what was counted; without a terminal, a line for each act of the nemesis."""

    def __init__(self, console: Console, time_s: float) -> None:
        self._console = console
        self._time_ns = time_s * SECOND_NS
        self._counts: Counter[OpType] = Counter()
        self._nemesis = "no fault"
        self._shown_ns = -1
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TimeElapsedColumn(),
            TextColumn("{task.fields[counts]}"),
            TextColumn("[magenta]{task.fields[nemesis]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True)

    def on_event(self, op: Op) -> None:
        if op.is_client:
            self._counts[op.type] += 1
        elif op.type is not OpType.INVOKE:
            told = op.error or _told(op.value)
            self._nemesis = f"{op.f} {told}".strip()
            self.say(f"{op.time_ns / SECOND_NS:7.2f} s  nemesis: {self._nemesis}")

    def on_idle(self, now_ns: int) -> None:
        if now_ns - self._shown_ns < SECOND_NS // 5:
            return
        self._shown_ns = now_ns
        if self._task is None:
            self._task = self._progress.add_task("run", total=self._time_ns, counts="", nemesis="")
        self._progress.update(
            self._task,
            completed=min(now_ns, self._time_ns),
            counts=" ".join(f"{kind.value} {self._counts[kind]}" for kind in OpType),
            nemesis=self._nemesis,
        )


def _told(value: Any) -> str:
    return ", ".join(f"{key} {each}" for key, each in value.items()) if isinstance(value, dict) else ""


def print_summary(console: Console, results: Results) -> None:
    """Everything that matters of the results in one table, and what was violated below it."""
    table = Table(title="what the clients saw", title_justify="left")
    table.add_column("check")
    table.add_column("verdict")
    table.add_column("findings")
    for name, found in results.items():
        if name != VALID_KEY and isinstance(found, dict) and VALID_KEY in found:
            table.add_row(name, _styled(found[VALID_KEY]), "\n".join(_findings(name, found)))
    console.print(table)
    for kind in _VIOLATIONS:
        for each in results.get("set", {}).get(kind, [])[:5]:
            console.print(f"  [red]{kind}[/red] {each}", highlight=False)
    for line in results.get("nodes", {}).get("suspicious_lines", [])[:5]:
        console.print(f"  [red]log[/red] {line}", highlight=False, markup=False)
    console.print(f"verdict: {_styled(results[VALID_KEY])}")


def _styled(verdict: Verdict) -> str:
    return f"[{_STYLES[verdict]}]{verdict.value}[/]"


def _findings(name: str, found: Results) -> list[str]:
    if "error" in found:
        return [str(found["error"])]
    known = {"stats": _stats, "set": _set, "availability": _availability, "nodes": _nodes}
    return known[name](found) if name in known else []


def _stats(found: Results) -> list[str]:
    return [
        f"{f}: {row['count']} ({row['ok']} ok, {row['fail']} fail, {row['info']} info)"
        for f, row in found["by_f"].items()
    ]


def _set(found: Results) -> list[str]:
    latency = found["stable_latency_ms"]
    return [
        f"{found['acknowledged_count']} acknowledged, {found['deleted_count']} of them deleted; "
        f"{found['unsure_count']} unsure, {found['recovered_count']} of them showed up",
        ", ".join(f"{found[f'{kind}_count']} {kind}" for kind in _VIOLATIONS)
        + f", {found['never_read_count']} never read",
        f"{found['stale_reads']} of {found['reads']} reads stale, the longest by {found['longest_stale_ms']} ms",
        "stable after " + ", ".join(f"{value} ms (p{float(key) * 100:g})" for key, value in latency.items()),
    ]


def _availability(found: Results) -> list[str]:
    lines = [
        f"{fault['f']} {_told(fault['value'])}: no write for {fault['longest_without_write_ms']} ms, "
        f"{fault['writes_in_fault']} writes in the fault, then {_told(fault['healed']) or 'no leader'}"
        for fault in found["faults"]
    ]
    lines.append(
        f"longest without a write {found['longest_without_write_ms']} ms, "
        f"without a read {found['longest_without_read_ms']} ms"
    )
    return lines if found["recovered"] else [*lines, "no write succeeded after the last heal"]


def _nodes(found: Results) -> list[str]:
    ended = ", ".join(f"node {node} with {status}" for node, status in found["ended_by_themselves"].items())
    return [f"ended by themselves: {ended or 'none'}; suspicious log lines: {found['suspicious_line_count']}"]
