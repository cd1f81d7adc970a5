"""What to say of the results, on the terminal and in the pages: a few lines a checker, and each violation.

A checker may bring its own lines under `summary`, the reasons of its doubt under `reasons`, and what it found
wrong under `anomalies`, by kind. Results come from a checker or, once stored, from JSON; both are taken.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.report.windows import told

SET_VIOLATIONS = ("lost", "vanished", "reappeared", "unexpected", "duplicated")
_LINES_MAX = 12
_FROM_JSON: Mapping[object, Verdict] = {
    True: Verdict.VALID,
    False: Verdict.INVALID,
    "unknown": Verdict.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class Violation:
    """`indices` are the lines of the history that it speaks of."""

    checker: str
    kind: str
    entry: Any
    indices: tuple[int, ...]

    @property
    def text(self) -> str:
        if isinstance(self.entry, Mapping):
            return ", ".join(f"{key} {value}" for key, value in self.entry.items())
        return str(self.entry)


def verdict_of(results: Any) -> Verdict | None:
    """None where there is no verdict at all: these are not the results of a checker."""
    value = results.get(VALID_KEY) if isinstance(results, Mapping) else None
    if isinstance(value, Verdict):
        return value
    return _FROM_JSON.get(value) if isinstance(value, bool | str) else None


def checkers_of(results: Mapping[str, Any]) -> dict[str, Results]:
    return {
        name: dict(found)
        for name, found in results.items()
        if name != VALID_KEY and isinstance(found, Mapping) and verdict_of(found) is not None
    }


def findings_of(name: str, found: Mapping[str, Any]) -> list[str]:
    """Lines for people; a checker that is not known here and has no summary shows its plain values."""
    reasons = _reasons(found)
    if "error" in found:
        return [str(found["error"]), *reasons]
    if isinstance(found.get("summary"), list | tuple):
        return [*(str(line) for line in found["summary"]), *reasons]
    try:
        lines = _KNOWN[name](found) if name in _KNOWN else _plain(found)
    except (KeyError, TypeError, ValueError, AttributeError):
        lines = _plain(found)
    return [*lines, *reasons]


def violations_of(results: Mapping[str, Any]) -> list[Violation]:
    return [
        Violation(checker, kind, entry, tuple(sorted(set(_indices(entry)))))
        for checker, found in checkers_of(results).items()
        for kind, entries in _anomalies(found).items()
        for entry in entries
    ]


def _anomalies(found: Mapping[str, Any]) -> dict[str, list[Any]]:
    named = found.get("anomalies")
    kinds = dict(named) if isinstance(named, Mapping) else {}
    kinds |= {kind: found[kind] for kind in SET_VIOLATIONS if kind in found and kind not in kinds}
    return {str(kind): list(entries) for kind, entries in kinds.items() if isinstance(entries, list | tuple)}


def _indices(entry: Any, key: str = "") -> Iterator[int]:
    """Lines of the history are called `index`, `..._at`, or stand in lists of `ops` or `indices`."""
    if isinstance(entry, Mapping):
        for name, value in entry.items():
            yield from _indices(value, str(name))
    elif isinstance(entry, list | tuple):
        for value in entry:
            yield from _indices(value, key)
    elif isinstance(entry, int) and not isinstance(entry, bool) and _names_lines(key):
        yield entry


def _names_lines(key: str) -> bool:
    return key in ("index", "indices", "ops", "op") or key.endswith(("_at", "_index", "_indices"))


def _reasons(found: Mapping[str, Any]) -> list[str]:
    reasons = found.get("reasons", found.get("reason"))
    if not reasons:
        return []
    return [str(each) for each in reasons] if isinstance(reasons, list | tuple) else [str(reasons)]


def _plain(found: Mapping[str, Any]) -> list[str]:
    words = [
        f"{key} {value}"
        for key, value in found.items()
        if key != VALID_KEY and isinstance(value, int | float | str) and "\n" not in str(value)
    ]
    return words[:_LINES_MAX]


def _stats(found: Mapping[str, Any]) -> list[str]:
    return [
        f"{f}: {row['count']} ({row['ok']} ok, {row['fail']} fail, {row['info']} info)"
        for f, row in found["by_f"].items()
    ]


def _set(found: Mapping[str, Any]) -> list[str]:
    latency = found["stable_latency_ms"]
    return [
        f"{found['acknowledged_count']} acknowledged, {found['deleted_count']} of them deleted; "
        f"{found['unsure_count']} unsure, {found['recovered_count']} of them showed up",
        ", ".join(f"{found[f'{kind}_count']} {kind}" for kind in SET_VIOLATIONS)
        + f", {found['never_read_count']} never read",
        f"{found['stale_reads']} of {found['reads']} reads stale, the longest by {found['longest_stale_ms']} ms",
        "stable after " + ", ".join(f"{value} ms (p{float(key) * 100:g})" for key, value in latency.items()),
    ]


def _availability(found: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{fault['f']} {told(fault['value'])}: no write for {fault['longest_without_write_ms']} ms, "
        f"{fault['writes_in_fault']} writes in the fault, then {told(fault['healed']) or 'no leader'}"
        for fault in found["faults"]
    ]
    lines.append(
        f"longest without a write {found['longest_without_write_ms']} ms, "
        f"without a read {found['longest_without_read_ms']} ms"
    )
    return lines if found["recovered"] else [*lines, "no write succeeded after the last heal"]


def _nodes(found: Mapping[str, Any]) -> list[str]:
    ended = ", ".join(f"node {node} with {status}" for node, status in found["ended_by_themselves"].items())
    return [f"ended by themselves: {ended or 'none'}; suspicious log lines: {found['suspicious_line_count']}"]


_KNOWN: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "stats": _stats,
    "set": _set,
    "availability": _availability,
    "nodes": _nodes,
}
