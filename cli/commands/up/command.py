"""`kquorum up`: the whole config on this machine, each node a process of its own."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import ConfigPath

MATERIALISED = "quorum.toml"
FREE_PORTS_FOLDER = Path("kquorum-data/free-ports")


def up(
    config: ConfigPath = Path("quorum.toml"),
    free_ports: Annotated[
        bool,
        typer.Option(
            "--free-ports",
            help="Run a copy of the config on free loopback ports; the copy and all data are in --data-dir, or else in "
            f"{FREE_PORTS_FOLDER}.",
        ),
    ] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", help="The base of relative log.dirs; the current folder by default."),
    ] = None,
    ephemeral: Annotated[
        bool,
        typer.Option(
            "--ephemeral", help="Run a new cluster on free ports, without a config; its data go with it."
        ),
    ] = False,
    brokers: Annotated[
        int, typer.Option("--brokers", min=1, max=50, help="How many brokers --ephemeral has.")
    ] = 1,
    controllers: Annotated[
        int, typer.Option("--controllers", min=1, max=9, help="How many controllers --ephemeral has.")
    ] = 1,
) -> None:
    """Run all nodes of the config on this machine; Ctrl-C or SIGTERM stops brokers, then controllers.

    Nothing is done while a port is in use. Folders that are not formatted yet are formatted first; a dynamic quorum
    that is new begins with all controllers of the config as its voters. Where there are fewer processors than nodes,
    brokers start once a majority of the controllers is ready. What a node that starts waits for is shown. A node that
    ends is shown with its last lines; the others go on. Exit status 1 when one had ended before it was asked to.

    With --ephemeral, a cluster for trying and testing runs: it is ready within about a second, standard output has
    its bootstrap servers, and nothing of it is left when it stops.
    """
    from kquorum.cli.clients.security import remember_cluster
    from kquorum.cli.commands.up.run import check_addresses, format_missing, run_cluster
    from kquorum.cli.output import complain
    from kquorum.node.config.load import load_config
    from kquorum.node.config.materialise import with_free_ports
    from kquorum.node.security import check_security
    from kquorum.storage.folder_permissions import keep_files_private

    keep_files_private()
    if ephemeral:
        from kquorum.cli.commands.up.ephemeral import run_ephemeral

        if free_ports or data_dir is not None:
            raise typer.BadParameter(
                "--free-ports and --data-dir do not go with it", param_hint="--ephemeral"
            )
        run_ephemeral(brokers, controllers)
        return
    if free_ports and data_dir is None:
        data_dir = FREE_PORTS_FOLDER
    cluster = load_config(config, data_dir=data_dir)
    if free_ports:
        assert data_dir is not None
        if (data_dir / MATERIALISED).resolve() == config.resolve():
            raise typer.BadParameter(
                "name another folder, for a copy of the config that is there", param_hint="--data-dir"
            )
        data_dir.mkdir(parents=True, exist_ok=True)
        cluster = load_config(with_free_ports(config, data_dir / MATERIALISED, data_dir=data_dir))
        complain(
            f"export KQUORUM_CONFIG={shlex.quote(str(cluster.path.absolute()))} lets the other commands find it",
            style="cyan",
            label="up",
        )
    for warning in cluster.warnings:
        complain(warning, style="yellow", label="warning")
    for node in cluster.nodes:
        check_security(cluster, node)
    remember_cluster(cluster)
    check_addresses(cluster, offers_free_ports=not free_ports)
    for outcome in format_missing(cluster):
        complain(f"formatted {outcome.folder}", style="cyan", label="up")
    run_cluster(cluster, data_dir=data_dir)


COMMAND = Command(
    run=up,
    summary="Run all nodes of the config on this machine.",
    panel=Panel.RUN,
    place=5,
    examples={
        "": (
            "kquorum up -c examples/quorum.toml",
            "kquorum up -c examples/quorum.toml --free-ports",
            "kquorum up --ephemeral --brokers 3",
        ),
    },
)
