"""The tree of commands: each is imported when it is called.

The gRPC and Spark stacks take a second to import; `kquorum --help` and `kquorum log dump` must not pay for them.
"""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pkgutil import iter_modules
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from kquorum.cli import commands
from kquorum.cli.failures import CliError, ExitStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NARROWEST_TABLE = 80  # columns of the terminal in which rich shows the longest names of options whole
HELP_OPTIONS = ("-h", "--help")
COMPLETION_VARIABLE = "_KQUORUM_COMPLETE"
"""A shell sets it when it asks for completions (`kquorum completion`)."""
_NOT_WRAPPED = "\b"  # click's mark in front of a paragraph whose lines are left as they are


class Panel(StrEnum):
    """The parts of `kquorum --help`, in this order."""

    RUN = "Run"
    ASK = "Ask a running cluster"
    ADMINISTER = "Administer a running cluster"
    READ = "Read a log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What a module of `cli.commands` offers as `COMMAND`.

    `run` is the function, the typer.Typer of a command with subcommands, or where one of them is (`module:name`).
    `place` orders the commands of a panel. `examples` end the text of `--help`, by subcommand ("" without one);
    80 columns show lines of 76 characters whole.
    """

    run: Callable[..., None] | typer.Typer | str
    summary: str
    panel: Panel
    place: int
    examples: "Mapping[str, Sequence[str]]" = field(default_factory=dict)


# ruff: noqa: ARG002 - the signatures are click's
class CommandTree(TyperGroup):
    """The commands are the modules of `cli.commands`: `NAME.py`, or `command.py` in the folder NAME.

    A command is imported when it is called. `kquorum --help` imports all of them, so each imports at its top only what
    its options need.
    """

    _is_listing = False

    def get_help_option(self, ctx: Any) -> Any:
        return _as_flag(super().get_help_option(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        panels = list(Panel)
        commands = {name: find(name) for name in command_names()}
        return sorted(commands, key=lambda name: (panels.index(commands[name].panel), commands[name].place))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in command_names():
            return None
        if self._is_listing:
            command = find(cmd_name)
            return TyperCommand(cmd_name, help=command.summary, rich_help_panel=command.panel.value)
        return load(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in command_names():
            ctx.fail(f"no such command: {args[0]}{_nearest(args[0], command_names())}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        with self._listing():
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        with self._listing():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _listing(self) -> Iterator[None]:
        """Commands are only listed with their summaries, not loaded."""
        self._is_listing = True
        try:
            yield
        finally:
            self._is_listing = False


@cache
def command_names() -> tuple[str, ...]:
    """As they are typed, from the names of the modules; nothing is imported."""
    return tuple(name.replace("_", "-") for name in _modules())


@cache
def _modules() -> dict[str, str]:
    """The module of each command, by the name of the file or folder."""
    found = {}
    for module in iter_modules(commands.__path__):
        folder = f"{commands.__name__}.{module.name}"
        found[module.name] = f"{folder}.command" if module.ispkg else folder
    return found


def find(name: str) -> Command:
    """Import a command. Raises CliError when a package that it needs is missing."""
    command = _imported(name, f"{_modules()[name.replace('-', '_')]}:COMMAND")
    assert isinstance(command, Command), name
    return command


def _imported(command: str, target: str) -> Any:
    module_name, _, attribute = target.partition(":")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        raise CliError(
            f"`kquorum {command}` needs the Python package {error.name}, which is not installed",
            status=ExitStatus.MISSING_REQUIREMENT,
        ) from error


def load(name: str) -> Any:
    """A command as click calls it; each command line loads one. Raises CliError when a package that it needs is
    missing."""
    from kquorum.cli.clients.security import begin
    from kquorum.storage.folder_permissions import keep_files_private

    begin()
    command = find(name)
    if command.panel is Panel.READ:
        # What these commands write holds what the log holds.
        keep_files_private()
    target = _imported(name, command.run) if isinstance(command.run, str) else command.run
    if isinstance(target, typer.Typer):
        group = typer.main.get_command(target)
    else:
        single = typer.Typer(add_completion=False, rich_markup_mode="rich")
        single.command(name)(target)
        group = typer.main.get_command(single)
    group.name = name
    _secure(group)
    _make_readable(group, command, "")
    return group


def _as_flag(help_option: Any) -> Any:
    """typer gives `--help` no default, and imports pydantic (80 ms) for the value None of each group on the way to a
    command. It passes False on as it is."""
    help_option.default = False
    return help_option


def _secure(command: Any) -> None:
    """Every command that asks a cluster can be told how a secured one is to be asked."""
    from kquorum.cli.clients.security import add_option

    add_option(command)
    for inner in getattr(command, "commands", {}).values():
        _secure(inner)


def _make_readable(command: Any, described: Command, path: str) -> None:
    """Docstrings are wrapped for our editors; the terminal wraps them again. Each command has its examples, and what
    is in brackets is no markup.

    A narrow terminal gets the options as plain text: rich's columns would cut their names off.
    """
    _as_flag(command.get_help_option(typer.Context(command, help_option_names=list(HELP_OPTIONS))))
    inner_commands = getattr(command, "commands", {})
    has_options = not inner_commands or command.invoke_without_command
    is_plain = has_options and get_terminal_size().columns < _NARROWEST_TABLE
    as_shown = _as_it_is if is_plain else _escaped
    if is_plain:
        command.rich_markup_mode = None
    if command.help:
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        command.help = as_shown("\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs))
    epilog = _epilog(described.examples.get(path))
    command.epilog = f"{_NOT_WRAPPED}\n{epilog}" if is_plain and epilog else as_shown(epilog)
    for option in command.params:
        if hasattr(option, "help"):
            option.help = as_shown(option.help)
    for name, inner in inner_commands.items():
        _make_readable(inner, described, f"{path} {name}".strip())


def _epilog(examples: "Sequence[str] | None") -> str | None:
    """What typer prints after the options."""
    return None if examples is None else "\n".join(("For example:", *(f"  {line}" for line in examples)))


def _as_it_is(text: str | None) -> str | None:
    return text


def _escaped(text: str | None) -> str | None:
    """For rich, without loading it: a bracket in front of these begins a tag."""
    return None if text is None else re.sub(r"\[(?=[a-z#/@])", r"\\[", text)


def _nearest(name: str, known: "Sequence[str]") -> str:
    from kquorum.wire.near_names import near_names

    found = near_names(name, known, 1)
    return f" (did you mean {found[0]}?)" if found else ""
