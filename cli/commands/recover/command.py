"""`kquorum recover`: go on without a majority of the voters, which is gone for ever."""

from pathlib import Path
from typing import Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, MaybeConfigPath, Reason

recover_app = typer.Typer(
    help="Go on without a majority of the voters, which is gone for ever.",
    no_args_is_help=True,
    add_completion=False,
)
Folders = Annotated[
    list[Path],
    typer.Argument(
        metavar="FOLDER...",
        help="The metadata folders that are left: those of controllers, and of brokers to compare with.",
    ),
]


@recover_app.callback()
def _recover() -> None:
    """Go on without a majority of the voters, which is gone for ever: the last resort."""


@recover_app.command()
def plan(folders: Folders, as_json: AsJson = False) -> None:
    """Say which folder is the best, and what may be lost by going on from it. Changes nothing.

    The best is that of the voter whose log ends with the newest epoch, and then with the greatest offset. Stop all
    nodes first, and copy their folders.
    """
    from kquorum.cli.commands.recover.reading import read_survivor
    from kquorum.cli.commands.recover.showing import show_plan
    from kquorum.cli.commands.recover.survey import make_plan

    show_plan(make_plan([read_survivor(folder) for folder in folders]), as_json=as_json)


@recover_app.command()
def run(
    folders: Folders,
    accepts_loss: Annotated[
        bool,
        typer.Option(
            "--i-accept-the-loss",
            help="What the lost voters acknowledged, and this folder lacks, is given up; they will never start again.",
        ),
    ] = False,
    listener: Annotated[
        str | None,
        typer.Option(
            "--listener",
            metavar="NAME://HOST:PORT",
            help="Where the node's controller listener is from now on; the default is that of the config.",
        ),
    ] = None,
    config: MaybeConfigPath = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Make the node of the best folder the only voter of its quorum, in an epoch far above all others.

    Cluster id, topics and their ids stay. The quorum is dynamic afterwards (from metadata.version 3.9 on): start the
    node, and add the other controllers, each with an empty folder. The folders of the other voters are fenced: a node
    refuses to start on them.
    """
    from kquorum.cli.commands.recover.reading import read_survivor
    from kquorum.cli.commands.recover.running import check_can_recover, recover
    from kquorum.cli.commands.recover.showing import listener_of, show_plan, show_recovered
    from kquorum.cli.commands.recover.survey import make_plan
    from kquorum.cli.failures import CliError, ExitStatus

    found = make_plan([read_survivor(folder) for folder in folders])
    check_can_recover(found)
    endpoints = listener_of(found.best, listener, config)
    if not accepts_loss:
        show_plan(found, as_json=as_json)
        raise CliError(
            "nothing was changed: repeat the command with --i-accept-the-loss, if the lost voters will never start "
            "again",
            status=ExitStatus.USAGE,
        )
    show_recovered(found, recover(found, endpoints, reason), as_json=as_json)


COMMAND = Command(
    run=recover_app,
    summary="Go on from the best folder when a majority of the voters is gone for ever.",
    panel=Panel.RUN,
    place=11,
    examples={
        "plan": ("kquorum recover plan data/node-1 data/node-11",),
        "run": ("kquorum recover run data/node-1 -c quorum.toml --i-accept-the-loss",),
    },
)
