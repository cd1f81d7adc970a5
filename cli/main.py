"""`kquorum`: the one entry point of everything a user runs."""

import os
import sys
import traceback
from typing import Annotated, Any

import typer

from kquorum.cli.command_tree import COMPLETION_VARIABLE, HELP_OPTIONS, CommandTree
from kquorum.cli.failures import ExitStatus, message_of, status_of

app = typer.Typer(
    cls=CommandTree,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": list(HELP_OPTIONS)},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from kquorum.cli.version import version_text

        typer.echo(version_text())
        raise typer.Exit


@app.callback()
def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show version and commit."),
    ] = False,
) -> None:
    """A KRaft metadata quorum in Python: run it, ask it, read its log."""


def prepare_process() -> None:
    """Settings of the whole process, before any command imports what they are for."""
    # gRPC's fork handlers crash children that Spark's start forks while gRPC is in use; none of ours goes on with it.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


def run(args: list[str]) -> int:
    """The exit status of a command line; messages have been printed."""
    try:
        if COMPLETION_VARIABLE in os.environ:
            from importlib import import_module

            import_module(
                "typer.completion"
            ).completion_init()  # then the command's parser answers the shell, and runs nothing
        command = typer.main.get_command(app)
        status = _as_status(command(args=args, prog_name="kquorum", standalone_mode=False))
        # The command line's parser makes an exit of a KeyboardInterrupt.
        return _interrupted() if status == ExitStatus.INTERRUPTED else status
    except SystemExit as exit_request:
        if isinstance(exit_request.__context__, BrokenPipeError):
            return _seen_enough()  # the command line's parser has its own way of ending then
        return _as_status(exit_request.code)
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:
        return _seen_enough()
    except Exception as error:  # noqa: BLE001 - the boundary: a traceback shown to a user is a defect
        if hasattr(error, "format_message"):
            return _usage(error, as_json="--json" in args)
        return _told(error, is_debugging=_asks_for_debugging(args), as_json="--json" in args)


def _interrupted() -> int:
    """One line for people; programs have the exit status, and no JSON: a watch, say, is ended in no other way."""
    sys.stderr.write("interrupted\n")
    return ExitStatus.INTERRUPTED


def _seen_enough() -> int:
    """The reader of the output closed the pipe (`kquorum log dump ... | head`), which is a success."""
    sys.stdout = None
    return ExitStatus.OK


def _usage(error: Any, *, as_json: bool) -> int:
    """What the command line's parser found wrong; a command without arguments has shown its help already."""
    if type(error).__name__ != "NoArgsIsHelpError":
        context = getattr(error, "ctx", None)
        path = "kquorum" if context is None else context.command_path
        _complain(f"{error.format_message()} (see `{path} --help`)", error.exit_code, as_json=as_json)
    return int(error.exit_code)


def _told(error: Exception, *, is_debugging: bool, as_json: bool) -> int:
    if is_debugging:
        from kquorum.cli.output import remark

        remark("".join(traceback.format_exception(error)).rstrip("\n"))
    _complain(
        message_of(error), status_of(error), as_json=as_json and not getattr(error, "is_in_json", False)
    )
    return status_of(error)


def _complain(message: str, status: int, *, as_json: bool) -> None:
    """A line on standard error for people; with `--json` also one JSON object on standard output."""
    from kquorum.cli.output import complain, json_text

    if as_json:
        sys.stdout.write(json_text({"error": message, "exit_status": int(status)}) + "\n")
    complain(message)


def _asks_for_debugging(args: list[str]) -> bool:
    """`--debug` comes before the command; after it, it would be the command's own."""
    for arg in args:
        if not arg.startswith("-"):
            return False
        if arg == "--debug":
            return True
    return False


def _as_status(code: object) -> int:
    return code if isinstance(code, int) else ExitStatus.OK if code is None else ExitStatus.FAILED
