"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

ConfigPath = Annotated[
    Path,
    typer.Option(
        "--config",
        "-c",
        envvar="KQUORUM_CONFIG",
        help="The quorum config (.toml), or one node's .properties.",
    ),
]
MaybeConfigPath = Annotated[
    Path | None,
    typer.Option("--config", "-c", envvar="KQUORUM_CONFIG", help="A config that tells where the cluster is."),
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Where relative log.dirs are; the current folder without it."),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]
TimeoutMs = Annotated[int, typer.Option("--timeout-ms", min=1, help="How long it may take, all in all.")]
BootstrapServer = Annotated[
    str | None, typer.Option("--bootstrap-server", "-b", help="Brokers to ask: host:port, comma-separated.")
]
GrpcListeners = Annotated[
    str | None, typer.Option("--grpc", help="gRPC listeners to ask: host:port, comma-separated.")
]
BootstrapController = Annotated[
    str | None, typer.Option("--bootstrap-controller", help="Controllers to ask: host:port, comma-separated.")
]
