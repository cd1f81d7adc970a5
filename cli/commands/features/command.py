"""`kquorum features`: which levels are in force, who can run which, and their change."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import (
    AsJson,
    BootstrapController,
    BootstrapServer,
    MaybeConfigPath,
    Reason,
    TimeoutMs,
)

if TYPE_CHECKING:
    from kquorum.cli.commands.features.features_client import FeaturesView
    from kquorum.node.config.addresses import HostPort

Metadata = Annotated[
    str | None,
    typer.Option(
        "--metadata",
        "-m",
        metavar="V",
        help="The metadata.version: a release (4.1), a name (4.1-IV1) or a level (27).",
    ),
]
Release = Annotated[
    str | None,
    typer.Option(
        "--release-version",
        "-r",
        metavar="V",
        help="Like --metadata, and set every other feature to the level of a new cluster of that release.",
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option("--feature", "-f", metavar="NAME=LEVEL", help="The level of a feature; may be repeated."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only check whether the change is possible.")]
Unsafe = Annotated[bool, typer.Option("--unsafe", help="Allow changes that may lose metadata.")]
features_app = typer.Typer(
    help="Show, upgrade and downgrade the levels of features.", no_args_is_help=True, add_completion=False
)


@features_app.command()
def describe(
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    bootstrap_controller: BootstrapController = None,
    timeout_ms: TimeoutMs = 5000,
    as_json: AsJson = False,
) -> None:
    """Show the levels in force, and the levels that every node supports.

    The command asks all nodes of the config, or those at the given addresses. If they differ, a second table shows how.
    """
    from kquorum.cli.output import complain, print_json

    view = _look(config, bootstrap_server, bootstrap_controller, timeout_ms)
    for reason in view.silent.values():
        complain(reason, style="yellow", label="note")
    if as_json:
        print_json(_as_json(view))
    else:
        _show(view)


@features_app.command()
def upgrade(
    metadata: Metadata = None,
    release_version: Release = None,
    feature: Features = None,
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    bootstrap_controller: BootstrapController = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Raise the levels of the named features: all of them, or none.

    Every registered broker and controller must support the levels. You may be unable to lower a metadata.version again
    if it brought new metadata.
    """
    from kquorum.cli.commands.features.features_client import UPGRADE, higher_levels, parse_levels
    from kquorum.cli.failures import CliError, ExitStatus

    if release_version is not None and metadata is not None:
        raise CliError("--metadata and --release-version exclude each other", status=ExitStatus.USAGE)
    levels = parse_levels(feature or (), metadata)
    if release_version is not None:
        view = _look(config, bootstrap_server, bootstrap_controller, timeout_ms)
        levels = higher_levels(_of_release(release_version), view) | levels
        if not levels:
            _say_done({}, dry_run=dry_run, as_json=as_json)
            return
    _set(levels, UPGRADE, dry_run, config, bootstrap_server, bootstrap_controller, timeout_ms, reason)
    _say_done(levels, dry_run=dry_run, as_json=as_json)


@features_app.command()
def downgrade(
    metadata: Metadata = None,
    feature: Features = None,
    unsafe: Unsafe = False,
    dry_run: DryRun = False,
    reason: Reason = None,
    config: MaybeConfigPath = None,
    bootstrap_server: BootstrapServer = None,
    bootstrap_controller: BootstrapController = None,
    timeout_ms: TimeoutMs = 10_000,
    as_json: AsJson = False,
) -> None:
    """Lower the levels of the named features: all of them, or none. Level 0 turns a feature off.

    The controller refuses a metadata.version below one that brought new metadata, even with --unsafe.
    """
    from kquorum.cli.commands.features.features_client import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, parse_levels

    levels = parse_levels(feature or (), metadata)
    how = UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE
    _set(levels, how, dry_run, config, bootstrap_server, bootstrap_controller, timeout_ms, reason)
    _say_done(levels, dry_run=dry_run, as_json=as_json)


def _of_release(text: str) -> dict[str, int]:
    from kquorum.cli.commands.features.metadata_versions import parse_metadata_version
    from kquorum.metadata.features import default_features
    from kquorum.metadata.image.metadata_version import METADATA_VERSION

    level = parse_metadata_version(text)
    return {METADATA_VERSION: level, **default_features(level)}


def _set(
    levels: dict[str, int],
    upgrade_type: int,
    dry_run: bool,
    config: Path | None,
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    timeout_ms: int,
    reason: str | None,
) -> None:
    from kquorum.cli.clients.addresses import quorum_addresses
    from kquorum.cli.clients.cluster_client import ClusterClient, run_asking
    from kquorum.cli.commands.features.features_client import set_levels
    from kquorum.cli.failures import CliError, ExitStatus
    from kquorum.cli.output import tell_waiting

    if not levels:
        raise CliError(
            "which features? Name them with --metadata V or --feature NAME=LEVEL", status=ExitStatus.USAGE
        )
    addresses = quorum_addresses(config, bootstrap_controller, bootstrap_server)

    async def ask() -> None:
        async with ClusterClient(addresses, timeout_ms, tell=tell_waiting, reason=reason) as client:
            await set_levels(client, levels, upgrade_type, dry_run=dry_run)

    run_asking(ask())


def _look(
    config: Path | None, bootstrap_server: str | None, bootstrap_controller: str | None, timeout_ms: int
) -> "FeaturesView":
    from kquorum.cli.clients.addresses import DEFAULT_CONFIG, quorum_addresses
    from kquorum.cli.clients.cluster_client import run_asking
    from kquorum.cli.clients.security import remember_cluster
    from kquorum.cli.commands.features.features_client import look, node_names
    from kquorum.node.config.addresses import reachable
    from kquorum.node.config.load import load_config

    addresses = quorum_addresses(config, bootstrap_controller, bootstrap_server)
    brokers: dict[HostPort, int] = {}
    controllers: dict[HostPort, int] = {}
    if bootstrap_server is None and bootstrap_controller is None:
        cluster = load_config(config or DEFAULT_CONFIG)
        remember_cluster(cluster)
        for node in cluster.nodes:
            for found, listeners in (
                (controllers, node.controller_listeners[:1] if node.is_controller else ()),
                (brokers, node.broker_listeners[:1]),
            ):
                found.update({reachable(each.host, each.port): node.node_id for each in listeners})
    return run_asking(look(node_names(addresses, brokers, controllers), timeout_ms))


def _as_json(view: "FeaturesView") -> dict[str, object]:
    newest = view.newest
    return {
        "finalized_epoch": newest.finalized_epoch,
        "features": [
            {
                "name": name,
                "finalized": newest.finalized.get(name, 0),
                "supported": view.common_range(name),
                "nodes": {node.node: node.ranges.get(name) for node in view.nodes},
            }
            for name in view.names
        ],
        "silent": dict(view.silent),
    }


def _show(view: "FeaturesView") -> None:
    from kquorum.cli.output import print_table
    from kquorum.wire.wording import counted

    newest = view.newest
    rows = [
        (name, _level(name, newest.finalized.get(name, 0)), _range(view.common_range(name)))
        for name in view.names
    ]
    title = f"as of offset {newest.finalized_epoch}; {counted(len(view.nodes), 'node')} asked"
    print_table(title, ("feature", "in force", "all\ncan run"), rows)
    others = [
        (name, node, _range(found)) for name in view.names for node, found in view.differing(name).items()
    ]
    if others:
        print_table("where nodes differ", ("feature", "node", "can run"), others)


def _range(levels: tuple[int, int] | None) -> str:
    if levels is None:
        return "nothing in common"
    low, high = levels
    return f"{low} to {high}" if low < high else f"only {low}"


def _level(name: str, level: int) -> str:
    from kquorum.cli.commands.features.metadata_versions import name_of
    from kquorum.metadata.image.metadata_version import METADATA_VERSION

    return f"{level} ({name_of(level)})" if name == METADATA_VERSION and level else str(level)


def _say_done(levels: dict[str, int], *, dry_run: bool, as_json: bool) -> None:
    from kquorum.cli.output import print_json, say

    if as_json:
        print_json({"levels": levels, "dry_run": dry_run})
    elif not levels:
        say("every feature has that level, or a higher one, already")
    for name, level in ({} if as_json else levels).items():
        say(f"{name} {'could be set' if dry_run else 'was set'} to {level}")


COMMAND = Command(
    run=features_app,
    summary="Show, upgrade and downgrade the levels of features.",
    panel=Panel.ASK,
    place=5,
    examples={
        "describe": ("kquorum features describe -c quorum.toml",),
        "upgrade": (
            "kquorum features upgrade --metadata 4.1 --dry-run -c quorum.toml",
            "kquorum features upgrade -f group.version=1 -b localhost:9092",
        ),
        "downgrade": ("kquorum features downgrade -f share.version=0 -b localhost:9092",),
    },
)
