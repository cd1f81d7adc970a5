"""`kquorum watch`: what changes in the cluster, as it is committed."""

from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import MaybeConfigPath

if TYPE_CHECKING:
    from collections.abc import Callable

    from kquorum.cli.commands.watch.stream import ChangeStream
    from kquorum.wire.proto import inspect_pb2 as pb


def watch(
    config: MaybeConfigPath = None,
    node: Annotated[
        int | None, typer.Option("--node", "-n", help="Ask only this node of the config.")
    ] = None,
    grpc: Annotated[
        str | None,
        typer.Option("--grpc", help="gRPC listeners to watch through: host:port, comma-separated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    from_offset: Annotated[
        int | None, typer.Option(min=0, help="The first offset to show; by default only changes from now on.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only this kind, such as partition_changed; may be repeated."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="End after this many changes.")] = None,
    timeout_ms: Annotated[
        int, typer.Option("--timeout-ms", min=1, help="Time limit of the first connection.")
    ] = 5000,
) -> None:
    """The quorum's leaders and voters, brokers, topics and partitions as they change, until Ctrl-C.

    When the connection is lost, the watch goes on through another node of the config from the offset reached.
    """
    import asyncio

    from kquorum.cli.clients.addresses import grpc_addresses
    from kquorum.cli.commands.watch.stream import ChangeStream
    from kquorum.cli.output import complain

    stream = ChangeStream(
        grpc_addresses(config, grpc, node_id=node, needed_by="watching"),
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

    from kquorum.cli.commands.watch.lines import json_line, text_line
    from kquorum.cli.output import console

    out = console()

    def show(change: "pb.Change") -> None:
        if as_json:
            sys.stdout.write(json_line(change) + "\n")
            sys.stdout.flush()  # the reader of a pipe gets each change when it happens
        else:
            out.print(text_line(change), soft_wrap=True)

    return show


def _kinds(names: list[str]) -> tuple[str, ...]:
    """The protocol's names. Raises BadParameter, naming the nearest kind there is."""
    from kquorum.wire.near_names import near_names
    from kquorum.wire.proto import inspect_pb2 as pb

    known = [name.lower() for name, number in pb.ChangeKind.items() if number > pb.INITIAL_STATE]
    for name in names:
        if name.lower() not in known:
            near = near_names(name.lower(), known, 1, cutoff=0.3)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
            raise typer.BadParameter(f"--kind: there is no kind '{name}'{hint}")
    return tuple(name.upper() for name in names)


COMMAND = Command(
    run=watch,
    summary="Show changes of the metadata, live (gRPC).",
    panel=Panel.ASK,
    place=6,
    examples={
        "": (
            "kquorum watch -c quorum.toml",
            "kquorum watch --grpc localhost:9291 --kind partition_changed --json",
        ),
    },
)
