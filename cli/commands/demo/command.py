"""`kquorum demo`: the main job from end to end on this machine, in a minute or two, with nothing left running."""

from pathlib import Path
from typing import Annotated

import typer

from kquorum.cli.command_tree import Command, Panel


def demo(
    config: Annotated[Path, typer.Option(help="The quorum to start, on free ports.")] = Path(
        "examples/quorum.toml"
    ),
    log_dir: Annotated[
        str,
        typer.Option(envvar="LOG_DIR", help="A metadata folder of a real Kafka cluster to audit too."),
    ] = "",
    out: Annotated[
        Path, typer.Option(help="The folder for the nodes' data and the tables; emptied first.")
    ] = Path("demo-out"),
) -> None:
    """Start a quorum, kill its leader and a broker under a real client, read its log and audit it."""
    from kquorum.cli.commands.demo.play import play

    play(config, log_dir, out)


COMMAND = Command(
    run=demo,
    summary="Start a quorum, kill its leader, read its log and audit it.",
    panel=Panel.RUN,
    place=6,
    examples={
        "": ("kquorum demo",),
    },
)
