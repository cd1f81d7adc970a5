"""Everything that a run's folder shows besides the bare files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.jepsen.core.history import History
from tests.jepsen.report.index_page import write_index
from tests.jepsen.report.timeline import write_timeline


def write_report(
    folder: Path, history: History, results: Mapping[str, Any] | None, test: Mapping[str, Any]
) -> list[str]:
    """Writes what can be written, and answers what could not, one line each; it never raises an Exception.

    `test` holds the options; its `command`, if it has one, is how to repeat the run, and its `reads` say which f
    only read. `results` is None when nothing was judged.
    """
    problems: list[str] = []

    def attempt(name: str, write: Callable[[], list[str] | None]) -> None:
        try:
            problems.extend(write() or [])
        except Exception as error:  # noqa: BLE001 - a broken page must not cost the run its verdict
            problems.append(f"{name} could not be written: {type(error).__name__}: {error}")

    judged = results or {}
    attempt("the plots", lambda: _plots(folder, history, test))
    attempt("the timeline", lambda: write_timeline(folder, history, judged, test))
    # Last, since it links what is there.
    attempt("the index", lambda: write_index(folder, history, results, test, problems))
    return problems


def _plots(folder: Path, history: History, test: Mapping[str, Any]) -> list[str]:
    """matplotlib takes a second to load and may be missing: it belongs to the development tools."""
    try:
        from tests.jepsen.report.plots import write_plots
    except ImportError as error:
        return [f"no plots: {error}"]
    return write_plots(folder, history, test.get("reads"))
