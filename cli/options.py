"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer


def _checked_reason(text: str | None) -> str | None:
    """As it will stand in the log. What is too long is refused here, where it can be put better."""
    from kquorum.wire.operator_reason import MAX_REASON_CHARACTERS, sanitised_reason

    if text is None:
        return None
    if len(text) > MAX_REASON_CHARACTERS:
        raise typer.BadParameter(f"{len(text)} characters are more than {MAX_REASON_CHARACTERS}")
    reason = sanitised_reason(text)
    if not reason:
        raise typer.BadParameter("there is nothing in it")
    return reason


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
    typer.Option("--config", "-c", envvar="KQUORUM_CONFIG", help="A config with the cluster's addresses."),
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="The base of relative log.dirs; the current folder by default."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
TimeoutMs = Annotated[int, typer.Option("--timeout-ms", min=1, help="Time limit of the whole command.")]
Reason = Annotated[
    str | None,
    typer.Option(
        "--reason",
        metavar="WORDS",
        callback=_checked_reason,
        help="The reason, for the audit note that precedes the change in the log.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check and show the change, and make none.")]
BootstrapServer = Annotated[
    str | None, typer.Option("--bootstrap-server", "-b", help="Brokers to ask: host:port, comma-separated.")
]
GrpcListeners = Annotated[
    str | None, typer.Option("--grpc", help="gRPC listeners to ask: host:port, comma-separated.")
]
BootstrapController = Annotated[
    str | None, typer.Option("--bootstrap-controller", help="Controllers to ask: host:port, comma-separated.")
]
