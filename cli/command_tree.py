"""A group whose commands are imported when they are called, not when they are listed.

The gRPC and Spark stacks take a second to import; `kquorum --help` and `kquorum log dump` must not pay for them.
"""

import importlib
import inspect
import re
from dataclasses import dataclass
from shutil import get_terminal_size
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from cli.errors import CliError
from cli.exit_status import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

_NARROWEST_TABLE = 80  # columns of the terminal in which rich shows the longest names of options whole
_NOT_WRAPPED = "\b"  # click's mark in front of a paragraph whose lines are left as they are


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command is (`module:attribute`, a function or a typer.Typer) and the line `--help` lists."""

    target: str
    summary: str
    panel: str


# ruff: noqa: ARG002 - the signatures are click's
class LazyGroup(TyperGroup):
    """Subclasses list their commands in `commands_by_name`."""

    commands_by_name: "ClassVar[Mapping[str, LazyCommand]]" = MappingProxyType({})
    _is_listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands_by_name)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = self.commands_by_name.get(cmd_name)
        if command is None:
            return None
        if self._is_listing:
            return TyperCommand(cmd_name, help=command.summary, rich_help_panel=command.panel)
        return load(cmd_name, command)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands_by_name:
            ctx.fail(f"no such command: {args[0]}{_nearest(args[0], self.commands_by_name)}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._is_listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._is_listing = False


def load(name: str, command: LazyCommand) -> Any:
    """Import a command and make it callable. Raises CliError when a package it needs is missing."""
    module_name, _, attribute = command.target.partition(":")
    try:
        target = getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        raise CliError(
            f"`kquorum {name}` needs the Python package {error.name}, which is not installed",
            status=ExitStatus.MISSING_REQUIREMENT,
        ) from error
    if isinstance(target, typer.Typer):
        group = typer.main.get_command(target)
    else:
        single = typer.Typer(add_completion=False, rich_markup_mode="rich")
        single.command(name)(target)
        group = typer.main.get_command(single)
    group.name = name
    _secure(group)
    _make_readable(group, name)
    return group


def _secure(command: Any) -> None:
    """Every command that asks a cluster can be told how a secured one is to be asked."""
    from cli.command_security import add_option

    add_option(command)
    for inner in getattr(command, "commands", {}).values():
        _secure(inner)


def _make_readable(command: Any, path: str) -> None:
    """Docstrings are wrapped for our editors; the terminal wraps them again. Each command has its examples, and what
    is in brackets is no markup.

    A narrow terminal gets the options as plain text: rich's columns would cut their names off.
    """
    from cli.commands.examples import epilog_of

    inner_commands = getattr(command, "commands", {})
    is_plain = not inner_commands and get_terminal_size().columns < _NARROWEST_TABLE
    as_shown = _as_it_is if is_plain else _escaped
    if is_plain:
        command.rich_markup_mode = None
    if command.help:
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        command.help = as_shown("\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs))
    epilog = epilog_of(path)
    command.epilog = f"{_NOT_WRAPPED}\n{epilog}" if is_plain and epilog else as_shown(epilog)
    for option in command.params:
        if hasattr(option, "help"):
            option.help = as_shown(option.help)
    for name, inner in inner_commands.items():
        _make_readable(inner, f"{path} {name}")


def _as_it_is(text: str | None) -> str | None:
    return text


def _escaped(text: str | None) -> str | None:
    """For rich, without loading it: a bracket in front of these begins a tag."""
    return None if text is None else re.sub(r"\[(?=[a-z#/@])", r"\\[", text)


def _nearest(name: str, known: "Mapping[str, LazyCommand]") -> str:
    from difflib import get_close_matches

    found = get_close_matches(name, list(known), n=1)
    return f" (did you mean {found[0]}?)" if found else ""
