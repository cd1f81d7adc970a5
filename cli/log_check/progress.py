"""A progress bar on standard error, for people who wait for a large log."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cli.output import error_console

_WORTH_A_BAR_BYTES = 16 * 1024 * 1024


@contextmanager
def byte_progress(what: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """What to call with bytes done; a bar only on a terminal, and only where there is something to wait for."""
    if total_bytes < _WORTH_A_BAR_BYTES or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=error_console(), transient=True) as progress:
        task = progress.add_task(what, total=total_bytes)
        yield lambda done: progress.advance(task, done)
