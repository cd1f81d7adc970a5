"""`kquorum up`: the whole config on this machine, each node a process of its own."""

from pathlib import Path
from typing import Annotated

import typer

from cli.commands.options import ConfigPath

MATERIALISED = "quorum.toml"


def up(
    config: ConfigPath = Path("quorum.toml"),
    free_ports: Annotated[
        bool,
        typer.Option(
            "--free-ports", help="Run a copy of the config, kept in --data-dir, on free loopback ports."
        ),
    ] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", help="Where relative log.dirs are; the current folder without it."),
    ] = None,
) -> None:
    """Run all nodes of the config on this machine; Ctrl-C or SIGTERM stops brokers, then controllers.

    Folders that are not formatted yet are formatted first. A node that ends is shown with its last lines; the others
    go on. Exit status 1 when one had ended before it was asked to.
    """
    from cli.config.load import load_config
    from cli.config.materialise import with_free_ports
    from cli.output import complain
    from cli.up_run import format_missing, run_cluster

    cluster = load_config(config, data_dir=data_dir)
    if free_ports:
        if data_dir is None or (data_dir / MATERIALISED).resolve() == config.resolve():
            raise typer.BadParameter(
                "needs --data-dir DIR, a folder for the copy of the config", param_hint="--free-ports"
            )
        cluster = load_config(with_free_ports(config, data_dir / MATERIALISED, data_dir=data_dir))
        complain(
            f"export KQUORUM_CONFIG={cluster.path} lets the other commands find it", style="cyan", label="up"
        )
    for warning in cluster.warnings:
        complain(warning, style="yellow", label="warning")
    for outcome in format_missing(cluster):
        complain(f"formatted {outcome.folder}", style="cyan", label="up")
    run_cluster(cluster, data_dir=data_dir)
