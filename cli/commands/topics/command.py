"""`kquorum topics`: create, list, describe, alter and delete topics through a broker."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import (
    AsJson,
    BootstrapServer,
    DryRun,
    GrpcListeners,
    MaybeConfigPath,
    Reason,
    TimeoutMs,
)

if TYPE_CHECKING:
    from kquorum.cli.clients.cluster_client import ClusterClient
    from kquorum.cli.commands.topics.topic_client import PartitionView, TopicView

Consistency = Annotated[
    str | None,
    typer.Option(
        "--consistency",
        metavar="PROMISE",
        help="The promise to keep: linearizable, committed or local (gRPC).",
    ),
]
topics_app = typer.Typer(
    help="Create, list, describe, alter and delete topics.", no_args_is_help=True, add_completion=False
)


@topics_app.command()
def create(
    name: Annotated[str, typer.Argument(help="The topic's name.")],
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions", "-p", help="The number of partitions; -1 means the cluster's num.partitions."
        ),
    ] = -1,
    replication_factor: Annotated[
        int,
        typer.Option(
            "--replication-factor",
            "-r",
            help="-1 for default.replication.factor of the cluster.",
        ),
    ] = -1,
    topic_config: Annotated[
        list[str] | None,
        typer.Option("--topic-config", metavar="KEY=VALUE", help="A config of the topic; may be repeated."),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Succeed if the topic exists.")
    ] = False,
    wait_all: Annotated[
        bool,
        typer.Option("--wait-all", help="Wait until every unfenced broker has applied it (gRPC)."),
    ] = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    grpc: GrpcListeners = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Create a topic. Returns when the quorum has committed it; with --wait-all, when all brokers have applied it."""
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.topics.topic_client import NewTopic, create_topic
    from kquorum.cli.commands.topics.wait_all import WaitForAll
    from kquorum.cli.output import print_json, say

    waiting = WaitForAll(config, grpc, timeout_ms) if wait_all else None

    topic = NewTopic(
        name=name,
        partitions=partitions,
        replication_factor=replication_factor,
        configs=dict(_key_and_value(item) for item in topic_config or ()),
    )
    is_new = ask_brokers(
        config,
        bootstrap_server,
        timeout_ms,
        lambda client: create_topic(client, topic, timeout_ms, if_not_exists=if_not_exists),
        reason,
    )
    done = f"topic {name} was created" if is_new else f"topic {name} was there already"
    everywhere = None if waiting is None else waiting.run(done)
    if as_json:
        print_json({"name": name, "created": is_new} | ({} if everywhere is None else everywhere.as_json()))
    else:
        say(done if everywhere is None else f"{done}, and {everywhere.words}")


@topics_app.command("list")
def list_topics(
    consistency: Consistency = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    grpc: GrpcListeners = None,
    timeout_ms: TimeoutMs = 20_000,
    as_json: AsJson = False,
) -> None:
    """List the topics, one line each.

    By default a broker answers with what it has applied. With --consistency a node answers over gRPC: linearizable (the
    leader, with all that was committed before the request), committed (what the node knows to be committed) or local
    (the node's own log, including uncommitted records).
    """
    from kquorum.cli.output import print_json, print_table
    from kquorum.wire.wording import counted

    found = _read(None, consistency, config, bootstrap_server, grpc, timeout_ms)
    if as_json:
        print_json([_summary(item) for item in found])
        return
    rows = [tuple(_summary(item).values()) for item in found]
    columns = ("topic", "id", "#partitions", "#replicas", "#no\nleader", "#short\nisr")
    print_table(counted(len(found), "topic"), columns, rows, spare=("id",))


@topics_app.command()
def describe(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The topics.")],
    consistency: Consistency = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    grpc: GrpcListeners = None,
    timeout_ms: TimeoutMs = 5000,
    as_json: AsJson = False,
) -> None:
    """Show each partition's leader, epoch, replicas and in-sync replicas, and from the brokers: the first and the next
    offset, the size in bytes, and each replica's lag behind the leader, in the order of the replicas.

    --consistency as for `list`; a node's image knows no logs.
    """
    from kquorum.cli.output import print_json

    found = _read(names, consistency, config, bootstrap_server, grpc, timeout_ms, with_logs=True)
    if as_json:
        print_json([asdict(topic) for topic in found])
        return
    for topic in found:
        _show(topic)


def _show(topic: "TopicView") -> None:
    from kquorum.cli.output import print_table

    has_logs = any(item.logs for item in topic.partitions)
    rows = [
        (
            item.partition_id,
            "none" if item.leader < 0 else str(item.leader),
            item.leader_epoch,
            item.replicas,
            item.isr,
            *(_log_columns(item) if has_logs else ()),
        )
        for item in topic.partitions
    ]
    columns = ["#partition", "#leader", "#epoch", "replicas", "isr"]
    if has_logs:
        columns += ["#first", "#next", "#bytes", "lag"]
    print_table(f"{topic.name} ({topic.topic_id})", columns, rows, spare=("#epoch", "#first"))


def _log_columns(partition: "PartitionView") -> tuple[object, ...]:
    """Offsets and size of the leader's log, and the lag of each replica: "?" for what no broker has told."""
    logs = {log.broker_id: log for log in partition.logs}
    lags = [logs[each].lag if each in logs else None for each in partition.replicas]
    lag = " ".join("?" if each is None else str(each) for each in lags)
    leaders = logs.get(partition.leader)
    if leaders is None:
        return "?", "?", "?", lag
    size = "?" if leaders.size_bytes is None else leaders.size_bytes
    return leaders.log_start_offset, leaders.log_end_offset, size, lag


@topics_app.command()
def alter(
    name: Annotated[str, typer.Argument(help="The topic's name.")],
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", min=1, help="How many partitions the topic is to have.")
    ],
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Add partitions to a topic; it never has fewer again.

    Records stay where they are, and the partition of a key is another one from then on. `kquorum configs alter --topic`
    changes the topic's configs.
    """
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.topics.topic_client import add_partitions
    from kquorum.cli.output import print_json, say

    before = ask_brokers(
        config,
        bootstrap_server,
        timeout_ms,
        lambda client: add_partitions(client, name, partitions, timeout_ms, dry_run=dry_run),
        reason,
    )
    if as_json:
        changed = before != partitions and not dry_run
        print_json({"name": name, "before": before, "partitions": partitions, "altered": changed})
    elif before == partitions:
        say(f"topic {name} has {partitions} partitions already")
    else:
        done = "would get" if dry_run else "got"
        say(f"topic {name} {done} {partitions - before} more partitions: {partitions} instead of {before}")


@topics_app.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The topics.")],
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Delete topics in the given order. The command stops at the first topic that is refused."""
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.topics.topic_client import delete_topic
    from kquorum.cli.failures import CliError
    from kquorum.cli.output import print_json, say

    deleted: list[str] = []

    async def delete_all(client: "ClusterClient") -> None:
        for name in names:
            await delete_topic(client, name, timeout_ms)
            deleted.append(name)
            if not as_json:
                say(f"topic {name} was deleted")

    try:
        ask_brokers(config, bootstrap_server, timeout_ms, delete_all, reason)
    except CliError as error:
        if not as_json or not deleted:
            raise
        # Otherwise the document would not tell that some are gone.
        raise CliError(f"{error}; deleted before: {', '.join(deleted)}", status=error.status) from error
    if as_json:
        print_json([{"name": name, "deleted": True} for name in names])


def _summary(topic: "TopicView") -> dict[str, object]:
    """A topic's line, in the order of the columns."""
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "partitions": len(topic.partitions),
        "replicas": max((len(partition.replicas) for partition in topic.partitions), default=0),
        "no_leader": sum(partition.leader < 0 for partition in topic.partitions),
        "short_isr": sum(len(partition.isr) < len(partition.replicas) for partition in topic.partitions),
    }


def _read(
    names: list[str] | None,
    consistency: str | None,
    config: Path | None,
    bootstrap_server: str | None,
    grpc: str | None,
    timeout_ms: int,
    *,
    with_logs: bool = False,
) -> "tuple[TopicView, ...]":
    """From a broker; or, where a promise or a gRPC listener was asked for, from a node's image."""
    from kquorum.cli.clients.cluster_client import ask_brokers

    if consistency is None and grpc is None:
        from kquorum.cli.commands.topics.topic_client import describe_topics

        async def ask(client: "ClusterClient") -> "tuple[TopicView, ...]":
            found = await describe_topics(client, names)
            if not with_logs:
                return found
            from kquorum.cli.commands.topics.replica_logs import with_replica_logs

            return await with_replica_logs(client, found)

        return ask_brokers(config, bootstrap_server, timeout_ms, ask)
    from kquorum.cli.clients.addresses import grpc_addresses
    from kquorum.cli.clients.cluster_client import run_asking
    from kquorum.cli.commands.topics.image_reads import CONSISTENCIES, read_topics

    promise = consistency or "committed"
    if promise not in CONSISTENCIES:
        known = ", ".join(CONSISTENCIES)
        raise typer.BadParameter(f"{consistency!r} is none of {known}", param_hint="--consistency")
    if bootstrap_server is not None:
        raise typer.BadParameter(
            "brokers make no promise over Kafka's protocol; name gRPC listeners with --grpc or --config",
            param_hint="--bootstrap-server",
        )
    addresses = grpc_addresses(config, grpc, needed_by=f"a {promise} read")
    return run_asking(read_topics(addresses, names, promise, timeout_ms))


def _key_and_value(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--topic-config")
    return key, value


COMMAND = Command(
    run=topics_app,
    summary="Create, list, describe, alter and delete topics.",
    panel=Panel.ASK,
    place=3,
    examples={
        "create": (
            "kquorum topics create orders -p 6 -r 3 -c quorum.toml",
            "kquorum topics create orders --wait-all -c quorum.toml",
        ),
        "list": (
            "kquorum topics list -b localhost:9092",
            "kquorum topics list --consistency linearizable -c quorum.toml",
        ),
        "describe": ("kquorum topics describe orders -b localhost:9092 --json",),
        "alter": (
            "kquorum topics alter orders --partitions 12 -c quorum.toml",
            "kquorum topics alter orders -p 12 --dry-run -b localhost:9092",
        ),
        "delete": ("kquorum topics delete orders -b localhost:9092",),
    },
)
