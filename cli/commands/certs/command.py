"""`kquorum certs`: certificates to try TLS with."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import MaybeConfigPath

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kquorum.node.config.model import NodeConfig

certs_app = typer.Typer(help="Make certificates to try TLS with.", no_args_is_help=True, add_completion=False)


@certs_app.callback()
def _certs() -> None:
    """Make certificates to try TLS with."""


@certs_app.command("make")
def make(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder for the PEM files.")],
    config: MaybeConfigPath = None,
    client: Annotated[
        list[str] | None,
        typer.Option("--client", metavar="NAME", help="Make a certificate for this client; may be repeated."),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host", metavar="HOST", help="Another host name or address of every node; may be repeated."
        ),
    ] = None,
    days: Annotated[
        int, typer.Option("--days", min=1, max=3650, help="Days for which the certificates are valid.")
    ] = 30,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
) -> None:
    """Make an authority (ca.pem), a certificate with its key for each node of the config (node-ID.pem, with the hosts
    of its listeners) and one for each client (client.pem, unless others are named).

    Use them for tests only: the key of the authority (ca.key) is in the same folder. In a config, set
    ssl.keystore.location to node-{node.id}.pem and ssl.truststore.location to ca.pem.
    """
    import os
    import time
    from datetime import UTC, datetime

    from kquorum.cli.clients.addresses import DEFAULT_CONFIG
    from kquorum.cli.commands.certs.certificates import (
        AUTHORITY_FILE,
        Authority,
        BadName,
        check_client_names,
        files_of,
        make_certificates,
    )
    from kquorum.cli.failures import CliError, ExitStatus
    from kquorum.cli.output import console
    from kquorum.node.config.load import load_config

    nodes = load_config(config or DEFAULT_CONFIG).nodes
    node_ids = [node.node_id for node in nodes]
    clients = list(dict.fromkeys(client or ["client"]))
    try:
        check_client_names(clients, node_ids)
    except BadName as error:
        raise CliError(f"--client: {error}", status=ExitStatus.USAGE) from None
    present = [path for path in files_of(folder, node_ids, clients) if os.path.lexists(path)]
    if present and not overwrite:
        raise CliError(
            f"{present[0]} is there already, and certificates of two authorities do not go together: name another "
            "folder, or replace all of them with --overwrite",
            status=ExitStatus.USAGE,
        )
    authority = Authority("kquorum demo authority", datetime.fromtimestamp(time.time(), UTC), days)
    issued = make_certificates(
        folder, [(node.node_id, _hosts(node, host or ())) for node in nodes], clients, authority
    )
    out = console()
    out.print(f"{folder / AUTHORITY_FILE}: the authority, good for {days} days", soft_wrap=True)
    for each in issued:
        where = f", at {', '.join(each.hosts)}" if each.hosts else ""
        out.print(f"{each.path}: User:{each.subject}{where}", soft_wrap=True)


def _hosts(node: "NodeConfig", more: "Sequence[str]") -> tuple[str, ...]:
    """Where a node is reached: what its listeners say, and this machine for those on every interface."""
    from kquorum.node.config.exposure import is_loopback
    from kquorum.node.endpoints import reachable_host

    listeners = (*node.advertised_listeners, *node.listeners)
    hosts = [reachable_host(listener.host) for listener in listeners]
    if node.kquorum_grpc_listener is not None:
        hosts.append(reachable_host(node.kquorum_grpc_listener.host))
    loopback = ["localhost", "127.0.0.1"] if any(map(is_loopback, hosts)) else []
    return tuple(dict.fromkeys([*hosts, *loopback, *more]))


COMMAND = Command(
    run=certs_app,
    summary="Make certificates to try TLS with.",
    panel=Panel.RUN,
    place=3,
    examples={
        "make": (
            "kquorum certs make certs -c examples/secured.toml --client admin",
            "kquorum certs make certs -c quorum.toml --host broker.example.org",
        ),
    },
)
