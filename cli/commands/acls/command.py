"""`kquorum acls`: list, add and remove access control entries through a broker."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, BootstrapServer, DryRun, MaybeConfigPath, Reason, TimeoutMs
from kquorum.cli.principals import checked_principal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kquorum.cli.clients.cluster_client import ClusterClient
    from kquorum.cli.commands.acls.acl_client import Acl, AclFilter

Names = list[str] | None
Topics = Annotated[Names, typer.Option("--topic", metavar="NAME", help="A topic; may be repeated.")]
Groups = Annotated[Names, typer.Option("--group", metavar="NAME", help="A group; may be repeated.")]
TransactionalIds = Annotated[
    Names, typer.Option("--transactional-id", metavar="ID", help="A transactional id; may be repeated.")
]
Tokens = Annotated[
    Names, typer.Option("--delegation-token", metavar="OWNER", help="Tokens of an owner; may be repeated.")
]
Users = Annotated[
    Names,
    typer.Option("--user", metavar="PRINCIPAL", help="A user whose tokens others make; may be repeated."),
]
Cluster = Annotated[bool, typer.Option("--cluster", help="The cluster itself.")]
Operations = Annotated[
    Names,
    typer.Option("--operation", metavar="NAME", help="READ, WRITE, ...; comma-separated or repeated."),
]
acls_app = typer.Typer(
    help="List, add and remove access control entries.", no_args_is_help=True, add_completion=False
)


@acls_app.command("list")
def list_acls(
    topic: Topics = None,
    group: Groups = None,
    transactional_id: TransactionalIds = None,
    delegation_token: Tokens = None,
    user: Users = None,
    cluster: Cluster = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Only entries of exactly these names, not those that apply too.")
    ] = False,
    principal: Annotated[
        str | None, typer.Option("--principal", metavar="TYPE:NAME", help="Only entries of this principal.")
    ] = None,
    operation: Operations = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """List the entries, one line each; of the named resources, with those of prefixes and wildcards that apply to them.

    The entries are in force if the nodes have an authorizer.
    """
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.acls.acl_client import find_acls

    resources = _resources(topic, group, transactional_id, delegation_token, user, cluster)
    filters = _filters(resources, None if exact else "MATCH", principal, _operations(operation))
    found = ask_brokers(config, bootstrap_server, timeout_ms, lambda client: find_acls(client, filters))
    _show(found, None, as_json=as_json)


@acls_app.command()
def add(
    allow: Annotated[
        Names, typer.Option("--allow", metavar="TYPE:NAME", help="Allow it to a principal; may be repeated.")
    ] = None,
    deny: Annotated[
        Names, typer.Option("--deny", metavar="TYPE:NAME", help="Deny it to a principal; may be repeated.")
    ] = None,
    host: Annotated[
        Names, typer.Option("--host", metavar="ADDRESS", help="From this address only; may be repeated.")
    ] = None,
    operation: Operations = None,
    producer: Annotated[
        bool, typer.Option("--producer", help="What a producer needs, of topics and transactional ids.")
    ] = False,
    consumer: Annotated[
        bool, typer.Option("--consumer", help="What a consumer needs, of topics and groups.")
    ] = False,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: TransactionalIds = None,
    delegation_token: Tokens = None,
    user: Users = None,
    cluster: Cluster = False,
    prefixed: Annotated[
        bool, typer.Option("--prefixed", help="The names are prefixes: all resources that begin with them.")
    ] = False,
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Add entries: each principal, host and operation on each of the named resources. An entry that is there already is
    a success.
    """
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.acls.acl_client import Acl, add_acls, around, find_acls

    principals = [("ALLOW", each) for each in allow or ()] + [("DENY", each) for each in deny or ()]
    if not principals:
        raise typer.BadParameter("name principals with --allow or --deny, as User:alice")
    for _, each in principals:
        checked_principal(each)
    resources = _resources(topic, group, transactional_id, delegation_token, user, cluster)
    if not resources:
        raise typer.BadParameter("name resources: --topic, --group, --transactional-id, --cluster, ...")
    operations = _operations_of(resources, _operations(operation), producer=producer, consumer=consumer)
    wanted = [
        Acl(
            resource=resource,
            name=name,
            pattern=pattern,
            permission=permission,
            principal=principal,
            host=each_host,
            operation=each,
        )
        for resource, name, pattern in _patterns(resources, "PREFIXED" if prefixed else "LITERAL")
        for permission, principal in principals
        for each_host in host or ("*",)
        for each in operations[resource]
    ]

    async def change(client: "ClusterClient") -> "set[Acl]":
        there = set(await find_acls(client, around(wanted)))
        new = [acl for acl in wanted if acl not in there]
        if new and not dry_run:
            await add_acls(client, new)
        return set(new)

    new = ask_brokers(config, bootstrap_server, timeout_ms, change, reason)
    done = "would be added" if dry_run else "added"
    _show(wanted, [done if acl in new else "there already" for acl in wanted], as_json=as_json)


@acls_app.command()
def remove(
    principal: Annotated[
        str | None, typer.Option("--principal", metavar="TYPE:NAME", help="Only entries of this principal.")
    ] = None,
    operation: Operations = None,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: TransactionalIds = None,
    delegation_token: Tokens = None,
    user: Users = None,
    cluster: Cluster = False,
    prefixed: Annotated[
        bool, typer.Option("--prefixed", help="Entries whose name is exactly this prefix.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="All entries, if nothing else is named.")] = False,
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Remove the entries of exactly the named resources, of a principal, or of operations.

    Look at them with --dry-run first. Where an authorizer is in force, the removal of a DENY entry gives rights.
    """
    from kquorum.cli.clients.cluster_client import ask_brokers
    from kquorum.cli.commands.acls.acl_client import find_acls, remove_acls

    resources = _resources(topic, group, transactional_id, delegation_token, user, cluster)
    operations = _operations(operation)
    is_narrowed = bool(resources or principal or operations)
    if is_narrowed == every:
        raise typer.BadParameter("name resources, --principal or --operation, or else all entries with --all")
    if prefixed and not resources:
        raise typer.BadParameter("--prefixed says how names are meant: name resources")
    filters = _filters(resources, "PREFIXED" if prefixed else "LITERAL", principal, operations)

    async def change(client: "ClusterClient") -> "tuple[Acl, ...]":
        found = await find_acls(client, filters)
        return found if dry_run or not found else await remove_acls(client, found)

    removed = ask_brokers(config, bootstrap_server, timeout_ms, change, reason)
    done = "would be removed" if dry_run else "removed"
    _show(removed, [done] * len(removed), as_json=as_json)


def _resources(
    topics: Names, groups: Names, transactional_ids: Names, tokens: Names, users: Names, cluster: bool
) -> list[tuple[str, str]]:
    """Type and name of each."""
    named = {
        "TOPIC": topics,
        "GROUP": groups,
        "TRANSACTIONAL_ID": transactional_ids,
        "DELEGATION_TOKEN": tokens,
        "USER": users,
    }
    found = [(resource, name) for resource, names in named.items() for name in names or ()]
    return [*found, ("CLUSTER", "")] if cluster else found


def _patterns(resources: "Sequence[tuple[str, str]]", pattern: str) -> list[tuple[str, str, str]]:
    from kquorum.cli.commands.acls.acl_client import resource_of

    return [resource_of(resource, name, pattern=pattern) for resource, name in resources]


def _filters(
    resources: "Sequence[tuple[str, str]]",
    pattern: str | None,
    principal: str | None,
    operations: "Sequence[str]",
) -> "list[AclFilter]":
    """`pattern` None: any, of exactly this name."""
    from kquorum.cli.commands.acls.acl_client import AclFilter

    if principal is not None:
        checked_principal(principal)
    places: list[tuple[str | None, str | None, str]] = [*_patterns(resources, pattern or "ANY")]
    return [
        AclFilter(resource=resource, name=name, pattern=kind, principal=principal, operation=operation)
        for resource, name, kind in places or [(None, None, "ANY")]
        for operation in (*operations,) or (None,)
    ]


def _operations(texts: Names) -> list[str]:
    """Kafka's names; capitals, `-` and `_` do not matter."""
    from kquorum.cli.commands.acls.acl_client import OPERATION_CODES

    known = {name.replace("_", "").lower(): name for name in OPERATION_CODES}
    found: list[str] = []
    parts = [[part for part in each.split(",") if part.strip()] for each in texts or ()]
    if not all(parts):
        # An empty variable of a script must not mean all operations.
        raise typer.BadParameter("it names no operation", param_hint="--operation")
    for text in (part for some in parts for part in some):
        name = known.get(text.strip().replace("_", "").replace("-", "").lower())
        if name is None:
            raise typer.BadParameter(
                f"{text!r} is none of {', '.join(OPERATION_CODES)}", param_hint="--operation"
            )
        found.append(name)
    return list(dict.fromkeys(found))


def _operations_of(
    resources: "Sequence[tuple[str, str]]", operations: "Sequence[str]", *, producer: bool, consumer: bool
) -> "Mapping[str, Sequence[str]]":
    """By type of resource: those that were named, and what a producer or a consumer needs (as `kafka-acls` has it)."""
    needed: dict[str, list[str]] = {resource: list(operations) for resource, _ in resources}
    if producer:
        if "TOPIC" not in needed:
            raise typer.BadParameter("a producer needs topics: name them with --topic")
        needed["TOPIC"] += ("WRITE", "DESCRIBE", "CREATE")
        if "TRANSACTIONAL_ID" in needed:
            needed["TRANSACTIONAL_ID"] += ("WRITE", "DESCRIBE")
    if consumer:
        if not {"TOPIC", "GROUP"} <= needed.keys():
            raise typer.BadParameter(
                "a consumer needs topics and a group: name them with --topic and --group"
            )
        needed["TOPIC"] += ("READ", "DESCRIBE")
        needed["GROUP"].append("READ")
    if bare := [resource for resource, names in needed.items() if not names]:
        raise typer.BadParameter(f"name the operations on {', '.join(bare)} with --operation")
    return {resource: list(dict.fromkeys(names)) for resource, names in needed.items()}


def _show(acls: "Sequence[Acl]", changes: "Sequence[str] | None", *, as_json: bool) -> None:
    from kquorum.cli.commands.acls.acl_client import COLUMNS
    from kquorum.cli.output import print_json, print_table

    ends = [{} if changes is None else {"change": changes[index]} for index in range(len(acls))]
    rows = [asdict(acl) | end for acl, end in zip(acls, ends, strict=True)]
    if as_json:
        print_json(rows)
        return
    columns = (*COLUMNS, *(("change",) if changes is not None else ()))
    title = f"{len(acls):,} entry" if len(acls) == 1 else f"{len(acls):,} entries"
    print_table(title, columns, [tuple(row.values()) for row in rows], spare=("host",), folding="principal")


COMMAND = Command(
    run=acls_app,
    summary="List, add and remove access control entries.",
    panel=Panel.ADMINISTER,
    place=3,
    examples={
        "list": (
            "kquorum acls list -c quorum.toml",
            "kquorum acls list --topic orders --principal User:alice -b localhost:9092",
        ),
        "add": (
            "kquorum acls add --allow User:alice --operation READ --topic orders",
            "kquorum acls add --allow User:shop --consumer --topic orders --group shop",
            "kquorum acls add --deny User:eve --operation ALL --topic pay- --prefixed",
        ),
        "remove": (
            "kquorum acls remove --principal User:alice --dry-run -c quorum.toml",
            "kquorum acls remove --topic orders --operation WRITE -b localhost:9092",
        ),
    },
)
