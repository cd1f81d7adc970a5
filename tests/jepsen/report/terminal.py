"""Progress while a run lasts, and the summary after it, on the terminal."""

from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from tests.jepsen.checkers.verdicts import Results, Verdict
from tests.jepsen.core.generator import SECOND_NS
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.report.findings import checkers_of, findings_of, verdict_of, violations_of
from tests.jepsen.report.windows import fault_windows, told

_STYLES = {Verdict.VALID: "bold green", Verdict.INVALID: "bold red", Verdict.UNKNOWN: "bold yellow"}
_SHOWN_MAX = 5
_SUMMARY_WIDTH_MAX = 120


class Reporter:
    """A bar of the run's time with what was counted; without a terminal, a line for each act of the nemesis."""

    def __init__(self, console: Console, time_s: float) -> None:
        self._console = console
        self._time_ns = time_s * SECOND_NS
        self._counts: Counter[OpType] = Counter()
        self._nemesis_ops: list[Op] = []
        self._shown_ns = -1
        self._progress = Progress(
            TextColumn("{task.fields[left]}"),
            BarColumn(bar_width=12),
            TextColumn("{task.fields[counts]}"),
            TextColumn("{task.fields[faults]}", style="magenta", markup=False),
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
        self._console.print(line, highlight=False, soft_wrap=True, markup=False)

    def on_event(self, op: Op) -> None:
        if op.is_client:
            self._counts[op.type] += 1
            return
        self._nemesis_ops.append(op)
        if op.type is not OpType.INVOKE:
            words = f"{op.f} {op.error or told(op.value)}".strip()
            self.say(f"{op.time_ns / SECOND_NS:7.2f} s  nemesis: {words}")

    def on_idle(self, now_ns: int) -> None:
        if now_ns - self._shown_ns < SECOND_NS // 5:
            return
        self._shown_ns = now_ns
        if self._task is None:
            self._task = self._progress.add_task("", total=self._time_ns, counts="", faults="", left="")
        self._progress.update(
            self._task,
            completed=min(now_ns, self._time_ns),
            left=_left(self._time_ns - now_ns),
            counts=" ".join(
                f"{kind.value} {self._counts[kind]}" for kind in (OpType.OK, OpType.FAIL, OpType.INFO)
            ),
            faults=self.faults(),
        )

    def faults(self) -> str:
        """Those that last at this moment."""
        lasting = [window.f for window in fault_windows(self._nemesis_ops) if window.end_ns is None]
        return ", ".join(dict.fromkeys(lasting)) or "no fault"


def _left(left_ns: float) -> str:
    """After the run's time, what was begun is brought to its end."""
    seconds = int(left_ns // SECOND_NS) + 1
    return f"{seconds // 60}:{seconds % 60:02d} left" if left_ns > 0 else "finishing"


def print_summary(console: Console, results: Results) -> None:
    """Everything that matters of the results in one table, and what was violated below it."""
    table = Table(title="what the clients saw", title_justify="left")
    table.add_column("check")
    table.add_column("verdict")
    table.add_column("findings", overflow="fold")
    for name, found in checkers_of(results).items():
        # As Text, so that brackets in an error are not taken for markup.
        table.add_row(Text(name), _styled(verdict_of(found)), Text("\n".join(findings_of(name, found))))
    console.print(table, width=min(console.width, _SUMMARY_WIDTH_MAX))
    _print_violations(console, results)
    console.print(f"verdict: {_styled(verdict_of(results))}")


def _print_violations(console: Console, results: Mapping[str, Any]) -> None:
    for (_, kind), group in groupby(violations_of(results), key=lambda each: (each.checker, each.kind)):
        entries = list(group)
        for each in entries[:_SHOWN_MAX]:
            console.print(f"  [red]{escape(kind)}[/red] {escape(str(each.entry))}", highlight=False)
        if len(entries) > _SHOWN_MAX:
            console.print(
                f"  [red]{escape(kind)}[/red] and {len(entries) - _SHOWN_MAX} more", highlight=False
            )
    nodes = results.get("nodes")
    for line in nodes.get("suspicious_lines", [])[:_SHOWN_MAX] if isinstance(nodes, Mapping) else []:
        console.print("  [red]log[/red] " + escape(str(line)), highlight=False)


def _styled(verdict: Verdict | None) -> str:
    return "none" if verdict is None else f"[{_STYLES[verdict]}]{verdict.value}[/]"
