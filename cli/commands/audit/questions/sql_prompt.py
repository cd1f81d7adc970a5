"""`audit sql` without a query: queries from a prompt with completion, history and paging, or from the standard input.

A query ends with `;` at the end of a line. The error of a query is one line, and the prompt goes on.
"""

import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from kquorum.cli.commands.audit.options import Output
from kquorum.cli.commands.audit.questions.sql import SqlSession
from kquorum.cli.failures import CliError
from kquorum.cli.output import complain, say

_HELP: Final = """\
A query ends with ; at the end of a line.
  .tables          the tables of the audit
  .columns TABLE   the columns of one of them
  .help            this
  .quit            ends, as Ctrl-D does; Ctrl-C leaves the line
"""
_WORDS: Final = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "JOIN", "LEFT JOIN", "ON", "USING", "AND"),
    *("OR", "NOT", "IS NULL", "IS NOT NULL", "BETWEEN", "IN", "LIKE", "AS", "WITH", "DISTINCT", "HAVING"),
    *("UNION ALL", "CASE", "WHEN", "THEN", "ELSE", "END", "OVER", "PARTITION BY", "DESC", "count(*)"),
    *("sum", "min", "max", "avg", "DESCRIBE", "SHOW TABLES"),
)


def ask_queries(session: SqlSession, output: Output) -> None:
    """Until the input ends. Raises CliError for a query of an input that is no terminal, the first that fails."""
    if not sys.stdin.isatty():
        for text in queries_in(sys.stdin):
            session.give(text, output)
        return
    _prompt(session, output)


def queries_in(lines: Iterable[str]) -> Iterator[str]:
    """The queries, each up to a line that ends with `;`, or up to the end."""
    waiting: list[str] = []
    for line in lines:
        waiting.append(line)
        if line.rstrip().endswith(";"):
            yield "".join(waiting)
            waiting = []
    if "".join(waiting).strip():
        yield "".join(waiting)


def words_for(names: dict[str, list[str]]) -> list[str]:
    """What the prompt completes: SQL's words, the tables, and their columns."""
    columns = {column for each in names.values() for column in each}
    return sorted({*_WORDS, *names, *columns}, key=str.lower)


def history_file() -> Path:
    """Where queries are kept from one prompt to the next: in the user's folder for the state of programs."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "kquorum" / "audit-sql-history"


def _prompt(session: SqlSession, output: Output) -> None:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    names = session.names()
    path = history_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600, exist_ok=True)
        history: FileHistory | InMemoryHistory = FileHistory(str(path))
    except OSError as error:
        complain(f"{path}: {error.strerror}; queries are not kept", style="yellow", label="note")
        history = InMemoryHistory()
    prompt: PromptSession[str] = PromptSession(
        history=history,
        auto_suggest=AutoSuggestFromHistory(),
        completer=WordCompleter(words_for(names), ignore_case=True),
        complete_while_typing=False,
        enable_history_search=True,
    )
    say("queries end with ; and .help says more", style="dim")
    waiting = ""
    while True:
        try:
            line = prompt.prompt("audit> " if not waiting else "   ... ")
        except KeyboardInterrupt:
            waiting = ""
            continue
        except EOFError:
            return
        if not waiting and line.strip().startswith("."):
            if not _told(line.strip(), names):
                return
            continue
        waiting += line + "\n"
        if waiting.rstrip().endswith(";"):
            _give(session, waiting, output)
            waiting = ""
        elif not waiting.strip():
            waiting = ""


def _told(command: str, names: dict[str, list[str]]) -> bool:
    """Whether the prompt goes on."""
    word, _, table = command.partition(" ")
    if word in (".quit", ".exit"):
        return False
    if word == ".tables":
        say("\n".join(names))
    elif word == ".columns" and table.strip() in names:
        say("\n".join(names[table.strip()]))
    elif word == ".columns":
        say(f"there is no table {table.strip()!r}; there are {', '.join(names)}")
    else:
        say(_HELP)
    return True


def _give(session: SqlSession, text: str, output: Output) -> None:
    try:
        with _paged():
            session.give(text, output)
    except CliError as error:
        complain(str(error))
    except KeyboardInterrupt:
        complain("interrupted", style="yellow", label="note")


class _PagerInput(io.TextIOWrapper):
    """Taken for the terminal that the pager shows it on."""

    def isatty(self) -> bool:
        return True


@contextmanager
def _paged() -> Iterator[None]:
    """What is printed goes through the user's pager: `$PAGER`, else less, which shows a short answer at once. Without
    one it goes to the terminal."""
    command = shlex.split(os.environ.get("PAGER") or "less")
    if not command or shutil.which(command[0]) is None:
        yield
        return
    # Quit where a screen has it all, keep colours, cut long lines (the arrows move), leave the answer on the screen.
    environment = {"LESS": "-FRSX", **os.environ}
    # The user's own pager, as the shell would start it.
    pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    assert pager.stdin is not None
    out = sys.stdout
    sys.stdout = _PagerInput(pager.stdin, encoding="utf-8")
    try:
        yield
    finally:
        paged, sys.stdout = sys.stdout, out
        # The pager was left before the end of the answer.
        with suppress(BrokenPipeError):
            paged.close()
        pager.wait()
