"""`kquorum log-dirs`: the log directories of brokers, and moves of replicas between those of a broker."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, BootstrapServer, DryRun, MaybeConfigPath, Reason, TimeoutMs

if TYPE_CHECKING:
    from kquorum.cli.clients.cluster_client import ClusterClient
    from kquorum.cli.clients.log_dirs_client import LogDirectory
    from kquorum.cli.failures import CliError

log_dirs_app = typer.Typer(
    help="Show the log directories of brokers, and move replicas between them.",
    no_args_is_help=True,
    add_completion=False,
)


@log_dirs_app.command("list")
def list_log_dirs(
    broker: Annotated[
        list[int] | None,
        typer.Option("--broker", metavar="ID", min=0, help="Of this broker; may be repeated."),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="NAME", help="Each replica of this topic; may be repeated."),
    ] = None,
    replicas: Annotated[bool, typer.Option("--replicas", help="Each replica of all topics.")] = False,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Show each log directory of the brokers: how many replicas it has, their size, and the space that is left.

    With --topic or --replicas a line for each replica. A replica that is on its way to another directory is shown in
    both, with the lag of the copy in records.
    """
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.clients.live_brokers import live_brokers, not_there
    from kquorum.cli.clients.log_dirs_client import find_log_dirs
    from kquorum.cli.commands.topics.topic_client import describe_topics
    from kquorum.cli.failures import CliError
    from kquorum.cli.output import complain, print_json

    async def ask(client: "ClusterClient") -> "tuple[list[LogDirectory], dict[int, CliError]]":
        live = await live_brokers(client)
        if absent := [each for each in broker or () if each not in live]:
            raise not_there(absent[0], live)
        addresses = {each: live[each].address for each in broker or live}
        partitions = None
        if topic:
            partitions = {
                each.name: [item.partition_id for item in each.partitions]
                for each in await describe_topics(client, topic)
            }
        return await find_log_dirs(addresses, partitions, client.remaining_ms)

    found, silent = ask_brokers(config, bootstrap_server, timeout_ms, ask)
    for reason in silent.values():
        complain(str(reason), style="yellow", label="note")
    if as_json:
        print_json([asdict(each) | {"size_bytes": each.size_bytes} for each in found])
    elif topic or replicas:
        _show_replicas(found)
    else:
        _show_directories(found)
    if silent:
        unanswered = ", ".join(map(str, silent))
        raise CliError(f"not every broker tells its log directories: {unanswered} do not", is_in_json=True)


def _show_directories(found: "list[LogDirectory]") -> None:
    from kquorum.cli.output import print_table
    from kquorum.wire.wording import counted

    rows = [
        (
            each.broker_id,
            each.path,
            sum(not replica.is_future for replica in each.replicas),
            sum(replica.is_future for replica in each.replicas) or None,
            each.size_bytes,
            each.usable_bytes,
            each.total_bytes,
            each.fault or ("cordoned" if each.is_cordoned else "ok"),
        )
        for each in found
    ]
    columns = ("#broker", "directory", "#replicas", "#arriving", "#bytes", "#usable", "#total", "state")
    spare = ("#arriving", "#total", "#usable")
    print_table(
        counted(len(rows), "directory").replace("directorys", "directories"), columns, rows, spare=spare
    )


def _show_replicas(found: "list[LogDirectory]") -> None:
    from kquorum.cli.output import print_table
    from kquorum.wire.wording import counted

    rows = sorted(
        (
            replica.topic,
            replica.partition,
            each.broker_id,
            each.path,
            replica.size_bytes,
            replica.lag,
            "arriving" if replica.is_future else "",
        )
        for each in found
        for replica in each.replicas
    )
    columns = ("topic", "#partition", "#broker", "directory", "#bytes", "#lag", "move")
    print_table(counted(len(rows), "replica"), columns, rows, spare=("#lag",))


@log_dirs_app.command()
def move(
    partitions: Annotated[
        list[str], typer.Argument(metavar="TOPIC-PARTITION...", help="The partitions, as orders-3.")
    ],
    broker: Annotated[int, typer.Option("--broker", metavar="ID", min=0, help="The broker.")],
    to: Annotated[str, typer.Option("--to", metavar="DIRECTORY", help="One of the broker's log.dirs.")],
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Move replicas of a broker to another of its log directories, while they are in use.

    The command returns when the moves have begun; `kquorum log-dirs list --topic` shows how far they are. To move a
    replica to the directory where it is ends a move of it.
    """
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.clients.live_brokers import broker_address
    from kquorum.cli.clients.log_dirs_client import find_log_dirs
    from kquorum.cli.commands.log_dirs.moves import check_paths, move_replicas, parse_place
    from kquorum.cli.failures import check_refusals
    from kquorum.cli.output import print_json, say

    try:
        places = list(dict.fromkeys(map(parse_place, partitions)))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    directory = to.rstrip("/") or "/"

    async def change(client: "ClusterClient") -> list[str]:
        addresses = {broker: await broker_address(client, broker)}
        found, silent = await find_log_dirs(addresses, None, client.remaining_ms)
        for refusal in silent.values():
            raise refusal
        known = {each.path: {(log.topic, log.partition) for log in each.replicas} for each in found}
        check_paths(places, broker, directory, known)
        if dry_run:
            return []
        moves = {broker: dict.fromkeys(places, directory)}
        return await move_replicas(addresses, moves, client.remaining_ms, reason)

    refused = ask_brokers(config, bootstrap_server, timeout_ms, change, reason)
    check_refusals(refused, "replicas do not move")
    names = [f"{topic}-{partition}" for topic, partition in places]
    if as_json:
        print_json({"broker": broker, "directory": directory, "partitions": names, "moving": not dry_run})
    else:
        verb = "would move" if dry_run else ("moves" if len(names) == 1 else "move")
        say(f"{', '.join(names)} of broker {broker} {verb} to {directory}")


COMMAND = Command(
    run=log_dirs_app,
    summary="Show log directories of brokers, and move replicas between them.",
    panel=Panel.ADMINISTER,
    place=7,
    examples={
        "list": (
            "kquorum log-dirs list -c quorum.toml",
            "kquorum log-dirs list --broker 11 --topic orders -b localhost:9092",
        ),
        "move": ("kquorum log-dirs move orders-3 --broker 11 --to /disk2/kafka -c q.toml",),
    },
)
