"""`kquorum configs`: show and alter the configs of topics, brokers, groups and client metrics through a broker."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.commands.configs.keys import keys
from kquorum.cli.options import AsJson, BootstrapServer, MaybeConfigPath, Reason, TimeoutMs

if TYPE_CHECKING:
    from kquorum.cli.clients.cluster_client import ClusterClient
    from kquorum.cli.commands.configs.config_client import ConfigView, Operation, Resource

Topic = Annotated[str | None, typer.Option("--topic", metavar="NAME", help="The configs of this topic.")]
Broker = Annotated[
    int | None, typer.Option("--broker", metavar="ID", min=0, help="The configs of this broker.")
]
Cluster = Annotated[
    bool, typer.Option("--cluster", help="The configs of all brokers that have no value of their own.")
]
Group = Annotated[str | None, typer.Option("--group", metavar="NAME", help="The configs of this group.")]
ClientMetrics = Annotated[
    str | None,
    typer.Option("--client-metrics", metavar="NAME", help="The configs of this client metrics subscription."),
]
KeyValues = list[str] | None
configs_app = typer.Typer(
    help="Show and alter configs of topics, brokers, groups and client metrics.",
    no_args_is_help=True,
    add_completion=False,
)


configs_app.command()(keys)


@configs_app.command()
def describe(
    topic: Topic = None,
    broker: Broker = None,
    cluster: Cluster = False,
    group: Group = None,
    client_metrics: ClientMetrics = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show keys with their default value too.")] = False,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 5000,
    as_json: AsJson = False,
) -> None:
    """Show the keys that are set, and where; --all shows the defaults too. Passwords and keys are never shown."""
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.configs.config_client import DEFAULT_SOURCE
    from kquorum.cli.output import print_json

    resource = _resource(topic, broker, cluster, group, client_metrics)
    found = ask_brokers(
        config, bootstrap_server, timeout_ms, lambda client: _describe(client, resource, timeout_ms)
    )
    shown = [each for each in found if show_all or each.source != DEFAULT_SOURCE]
    if as_json:
        print_json({"resource": resource.words, "configs": [asdict(each) for each in shown]})
    else:
        _print_table(resource.words, shown)


def _print_table(words: str, configs: "list[ConfigView]") -> None:
    from kquorum.cli.output import print_table, say

    if not configs:
        say(f"{words}: nothing is set; --all shows the defaults")
        return
    rows = [(each.name, _shown_value(each), each.source, each.type) for each in configs]
    columns = ("config", "~value", "from", "type")
    print_table(f"configs of {words}", columns, rows, spare=("type",), folding="config")


def _shown_value(config: "ConfigView") -> str:
    if config.is_sensitive:
        return "[hidden]"
    return "" if config.value is None else config.value


@configs_app.command()
def alter(
    topic: Topic = None,
    broker: Broker = None,
    cluster: Cluster = False,
    group: Group = None,
    client_metrics: ClientMetrics = None,
    set_: Annotated[
        KeyValues, typer.Option("--set", metavar="KEY=VALUE", help="Set a key; may be repeated.")
    ] = None,
    delete: Annotated[
        KeyValues,
        typer.Option("--delete", metavar="KEY", help="Reset a key to its default; may be repeated."),
    ] = None,
    append: Annotated[
        KeyValues, typer.Option("--append", metavar="KEY=VALUE", help="Add to a list; may be repeated.")
    ] = None,
    subtract: Annotated[
        KeyValues,
        typer.Option("--subtract", metavar="KEY=VALUE", help="Remove from a list; may be repeated."),
    ] = None,
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Only check whether the change is valid.")
    ] = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Alter configs: all of the changes, or none. The command returns when the quorum has committed them."""
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.configs.config_client import alter_configs
    from kquorum.cli.output import print_json, say

    resource = _resource(topic, broker, cluster, group, client_metrics)
    operations = _operations(set_, delete, append, subtract)
    ask_brokers(
        config,
        bootstrap_server,
        timeout_ms,
        lambda client: alter_configs(client, resource, operations, validate_only=validate_only),
        reason,
    )
    keys = [each.key for each in operations]
    if as_json:
        print_json({"resource": resource.words, "keys": keys, "altered": not validate_only})
    else:
        done = "would be altered" if validate_only else "altered"
        say(f"configs of {resource.words} {done}: {', '.join(keys)}")


def _resource(
    topic: str | None, broker: int | None, cluster: bool, group: str | None, client_metrics: str | None
) -> "Resource":
    from kquorum.cli.commands.configs.config_client import (
        ALL_BROKERS,
        broker_resource,
        client_metrics_resource,
        group_resource,
        topic_resource,
    )

    named = [
        None if topic is None else topic_resource(topic),
        None if broker is None else broker_resource(broker),
        ALL_BROKERS if cluster else None,
        None if group is None else group_resource(group),
        None if client_metrics is None else client_metrics_resource(client_metrics),
    ]
    wanted = [each for each in named if each is not None]
    if len(wanted) != 1:
        raise typer.BadParameter("name one of --topic, --broker, --cluster, --group and --client-metrics")
    return wanted[0]


def _operations(
    set_: KeyValues, delete: KeyValues, append: KeyValues, subtract: KeyValues
) -> "list[Operation]":
    from kquorum.cli.commands.configs.config_client import APPEND, DELETE, SET, SUBTRACT, Operation

    operations = [Operation(SET, *_key_and_value(text, "--set")) for text in set_ or ()]
    operations += [Operation(DELETE, key) for key in delete or ()]
    operations += [Operation(APPEND, *_key_and_value(text, "--append")) for text in append or ()]
    operations += [Operation(SUBTRACT, *_key_and_value(text, "--subtract")) for text in subtract or ()]
    if not operations:
        raise typer.BadParameter("nothing to do; give --set, --delete, --append or --subtract")
    keys = [each.key for each in operations]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise typer.BadParameter(f"given more than once: {', '.join(twice)}")
    return operations


def _key_and_value(text: str, option: str) -> tuple[str, str]:
    """What is wrong is not quoted: it may be a password."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise typer.BadParameter("it is not KEY=VALUE", param_hint=option)
    return key, value


async def _describe(
    client: "ClusterClient", resource: "Resource", timeout_ms: int
) -> "tuple[ConfigView, ...]":
    from kquorum.cli.clients.cluster_client import ClusterClient
    from kquorum.cli.clients.live_brokers import broker_address
    from kquorum.cli.commands.configs.config_client import ALL_BROKERS, describe_configs
    from kquorum.cli.output import tell_waiting

    if resource.type != ALL_BROKERS.type or resource == ALL_BROKERS:
        return await describe_configs(client, resource)
    address = await broker_address(client, int(resource.name))
    async with ClusterClient((address,), timeout_ms, tell=tell_waiting) as broker:
        return await describe_configs(broker, resource)


COMMAND = Command(
    run=configs_app,
    summary="Show and alter configs of topics, brokers and groups.",
    panel=Panel.ASK,
    place=4,
    examples={
        "keys": (
            "kquorum configs keys log.retention",
            "kquorum configs keys num.partitions --json",
        ),
        "describe": (
            "kquorum configs describe --topic orders -b localhost:9092",
            "kquorum configs describe --broker 11 --all -c quorum.toml",
        ),
        "alter": (
            "kquorum configs alter --topic orders --set retention.ms=60000 -c q.toml",
            "kquorum configs alter --cluster --delete log.retention.ms -c q.toml",
        ),
    },
)
