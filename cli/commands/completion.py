"""`kquorum completion`: the script with which a shell completes command lines of kquorum."""

from enum import StrEnum
from typing import Annotated

import typer

from kquorum.cli.command_tree import COMPLETION_VARIABLE, Command, Panel


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print the script with which a shell completes commands, options and their values.

    bash: `source <(kquorum completion bash)` in ~/.bashrc. zsh: `kquorum completion zsh > ~/.zfunc/_kquorum`, in a
    folder of $fpath, before compinit. fish: `kquorum completion fish > ~/.config/fish/completions/kquorum.fish`.
    """
    from importlib import import_module

    typers = import_module("typer.completion")

    script = typers.get_completion_script(
        prog_name="kquorum", complete_var=COMPLETION_VARIABLE, shell=shell.value
    )
    typer.echo(script)


COMMAND = Command(
    run=completion,
    summary="Print the script for completion in a shell.",
    panel=Panel.RUN,
    place=9,
    examples={
        "": (
            "source <(kquorum completion bash)",
            "kquorum completion zsh > ~/.zfunc/_kquorum",
            "kquorum completion fish > ~/.config/fish/completions/kquorum.fish",
        ),
    },
)
