"""index.html of a run: the verdicts, what was violated, how to repeat it, and links to all that the folder holds."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.jepsen.core.generator import SECOND_NS
from tests.jepsen.core.history import History
from tests.jepsen.report.findings import checkers_of, findings_of, verdict_of, violations_of
from tests.jepsen.report.markup import link, page, table, text, verdict_badge
from tests.jepsen.report.timeline import TIMELINE_FILE
from tests.jepsen.report.windows import fault_windows

INDEX_FILE = "index.html"
_FILES = ("history.jsonl", "history.edn", "results.json", "test.json", TIMELINE_FILE)
_LOGS = ("nodes/*/output.log", "nodes/*/data/kquorum.log*")
_PICTURES = ("latency-raw", "latency-quantiles", "rate", "availability")
_VIOLATIONS_MAX = 50
# Options of the command by their names in test.json; units are not part of a flag.
_FLAGS = {
    "workload": "--workload",
    "nemesis": "--nemesis",
    "time_s": "--time",
    "nodes": "--nodes",
    "brokers": "--brokers",
    "net": "--net",
    "rate": "--rate",
    "concurrency": "--concurrency",
    "quiet_s": "--quiet",
    "fault_s": "--fault",
    "op_timeout_s": "--op-timeout",
    "seed": "--seed",
}


def write_index(
    folder: Path,
    history: History,
    results: Mapping[str, Any] | None,
    test: Mapping[str, Any],
    problems: Iterable[str] = (),
) -> None:
    judged = results or {}
    title = f"{test.get('workload', folder.parent.name)} {folder.name}"
    parts = [
        f"<h1>{text(title)} {verdict_badge(verdict_of(judged))}</h1>",
        f'<p class="faint">{text(_overview(history, test))}</p>',
        *(f"<p>Warning: {text(problem)}</p>" for problem in problems),
        "<h2>What the clients saw</h2>",
        _checks(judged),
        _violations(judged),
        "<h2>Faults</h2>",
        _faults(history),
        "<h2>The same run again</h2>",
        f"<pre>{text(repeat_command(test))}</pre>",
        "<h2>Files</h2>",
        _files(folder),
        "<h2>Plots</h2>",
        _plots(folder),
        "<h2>Options</h2>",
        table((), ([text(key), f"<code>{text(value)}</code>"] for key, value in test.items())),
    ]
    (folder / INDEX_FILE).write_text(page(title, "\n".join(parts)), encoding="utf-8")


def repeat_command(test: Mapping[str, Any]) -> str:
    """What `test` says under `command`; else made from its options. One seed asks for the same, at the same times."""
    command = test.get("command")
    if isinstance(command, str):
        return command
    if isinstance(command, list | tuple):
        return shlex.join(str(word) for word in command)
    words = ["python", "-m", "tests.jepsen"]
    for key, flag in _FLAGS.items():
        if test.get(key) is not None:
            words += [flag, _argument(test[key])]
    return shlex.join(words)


def _argument(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(str(each) for each in value)
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1e5 else str(value)


def _overview(history: History, test: Mapping[str, Any]) -> str:
    nemesis = test.get("nemesis", "unknown")
    return (
        f"{len(history.operations()):,} operations in {history.last_time_ns / SECOND_NS:.1f} s; "
        f"nemesis {nemesis}; {test.get('nodes', '?')} controllers, {test.get('brokers', '?')} brokers; "
        f"seed {test.get('seed', 'unknown')}"
    )


def _checks(results: Mapping[str, Any]) -> str:
    if not results:
        return "<p>Nothing was judged: the run did not come to its end.</p>"
    rows = [
        [text(name), verdict_badge(verdict_of(found)), "<br>".join(map(text, findings_of(name, found)))]
        for name, found in checkers_of(results).items()
    ]
    return table(("check", "verdict", "findings"), rows)


def _violations(results: Mapping[str, Any]) -> str:
    found = violations_of(results)
    suspicious = results.get("nodes", {}).get("suspicious_lines", []) if isinstance(results, dict) else []
    if not found and not suspicious:
        return ""
    rows = [[text(each.checker), text(each.kind), text(each.text)] for each in found[:_VIOLATIONS_MAX]]
    rows += [["nodes", "log", f"<code>{text(line)}</code>"] for line in suspicious[:_VIOLATIONS_MAX]]
    left_out = len(found) - _VIOLATIONS_MAX
    more = f"<p>{left_out} more are in results.json.</p>" if left_out > 0 else ""
    return f"<h2>Violations</h2>{table(('check', 'kind', 'what'), rows)}{more}"


def _faults(history: History) -> str:
    windows = fault_windows(history)
    if not windows:
        return "<p>None.</p>"
    rows = [
        [
            text(window.label),
            f"{window.start_ns / SECOND_NS:.2f} s",
            "never healed" if window.end_ns is None else f"{window.end_ns / SECOND_NS:.2f} s",
        ]
        for window in windows
    ]
    return table(("fault", "from", "until"), rows)


def _files(folder: Path) -> str:
    rows = [[link(name), _size(folder / name)] for name in _FILES if (folder / name).is_file()]
    for pattern in _LOGS:
        for path in sorted(folder.glob(pattern), key=_by_node):
            rows.append([link(path.relative_to(folder).as_posix()), _size(path)])
    return table((), rows)


def _by_node(path: Path) -> tuple[int, str]:
    """Node 11 comes after node 2."""
    digits = next((part for part in reversed(path.parts) if part.isdigit()), "0")
    return int(digits), path.name


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size} bytes" if size < 10_000 else f"{size // 1000:,} kB"


def _plots(folder: Path) -> str:
    there: Sequence[str] = [name for name in _PICTURES if (folder / f"{name}.png").is_file()]
    if not there:
        return "<p>None were drawn.</p>"
    return "\n".join(
        f'<p><img src="{name}.png" alt="{name}"><br>{link(f"{name}.png")} '
        f"{link(f'{name}.svg') if (folder / f'{name}.svg').is_file() else ''}</p>"
        for name in there
    )
