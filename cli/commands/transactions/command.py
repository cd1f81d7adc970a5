"""`kquorum transactions`: list, describe and abort transactions through the brokers."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, BootstrapServer, MaybeConfigPath, TimeoutMs

if TYPE_CHECKING:
    from kquorum.cli.commands.transactions.transaction_client import TransactionClient, TransactionView

TransactionalId = Annotated[str, typer.Argument(help="The transactional id.")]
T = TypeVar("T")
transactions_app = typer.Typer(
    help="List, describe and abort transactions.", no_args_is_help=True, add_completion=False
)


@transactions_app.command("list")
def list_transactions(
    state: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only in this state, such as Ongoing; may be repeated."),
    ] = None,
    producer_id: Annotated[
        list[int] | None, typer.Option("--producer-id", help="Only of this producer; may be repeated.")
    ] = None,
    longer_than_ms: Annotated[
        int | None, typer.Option("--longer-than-ms", min=0, help="Only those that have run longer.")
    ] = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """List the transactional ids that all brokers coordinate, one line each."""
    from kquorum.cli.output import print_json, print_table
    from kquorum.wire.wording import counted

    found = _ask(
        config,
        bootstrap_server,
        timeout_ms,
        lambda client: client.transactions(state or (), producer_id or (), longer_than_ms),
    )
    rows = [asdict(each) for each in found]
    if as_json:
        print_json(rows)
        return
    print_table(
        counted(len(rows), "transactional id"),
        ("transactional id", "#coordinator", "#producer id", "state"),
        [tuple(row.values()) for row in rows],
    )


@transactions_app.command()
def describe(
    transactional_id: TransactionalId,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Show the producer and the state of a transactional id, and the partitions of its transaction."""
    from kquorum.cli.output import print_json

    found = _ask(config, bootstrap_server, timeout_ms, lambda client: client.describe(transactional_id))
    if as_json:
        partitions = [{"topic": topic, "partition": index} for topic, index in found.partitions]
        print_json(asdict(found) | {"partitions": partitions})
        return
    _show(found)


@transactions_app.command()
def abort(
    transactional_id: Annotated[
        str | None, typer.Argument(help="The transactional id; or name a partition and an offset.")
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option("--partition", "-p", metavar="TOPIC-N", help="A partition with a hanging transaction."),
    ] = None,
    start_offset: Annotated[
        int | None, typer.Option("--start-offset", min=0, help="Where the hanging transaction begins.")
    ] = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Abort the open transaction of an id, and fence its producer; or one that hangs in a partition, which no
    coordinator ends."""
    from kquorum.cli.failures import CliError, ExitStatus
    from kquorum.cli.output import print_json, say

    if transactional_id is not None and partition is None and start_offset is None:
        found = _ask(config, bootstrap_server, timeout_ms, lambda client: _abort_id(client, transactional_id))
        if as_json:
            print_json({"transactional_id": transactional_id, "producer_id": found.producer_id})
        else:
            say(f"the transaction of {transactional_id} was aborted, and its producer was fenced")
        return
    if transactional_id is not None or partition is None or start_offset is None:
        raise CliError(
            "name a transactional id, or a partition with --partition and --start-offset",
            status=ExitStatus.USAGE,
        )
    topic, _, index = partition.rpartition("-")
    if not topic or not index.isdecimal():
        raise CliError(f"{partition} is no partition: it is TOPIC-N", status=ExitStatus.USAGE)
    producer = _ask(
        config,
        bootstrap_server,
        timeout_ms,
        lambda client: client.abort_at(topic, int(index), start_offset),
    )
    if as_json:
        print_json(
            {"partition": partition, "start_offset": start_offset, "producer_id": producer.producer_id}
        )
    else:
        say(f"the transaction of producer {producer.producer_id} in {partition} was aborted")


async def _abort_id(client: "TransactionClient", transactional_id: str) -> "TransactionView":
    from kquorum.cli.commands.transactions.transaction_client import ONGOING
    from kquorum.cli.failures import CliError

    found = await client.describe(transactional_id)
    if found.state != ONGOING:
        raise CliError(f"{transactional_id} has no open transaction: its state is {found.state}")
    await client.fence(found)
    return found


def _ask(
    config: Path | None,
    bootstrap_server: str | None,
    timeout_ms: int,
    ask: "Callable[[TransactionClient], Awaitable[T]]",
) -> T:
    import asyncio

    from kquorum.cli.clients.addresses import broker_addresses
    from kquorum.cli.commands.transactions.transaction_client import TransactionClient

    async def work() -> T:
        async with TransactionClient(broker_addresses(config, bootstrap_server), timeout_ms) as client:
            return await ask(client)

    return asyncio.run(work())


def _show(found: "TransactionView") -> None:
    from datetime import UTC, datetime

    from kquorum.cli.output import print_table, say
    from kquorum.wire.wording import counted

    say(f"{found.transactional_id}: {found.state}, coordinated by broker {found.coordinator}")
    say(f"producer {found.producer_id}, epoch {found.producer_epoch}, timeout {found.timeout_ms} ms")
    if found.start_ms is not None:
        start = datetime.fromtimestamp(found.start_ms / 1000, UTC)
        say(f"since {start.isoformat(timespec='milliseconds')}")
    if found.partitions:
        print_table(counted(len(found.partitions), "partition"), ("topic", "#partition"), found.partitions)


COMMAND = Command(
    run=transactions_app,
    summary="List, describe and abort transactions.",
    panel=Panel.ASK,
    place=11,
    examples={
        "list": ("kquorum transactions list --state Ongoing -b localhost:9092",),
        "describe": ("kquorum transactions describe orders-1 -b localhost:9092",),
        "abort": (
            "kquorum transactions abort orders-1 -b localhost:9092",
            "kquorum transactions abort -p orders-0 --start-offset 120",
        ),
    },
)
