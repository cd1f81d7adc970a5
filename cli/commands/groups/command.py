"""`kquorum groups`: list, describe, reset and delete consumer groups through the brokers."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, BootstrapServer, MaybeConfigPath, TimeoutMs

if TYPE_CHECKING:
    from kquorum.cli.commands.groups.group_client import GroupClient, GroupOffset, GroupView

Group = Annotated[str, typer.Argument(help="The group's id.")]
T = TypeVar("T")
groups_app = typer.Typer(
    help="List, describe, reset and delete consumer groups.", no_args_is_help=True, add_completion=False
)


@groups_app.command("list")
def list_groups(
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """List the groups that all brokers coordinate, one line each."""
    from kquorum.cli.output import print_json, print_table
    from kquorum.wire.wording import counted

    found = _ask(config, bootstrap_server, timeout_ms, lambda client: client.groups())
    rows = [
        {
            "group": each.group_id,
            "state": each.group_state,
            "type": each.group_type,
            "protocol_type": each.protocol_type,
        }
        for each in found
    ]
    if as_json:
        print_json(rows)
        return
    print_table(
        counted(len(rows), "group"),
        ("group", "state", "type", "protocol type"),
        [tuple(row.values()) for row in rows],
    )


@groups_app.command()
def describe(
    group: Group,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Show the group again and again, until Ctrl-C; with --json a line each."
        ),
    ] = False,
    interval_ms: Annotated[
        int, typer.Option("--interval-ms", min=100, help="With --watch: the time from one look to the next.")
    ] = 2_000,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="With --watch: end after this many looks.")
    ] = None,
) -> None:
    """Show the members of a group, and for each partition the committed offset, the end, and the lag.

    Of a consumer group also its epochs, and what each member is to have.
    """
    from kquorum.cli.output import json_text, print_json, say

    if not watch:
        found = _ask(config, bootstrap_server, timeout_ms, lambda client: client.describe(group))
        if as_json:
            print_json(_view_as_json(found))
        else:
            _show(found)
        return

    async def look(client: "GroupClient") -> None:
        import asyncio

        looks = 0
        while True:
            found = await client.describe(group)
            if as_json:
                say(json_text(_view_as_json(found), separators=(",", ":")))
            else:
                _show(found)
            looks += 1
            if looks == limit:
                return
            await asyncio.sleep(interval_ms / 1000)

    _ask(config, bootstrap_server, timeout_ms, look)


@groups_app.command("reset-offsets")
def reset_offsets(
    group: Group,
    topic: Annotated[str, typer.Option("--topic", "-t", help="The topic.")],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="beginning, end, an offset, -N for the last N of each partition, or @TIME: the first at or after "
            "this time, as 2026-01-31T12:00:00Z or in ms since 1970.",
        ),
    ],
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", min=0, help="Only this one; may be repeated.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the new offsets, and change nothing.")
    ] = False,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Set the committed offsets of a group that has no members."""
    from kquorum.cli.commands.consume import Start
    from kquorum.cli.failures import CliError
    from kquorum.cli.output import print_json, print_table

    start = Start(to, "--to")

    async def reset(client: "GroupClient") -> dict[tuple[str, int], int]:
        place = await client.topic(topic)
        chosen = sorted(partition or place.leaders)
        absent = [each for each in chosen if each not in place.leaders]
        if absent:
            raise CliError(f"topic {topic} has no partition {absent[0]}")
        offsets = {(topic, each): await start.offset_in(client, place, each) for each in chosen}
        if not dry_run:
            await client.commit(group, offsets)
        return offsets

    offsets = _ask(config, bootstrap_server, timeout_ms, reset)
    rows = [
        {"topic": name, "partition": index, "offset": offset} for (name, index), offset in offsets.items()
    ]
    if as_json:
        print_json({"group": group, "changed": not dry_run, "offsets": rows})
        return
    done = "would be set" if dry_run else "were set"
    print_table(
        f"offsets of group {group} {done}",
        ("topic", "#partition", "#offset"),
        [tuple(row.values()) for row in rows],
    )


@groups_app.command()
def delete(
    group: Group,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Delete a group that has no members, with its offsets."""
    from kquorum.cli.output import print_json, say

    _ask(config, bootstrap_server, timeout_ms, lambda client: client.delete(group))
    if as_json:
        print_json({"group": group, "deleted": True})
    else:
        say(f"group {group} was deleted")


def _ask(
    config: Path | None,
    bootstrap_server: str | None,
    timeout_ms: int,
    ask: "Callable[[GroupClient], Awaitable[T]]",
) -> T:
    import asyncio

    from kquorum.cli.clients.addresses import broker_addresses
    from kquorum.cli.commands.groups.group_client import GroupClient

    async def work() -> T:
        async with GroupClient(broker_addresses(config, bootstrap_server), timeout_ms) as client:
            return await ask(client)

    return asyncio.run(work())


def _view_as_json(found: "GroupView") -> dict[str, object]:
    return asdict(found) | {"offsets": [_as_json(each) for each in found.offsets]}


def _as_json(offset: "GroupOffset") -> dict[str, object]:
    return asdict(offset) | {"lag": offset.lag}


def _show(found: "GroupView") -> None:
    from kquorum.cli.output import print_table, say
    from kquorum.wire.wording import counted

    protocol = f", protocol {found.protocol}" if found.protocol else ""
    epochs = ""
    if found.epoch is not None:
        protocol = f", assignor {found.protocol}"
        epochs = f", epoch {found.epoch}, assignment epoch {found.assignment_epoch}"
    say(
        f"{found.type} group {found.group}: {found.state}{protocol}{epochs}, coordinated by broker "
        f"{found.coordinator}"
    )
    if found.members and found.epoch is None:
        print_table(
            counted(len(found.members), "member"),
            ("member", "instance", "client", "host", "#partitions"),
            [
                (each.member_id, each.instance_id, each.client_id, each.host, len(each.partitions))
                for each in found.members
            ],
        )
    elif found.members:
        print_table(
            counted(len(found.members), "member"),
            (
                "member",
                "instance",
                "client",
                "host",
                "speaks",
                "#epoch",
                "#has",
                "#is to have",
                "subscription",
            ),
            [
                (
                    each.member_id,
                    each.instance_id,
                    each.client_id,
                    each.host,
                    "classic" if each.speaks_classic else "consumer",
                    each.epoch,
                    len(each.partitions),
                    len(each.target or ()),
                    each.subscription,
                )
                for each in found.members
            ],
        )
    print_table(
        counted(len(found.offsets), "partition"),
        ("topic", "#partition", "#committed", "#end", "#lag", "member"),
        [
            (each.topic, each.partition, each.committed, each.end, each.lag, each.member_id)
            for each in found.offsets
        ],
    )


COMMAND = Command(
    run=groups_app,
    summary="List, describe, reset and delete consumer groups.",
    panel=Panel.ASK,
    place=10,
    examples={
        "list": ("kquorum groups list -b localhost:9092",),
        "describe": (
            "kquorum groups describe readers -b localhost:9092",
            "kquorum groups describe readers -c quorum.toml --watch --interval-ms 1000",
        ),
        "reset-offsets": ("kquorum groups reset-offsets readers -t orders --to end -c quorum.toml",),
        "delete": ("kquorum groups delete readers -b localhost:9092",),
    },
)
