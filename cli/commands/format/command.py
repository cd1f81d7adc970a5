"""`kquorum format`: prepare the data folders of nodes."""

from pathlib import Path
from typing import Annotated, Any

import typer

from kquorum.cli.command_tree import Command, Panel
from kquorum.cli.options import AsJson, ConfigPath, DataDir

_BEGIN: dict[str, Any] = {"rich_help_panel": "How a dynamic quorum begins (one of them)"}
Nodes = Annotated[
    list[int] | None,
    typer.Option("--node", help="Format only this node; may be repeated. The default is all nodes."),
]
ClusterId = Annotated[
    str | None,
    typer.Option("--cluster-id", "-t", help="The cluster's id; the default is the config's cluster.id."),
]
Standalone = Annotated[
    bool, typer.Option("--standalone", "-s", help="This controller begins a dynamic quorum, alone.", **_BEGIN)
]
InitialControllers = Annotated[
    str | None,
    typer.Option(
        "--initial-controllers",
        "-I",
        metavar="LIST",
        help="These controllers begin a dynamic quorum: id@host:port:directoryId, comma-separated; the same for every "
        "node.",
        **_BEGIN,
    ),
]
NoInitialControllers = Annotated[
    bool,
    typer.Option(
        "--no-initial-controllers", "-N", help="This node is added to a dynamic quorum later.", **_BEGIN
    ),
]
ReplacedDisk = Annotated[
    bool,
    typer.Option(
        "--replaced-disk",
        help="This static voter has a new disk: it does not vote or become a candidate until it has caught up.",
    ),
]
ReleaseVersion = Annotated[
    str | None,
    typer.Option(
        "--release-version",
        "-r",
        metavar="V",
        help="The metadata.version: a release (4.0), a name (4.0-IV3) or a level (25).",
    ),
]
MetadataVersion = Annotated[str | None, typer.Option("--metadata-version", hidden=True)]
Features = Annotated[
    list[str] | None,
    typer.Option("--feature", "-f", metavar="NAME=LEVEL", help="The level of a feature; may be repeated."),
]
AddScram = Annotated[
    list[str] | None,
    typer.Option(
        "--add-scram",
        "-S",
        metavar="LOGIN",
        help="A user that exists from the start: SCRAM-SHA-512=[name=N,password=P], optionally with iterations=... and "
        "salt=...; may be repeated. The same for every node.",
    ),
]
IgnoreFormatted = Annotated[
    bool,
    typer.Option("--ignore-formatted", "-g", help="Leave formatted folders unchanged."),
]


def format_command(
    config: ConfigPath = Path("quorum.toml"),
    node: Nodes = None,
    cluster_id: ClusterId = None,
    standalone: Standalone = False,
    initial_controllers: InitialControllers = None,
    no_initial_controllers: NoInitialControllers = False,
    replaced_disk: ReplacedDisk = False,
    release_version: ReleaseVersion = None,
    metadata_version: MetadataVersion = None,
    feature: Features = None,
    add_scram: AddScram = None,
    ignore_formatted: IgnoreFormatted = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Prepare the data folders of nodes: whose folder it is, and the records a new cluster starts with.

    A config with controller.quorum.voters (or a .toml whose controllers stand for them) makes a static quorum. One
    with controller.quorum.bootstrap.servers makes a dynamic quorum, whose voters can be changed while it runs: say
    with one of three options how it begins. Nothing is written unless everything asked for can be formatted.
    """
    from kquorum.cli.commands.format.beginning import Wishes, choose_beginning
    from kquorum.cli.commands.format.formatting import (
        Formatted,
        check_voters,
        choose_cluster_id,
        format_nodes,
        show_formatted,
        warn_of_cluster_id,
    )
    from kquorum.cli.commands.format.initial_records import parse_features, parse_scram_users
    from kquorum.node.config.load import load_config
    from kquorum.node.formatting import new_uuid
    from kquorum.storage.folder_permissions import keep_files_private

    keep_files_private()
    cluster = load_config(config, data_dir=data_dir)
    nodes = [cluster.node(node_id) for node_id in dict.fromkeys(node)] if node else list(cluster.nodes)
    asked = parse_features(feature or (), release_version or metadata_version)
    users = parse_scram_users(add_scram or (), asked.metadata_version)
    wishes = Wishes(
        standalone=standalone,
        initial_controllers=initial_controllers,
        no_initial_controllers=no_initial_controllers,
        kraft_version=asked.kraft_version,
        replaced_disk=replaced_disk,
    )
    beginning = choose_beginning(nodes, wishes, new_uuid())
    is_whole = len(nodes) == len(cluster.nodes) and (standalone or config.suffix != ".properties")
    chosen_id = choose_cluster_id(cluster_id, cluster.cluster_id, is_whole=is_whole, path=config)
    if initial_controllers is not None:
        check_voters(beginning, nodes, cluster.nodes)
    warn_of_cluster_id(chosen_id)
    outcomes = format_nodes(
        nodes,
        cluster_id=chosen_id,
        metadata_version=asked.metadata_version,
        ignore_formatted=ignore_formatted,
        beginning=beginning,
        features=asked.others,
        more_records=users,
    )
    show_formatted(Formatted(outcomes, chosen_id, asked.metadata_version, beginning, nodes), as_json=as_json)


COMMAND = Command(
    run=format_command,
    summary="Prepare the data folders of nodes.",
    panel=Panel.RUN,
    place=1,
    examples={
        "": (
            "kquorum format -c quorum.toml",
            "kquorum format -c quorum.toml --node 1 --standalone",
            "kquorum format -c quorum.toml --node 2 --no-initial-controllers",
            "kquorum format -c server.properties -t $(kquorum random-uuid) -s",
            "kquorum format ... -S 'SCRAM-SHA-512=[name=admin,password=...]'",
            "kquorum format ... -I 1@host1:9093:DIRECTORYID,2@host2:9093:DIRECTORYID",
        ),
    },
)
