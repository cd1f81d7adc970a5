"""timeline.html: every operation as a box, a column for each client, the faults shaded.

The page holds the operations as data and draws those of the chosen time on a canvas, so it stays quick with tens of
thousands. A history that is larger still is cut: what lies near violations is kept first, then what came first, and
the page says what it lacks and where.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.jepsen.core.history import History, Op, Operation, OpType
from tests.jepsen.report.findings import Violation, violations_of
from tests.jepsen.report.markup import asset, data, page, text
from tests.jepsen.report.windows import fault_windows, told

TIMELINE_FILE = "timeline.html"
OPERATIONS_MAX = 50_000
NEIGHBOURS = 500
_VALUE_CHARACTERS_MAX = 160
_VIOLATIONS_MAX = 500
_WORKLOADS_MAX = 8


def write_timeline(
    folder: Path,
    history: History,
    results: Mapping[str, Any],
    test: Mapping[str, Any],
    operations_max: int = OPERATIONS_MAX,
) -> None:
    values = timeline_data(history, results, test, operations_max)
    title = f"timeline of {test.get('workload', 'a run')}, {folder.name}"
    body = asset("timeline.html").replace("{title}", text(title)).replace("{shown}", text(_shown(values)))
    body += f'\n<script type="application/json" id="run">{data(values)}</script>'
    html = page(title, body, style=asset("timeline.css"), script=asset("timeline.js"))
    (folder / TIMELINE_FILE).write_text(html, encoding="utf-8")


def timeline_data(
    history: History,
    results: Mapping[str, Any],
    test: Mapping[str, Any],
    operations_max: int = OPERATIONS_MAX,
) -> dict[str, Any]:
    """Times are microseconds. An operation is a row: see `_row`."""
    operations = history.operations()
    violations = violations_of(results)
    chosen = choose(operations, violations, operations_max)
    shown = [operations[place] for place in chosen]
    lanes = lanes_of(operations, test.get("concurrency"))
    columns = sorted({(_node(each), lanes[each.invoke.process]) for each in operations})
    place_of = {lane: place for place, (_, lane) in enumerate(columns)}
    names = sorted({each.invoke.f for each in shown})
    end_ns = history.last_time_ns
    return {
        "end": end_ns // 1000,
        "total": len(operations),
        "fs": names,
        "columns": [{"node": node if node >= 0 else None, "client": lane} for node, lane in columns],
        "ops": [
            _row(each, place_of[lanes[each.invoke.process]], names.index(each.invoke.f), end_ns)
            for each in shown
        ],
        "gaps": _gaps(operations, chosen),
        "windows": [
            [each.f, each.label, each.start_ns // 1000, None if each.end_ns is None else each.end_ns // 1000]
            for each in fault_windows(history)
        ],
        "acts": [[op.time_ns // 1000, _act(op)] for op in history if not op.is_client and _is_end(op)],
        "violations": [_violation(each, history) for each in violations[:_VIOLATIONS_MAX]],
    }


def choose(operations: Sequence[Operation], violations: Sequence[Violation], limit: int) -> list[int]:
    """Places of the operations to show, in order: near violations first, then from the start."""
    if len(operations) <= limit:
        return list(range(len(operations)))
    wanted = {index for violation in violations for index in violation.indices}
    ends = (
        place
        for place, each in enumerate(operations)
        if each.invoke.index in wanted or (each.end is not None and each.end.index in wanted)
    )
    chosen: dict[int, None] = {}
    guilty = list(ends)
    chosen.update(dict.fromkeys(guilty[:limit]))
    for place in guilty:
        for near in range(max(0, place - NEIGHBOURS), min(len(operations), place + NEIGHBOURS + 1)):
            if len(chosen) >= limit:
                break
            chosen[near] = None
    for place in range(len(operations)):
        if len(chosen) >= limit:
            break
        chosen[place] = None
    return sorted(chosen)


def lanes_of(operations: Sequence[Operation], concurrency: Any) -> dict[int, int]:
    """The column of each process. A client that crashed goes on under a new number, in the same column.

    The numbers go up by the clients of all workloads that ran side by side; `concurrency` is that of one. Where no
    multiple of it fits the history, each process has a column of its own.
    """
    processes = {each.invoke.process for each in operations}
    if isinstance(concurrency, int) and concurrency > 0:
        for clients in range(concurrency, concurrency * (_WORKLOADS_MAX + 1), concurrency):
            if _fits(operations, clients):
                return {process: process % clients for process in processes}
    return {process: process for process in processes}


def _fits(operations: Sequence[Operation], clients: int) -> bool:
    """A client speaks to one node and does one thing at a time."""
    nodes: dict[int, int] = {}
    busy_until: dict[int, int | None] = {}
    for each in operations:
        lane = each.invoke.process % clients
        until = busy_until.get(lane, -1)
        if nodes.setdefault(lane, _node(each)) != _node(each) or until is None or until > each.invoke.index:
            return False
        busy_until[lane] = None if each.end is None else each.end.index
    return True


def _row(operation: Operation, column: int, f: int, end_ns: int) -> list[Any]:
    """column, f, kind, start, end, line of invoke, line of end (-1: none), process, asked, answered, error, final."""
    invoke, end = operation.invoke, operation.end
    return [
        column,
        f,
        operation.kind.value,
        invoke.time_ns // 1000,
        (end_ns if end is None else end.time_ns) // 1000,
        invoke.index,
        -1 if end is None else end.index,
        invoke.process,
        _short(invoke.value),
        _short(None if end is None or end.value == invoke.value else end.value),
        None if end is None else _short(end.error),
        int(invoke.final),
    ]


def _short(value: Any) -> str | None:
    if value is None:
        return None
    # A list of a thousand elements is cut before it is made into words: this is done for every read.
    if isinstance(value, list) and len(value) > 40:
        return f"{len(value)} values, the last {_short(value[-20:])}"
    words = value if isinstance(value, str) else str(value)
    return words if len(words) <= _VALUE_CHARACTERS_MAX else words[: _VALUE_CHARACTERS_MAX - 1] + "…"


def _gaps(operations: Sequence[Operation], chosen: Sequence[int]) -> list[list[int]]:
    """The times of invocation of what was left out: [after, before]."""
    gaps = []
    last = -1
    for place in [*chosen, len(operations)]:
        if place > last + 1:
            first, final = operations[last + 1], operations[place - 1]
            gaps.append([first.invoke.time_ns // 1000, final.invoke.time_ns // 1000])
        last = place
    return gaps


def _violation(violation: Violation, history: History) -> dict[str, Any]:
    inside = [index for index in violation.indices if 0 <= index < len(history)]
    return {
        "checker": violation.checker,
        "kind": violation.kind,
        "text": _short(violation.text),
        "lines": inside,
        "times": [history[index].time_ns // 1000 for index in inside],
    }


def _is_end(op: Op) -> bool:
    return op.type is not OpType.INVOKE


def _act(op: Op) -> str:
    return " ".join(word for word in (op.f, _short(op.error) or told(op.value)) if word)


def _node(operation: Operation) -> int:
    return -1 if operation.invoke.node is None else operation.invoke.node


def _shown(values: Mapping[str, Any]) -> str:
    shown, total = len(values["ops"]), values["total"]
    if shown == total:
        return f"All {total:,} operations of the clients are here."
    return (
        f"{shown:,} of {total:,} operations are here: those near violations, then the first ones. "
        "Hatched times lack some; history.jsonl has all."
    )
