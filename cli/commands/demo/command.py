"""`kquorum demo`: the main job from end to end on this machine, in a minute or two, with nothing left running."""

from pathlib import Path
from typing import Annotated

import typer

from kquorum.cli.command_tree import Command, Panel


def demo(
    config: Annotated[Path, typer.Option(help="The quorum that is started, on free ports.")] = Path(
        "examples/quorum.toml"
    ),
    log_dir: Annotated[
        str,
        typer.Option(envvar="LOG_DIR", help="A metadata folder of a real Kafka cluster, audited as well."),
    ] = "",
    out: Annotated[
        Path, typer.Option(help="Where the nodes' folders and the tables go; emptied first.")
    ] = Path("demo-out"),
) -> None:
    """Start a quorum, kill its leader and a broker under a real client, read its log and audit it."""
    from kquorum.cli.commands.demo.play import play

    play(config, log_dir, out)


COMMAND = Command(
    run=demo,
    summary="A quorum runs, is killed, is read and is audited.",
    panel=Panel.RUN,
    place=6,
    examples={
        "": ("kquorum demo",),
    },
)
