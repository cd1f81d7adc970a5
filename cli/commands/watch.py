"""`kquorum watch`: what changes in the cluster, as it is committed."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.commands.options import MaybeConfigPath

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.config.addresses import HostPort
    from cli.watch_stream import ChangeStream
    from wire.proto import inspect_pb2 as pb


def watch(
    config: MaybeConfigPath = None,
    node: Annotated[
        int | None, typer.Option("--node", "-n", help="Watch through this node of the config only.")
    ] = None,
    grpc_addresses: Annotated[
        str | None,
        typer.Option("--grpc", help="gRPC listeners to watch through: host:port, comma-separated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    from_offset: Annotated[
        int | None, typer.Option(min=0, help="First offset to tell about; what comes after now, without it.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only this kind, such as partition_changed; may be repeated."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="End after so many changes.")] = None,
    timeout_ms: Annotated[
        int, typer.Option("--timeout-ms", min=1, help="How long to try to connect at first.")
    ] = 5000,
) -> None:
    """Brokers, topics and partitions as they change, until Ctrl-C.

    When the connection is lost, the watch goes on through another node of the config from the offset reached.
    """
    import asyncio

    from cli.output import complain
    from cli.watch_stream import ChangeStream

    stream = ChangeStream(
        _addresses(config, node, grpc_addresses),
        from_offset=from_offset,
        kinds=_kinds(kind or []),
        timeout_ms=timeout_ms,
        tell=lambda text: complain(text, style="yellow", label="watch"),
    )
    asyncio.run(_print(stream, _printer(as_json), limit))


async def _print(stream: "ChangeStream", show: "Callable[[pb.Change], None]", limit: int | None) -> None:
    """The marker at the start is shown, but does not count."""
    import contextlib

    async with contextlib.aclosing(stream.changes()) as changes:
        shown = -1
        async for change in changes:
            show(change)
            shown += 1
            if limit is not None and shown >= limit:
                return


def _printer(as_json: bool) -> "Callable[[pb.Change], None]":
    import sys

    from cli.output import console
    from cli.watch_lines import json_line, text_line

    out = console()

    def show(change: "pb.Change") -> None:
        if as_json:
            sys.stdout.write(json_line(change) + "\n")
            sys.stdout.flush()  # whoever reads the pipe wants each change when it happens
        else:
            out.print(text_line(change), soft_wrap=True)

    return show


def _addresses(config: "Path | None", node_id: int | None, listed: str | None) -> "tuple[HostPort, ...]":
    """Where to ask: the option, or the gRPC listeners of the config (of one node, if it is named)."""
    from cli.cluster_client import DEFAULT_CONFIG
    from cli.config.load import load_config
    from cli.errors import CliError
    from cli.exit_status import ExitStatus

    if listed is not None:
        if node_id is not None:
            raise typer.BadParameter("--node chooses from a config; it does not go with --grpc")
        return _parse(listed)
    if config is None and not DEFAULT_CONFIG.exists():
        raise CliError(
            f"where is the cluster? Give --config FILE or --grpc host:port (there is no {DEFAULT_CONFIG} here)",
            status=ExitStatus.USAGE,
        )
    cluster = load_config(config or DEFAULT_CONFIG)
    nodes = cluster.nodes if node_id is None else (cluster.node(node_id),)
    found = tuple(
        _reachable(*node.kquorum_grpc_listener) for node in nodes if node.kquorum_grpc_listener is not None
    )
    if not found:
        who = "no node has a" if node_id is None else f"node {node_id} has no"
        raise CliError(
            f"{cluster.path}: {who} `kquorum.grpc.listener`, which watching needs", status=ExitStatus.USAGE
        )
    return found


def _parse(listed: str) -> "tuple[HostPort, ...]":
    from cli.config.addresses import parse_host_port

    try:
        found = tuple(_reachable(*parse_host_port(part)) for part in listed.split(",") if part.strip())
    except ValueError as error:
        raise typer.BadParameter(f"--grpc: {error}") from error
    if not found:
        raise typer.BadParameter("--grpc names no host:port")
    return found


def _reachable(host: str, port: int) -> "HostPort":
    """A listener on every interface is reached on this machine by loopback."""
    from cli.config.addresses import WILDCARD_HOSTS, HostPort

    return HostPort("127.0.0.1" if host in WILDCARD_HOSTS else host, port)


def _kinds(names: list[str]) -> tuple[str, ...]:
    """The protocol's names. Raises BadParameter, naming the nearest kind there is."""
    import difflib

    from wire.proto import inspect_pb2 as pb

    known = [name.lower() for name, number in pb.ChangeKind.items() if number > pb.INITIAL_STATE]
    for name in names:
        if name.lower() not in known:
            near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.3)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
            raise typer.BadParameter(f"--kind: there is no kind '{name}'{hint}")
    return tuple(name.upper() for name in names)
