"""`kquorum quotas`: list, set and remove quotas of users, client ids and addresses through a broker."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, BootstrapServer, DryRun, MaybeConfigPath, Reason, TimeoutMs

if TYPE_CHECKING:
    from kquorum.cli.clients.cluster_client import ClusterClient

User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="A user.")]
DefaultUser = Annotated[
    bool, typer.Option("--default-user", help="All users that have no quota of their own.")
]
ClientId = Annotated[str | None, typer.Option("--client-id", metavar="ID", help="A client id.")]
DefaultClientId = Annotated[
    bool, typer.Option("--default-client-id", help="All client ids that have no quota of their own.")
]
Address = Annotated[str | None, typer.Option("--ip", metavar="ADDRESS", help="A client's address.")]
DefaultAddress = Annotated[
    bool, typer.Option("--default-ip", help="All addresses that have no quota of their own.")
]
# Key -> what its value counts.
KEYS: Mapping[str, str] = {
    "producer_byte_rate": "bytes/s that are produced",
    "consumer_byte_rate": "bytes/s that are fetched",
    "request_percentage": "percent of a broker's request time",
    "controller_mutation_rate": "partitions/s that are created or deleted",
    "connection_creation_rate": "connections/s of an address",
}
quotas_app = typer.Typer(
    help="List, set and remove quotas of users, client ids and addresses.",
    no_args_is_help=True,
    add_completion=False,
)


@quotas_app.command("list")
def list_quotas(
    user: User = None,
    default_user: DefaultUser = False,
    client_id: ClientId = None,
    default_client_id: DefaultClientId = False,
    ip: Address = None,
    default_ip: DefaultAddress = False,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """List the quotas that are set, of all entities or of those with the named parts."""
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.quotas.quota_client import find_quotas, words_of
    from kquorum.cli.output import print_json, print_table
    from kquorum.wire.wording import counted

    entity = _entity(user, default_user, client_id, default_client_id, ip, default_ip)
    found = ask_brokers(config, bootstrap_server, timeout_ms, lambda client: find_quotas(client, entity))
    if as_json:
        print_json([{"entity": each.entity, "quotas": each.values} for each in found])
        return
    rows = [
        (words_of(each.entity), key, _number(value), KEYS.get(key, ""))
        for each in found
        for key, value in each.values.items()
    ]
    print_table(counted(len(rows), "quota"), ("of", "quota", "#value", "unit"), rows, spare=("unit",))


@quotas_app.command("set")
def set_quotas(
    quotas: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE...", help=f"The quotas: {', '.join(KEYS)}.")
    ],
    user: User = None,
    default_user: DefaultUser = False,
    client_id: ClientId = None,
    default_client_id: DefaultClientId = False,
    ip: Address = None,
    default_ip: DefaultAddress = False,
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Set quotas of a user, a client id, a user's client id, or an address: all of them, or none.

    Each broker counts for itself. Of several quotas that fit a client the most specific one is in force.
    """
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.quotas.quota_client import alter_quotas

    entity = _named(_entity(user, default_user, client_id, default_client_id, ip, default_ip))
    values = dict(_key_and_number(text) for text in quotas)
    if len(values) < len(quotas):
        raise typer.BadParameter("a key is given more than once")
    ask_brokers(
        config,
        bootstrap_server,
        timeout_ms,
        lambda client: alter_quotas(client, entity, values, (), dry_run=dry_run),
        reason,
    )
    _say_done(entity, list(values), "would be set" if dry_run else "set", not dry_run, as_json=as_json)


@quotas_app.command()
def remove(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY]...", help="Only these quotas.", show_default=False),
    ] = None,
    user: User = None,
    default_user: DefaultUser = False,
    client_id: ClientId = None,
    default_client_id: DefaultClientId = False,
    ip: Address = None,
    default_ip: DefaultAddress = False,
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Remove quotas of exactly the named entity, by default all that are set. Nothing to remove is a success."""
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.quotas.quota_client import alter_quotas, find_quotas

    entity = _named(_entity(user, default_user, client_id, default_client_id, ip, default_ip))
    if unknown := [key for key in keys or () if key not in KEYS]:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(KEYS)}")

    async def change(client: "ClusterClient") -> list[str]:
        found = await find_quotas(client, entity, strict=True)
        there = [key for each in found for key in each.values if not keys or key in keys]
        if there:
            await alter_quotas(client, entity, {}, there, dry_run=dry_run)
        return there

    removed = ask_brokers(config, bootstrap_server, timeout_ms, change, reason)
    _say_done(entity, removed, "would be removed" if dry_run else "removed", not dry_run, as_json=as_json)


def _entity(
    user: str | None,
    default_user: bool,
    client_id: str | None,
    default_client_id: bool,
    ip: str | None,
    default_ip: bool,
) -> dict[str, str | None]:
    entity: dict[str, str | None] = {}
    for kind, name, is_default in (
        ("user", user, default_user),
        ("client-id", client_id, default_client_id),
        ("ip", ip, default_ip),
    ):
        if name is not None and is_default:
            raise typer.BadParameter(f"--{kind} and --default-{kind} exclude each other")
        if name is not None or is_default:
            entity[kind] = name
    if "ip" in entity and len(entity) > 1:
        raise typer.BadParameter(
            "the quota of an address is of the address alone: leave out user and client id"
        )
    return entity


def _named(entity: dict[str, str | None]) -> dict[str, str | None]:
    if not entity:
        raise typer.BadParameter("whose quotas? Name --user, --client-id or --ip, or one of the defaults")
    return entity


def _key_and_number(text: str) -> tuple[str, float]:
    key, separator, value = text.partition("=")
    if not separator:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE")
    if key not in KEYS:
        from kquorum.wire.near_names import near_names

        near = near_names(key, KEYS, 1)
        hint = f" (did you mean {near[0]}?)" if near else f": it is none of {', '.join(KEYS)}"
        raise typer.BadParameter(f"there is no quota {key!r}{hint}")
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not 0 < number < float("inf"):
        raise typer.BadParameter(f"{value!r} is no positive number ({key}: {KEYS[key]})")
    return key, number


def _number(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() else f"{value:,}"


def _say_done(
    entity: dict[str, str | None], keys: list[str], verb: str, changed: bool, *, as_json: bool
) -> None:
    from kquorum.cli.commands.quotas.quota_client import words_of
    from kquorum.cli.output import print_json, say

    if as_json:
        print_json({"entity": entity, "keys": keys, "changed": changed and bool(keys)})
    elif keys:
        say(f"quotas of {words_of(entity)} {verb}: {', '.join(keys)}")
    else:
        say(f"{words_of(entity)} has no such quota")


COMMAND = Command(
    run=quotas_app,
    summary="List, set and remove quotas of clients.",
    panel=Panel.ADMINISTER,
    place=5,
    examples={
        "list": ("kquorum quotas list -c quorum.toml", "kquorum quotas list --user alice --json"),
        "set": (
            "kquorum quotas set producer_byte_rate=1048576 --user alice -c quorum.toml",
            "kquorum quotas set connection_creation_rate=20 --default-ip --dry-run",
        ),
        "remove": ("kquorum quotas remove producer_byte_rate --user alice -c quorum.toml",),
    },
)
