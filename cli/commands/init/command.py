"""`kquorum init`: write a commented config of a new cluster."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson


class Controllers(StrEnum):
    ONE = "1"
    THREE = "3"
    FIVE = "5"


def init(
    out: Annotated[Path, typer.Argument(metavar="[FILE]", help="The new config.", show_default=True)] = Path(
        "quorum.toml"
    ),
    controllers: Annotated[
        Controllers, typer.Option("--controllers", help="How many: 3 bear the loss of one, 5 of two.")
    ] = Controllers.THREE,
    brokers: Annotated[
        int | None,
        typer.Option("--brokers", min=0, max=20, help="How many; by default 1 with 1 controller, else 3."),
    ] = None,
    dynamic: Annotated[
        bool, typer.Option("--dynamic", help="Voters that can be changed while the quorum runs (KIP-853).")
    ] = False,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="NAME",
            help="A machine; repeated, the nodes take turns. Default: this one alone.",
        ),
    ] = None,
    folder: Annotated[
        str, typer.Option("--folder", metavar="DIRECTORY", help="Where the nodes keep their folders.")
    ] = "kquorum-data",
    as_json: AsJson = False,
) -> None:
    """Write a config with comments for a new cluster, and show the next commands. An existing file is not overwritten.

    The listeners are without TLS and passwords: the docs say how to secure them.
    """
    from kquorum.cli.commands.init.writing import NewCluster, config_text, next_commands
    from kquorum.cli.failures import CliError
    from kquorum.cli.output import print_json, say
    from kquorum.node.config.load import load_config
    from kquorum.node.formatting import new_uuid
    from kquorum.wire.uuids import uuid_to_text

    hosts = host or ["127.0.0.1"]
    if strange := [
        each for each in hosts if not each or set(each) & set("\"'\\/:@, {}") or not each.isprintable()
    ]:
        raise typer.BadParameter(
            f"{strange[0]!r} is no host: give a name or an IPv4 address", param_hint="--host"
        )
    if not folder:
        raise typer.BadParameter("it is empty", param_hint="--folder")
    if not folder.isprintable() or set(folder) & set('"\\,'):
        raise typer.BadParameter("it holds a quote, a backslash or a comma", param_hint="--folder")
    count = int(controllers.value)
    new = NewCluster(
        cluster_id=uuid_to_text(new_uuid()),
        controllers=count,
        brokers=(1 if count == 1 else 3) if brokers is None else brokers,
        is_dynamic=dynamic,
        hosts=hosts,
        folder=folder.rstrip("/") or "/",
        file_name=str(out),
    )
    if not out.absolute().parent.is_dir():
        raise CliError(f"there is no folder {out.absolute().parent} for {out.name}: create it first")
    try:
        with out.open("x") as opened:
            opened.write(config_text(new))
    except FileExistsError:
        raise CliError(f"{out} exists and is not overwritten: name another file, or remove it") from None
    cluster = load_config(out)
    if as_json:
        nodes = [node.node_id for node in cluster.nodes]
        print_json(
            {"config": str(out), "cluster_id": new.cluster_id, "nodes": nodes, "next": next_commands(new)}
        )
        return
    say(
        f"{out} has a config of {len(cluster.controllers)} controllers and {len(cluster.brokers)} brokers; next:"
    )
    for line in next_commands(new):
        say(f"  {line}")
    say(f"  kquorum quorum status -c {out}")


COMMAND = Command(
    run=init,
    summary="Write a commented config of a new cluster.",
    panel=Panel.RUN,
    place=0,
    examples={
        "": (
            "kquorum init",
            "kquorum init prod.toml --dynamic --host kq1 --host kq2 --host kq3",
            "kquorum init --controllers 1 --brokers 0 --folder /var/lib/kquorum",
        ),
    },
)
