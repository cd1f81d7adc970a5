"""`kquorum format`: prepare the data folders of nodes."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.commands.options import AsJson, ConfigPath, DataDir
from node.config.errors import Place

_BEGIN: dict[str, Any] = {"rich_help_panel": "How a dynamic quorum begins (one of them)"}


Nodes = Annotated[
    list[int] | None,
    typer.Option("--node", help="Only this node; may be repeated. All nodes without it."),
]
ClusterId = Annotated[
    str | None,
    typer.Option("--cluster-id", "-t", help="The cluster's id; the config's cluster.id without it."),
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
        help="This static voter had another disk before: it neither votes nor stands until it has caught up.",
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
        help="A user from the beginning: SCRAM-SHA-512=[name=N,password=P], with iterations=... and salt=... if you "
        "like; may be repeated. The same for every node.",
    ),
]
IgnoreFormatted = Annotated[
    bool,
    typer.Option("--ignore-formatted", "-g", help="Leave folders as they are that were formatted before."),
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
    from cli.commands.format_report import Formatted, check_voters, show_formatted, warn_of_cluster_id
    from cli.feature_options import parse_features
    from cli.formatting import format_nodes, new_uuid
    from cli.quorum_beginning import Wishes, choose_beginning
    from cli.scram_options import parse_scram_users
    from node.config.load import load_config
    from storage.folder_permissions import keep_files_private

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


def choose_cluster_id(asked: str | None, configured: str | None, *, is_whole: bool, path: Path) -> str:
    """The option, the config's, or a new one, which only a formatting of the whole cluster may make up: nodes that are
    formatted one by one, or from a file for each, would become clusters of their own."""
    from cli.formatting import new_uuid
    from node.config.errors import ConfigError, Problem
    from node.config.values import check_cluster_id
    from wire.uuids import uuid_to_text

    if asked and configured and asked != configured:
        message = f"cluster.id is {configured}, but --cluster-id is {asked}: leave one of them out"
        raise ConfigError([Problem(message, Place(path))])
    if asked is not None:
        try:
            check_cluster_id(asked)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--cluster-id") from None
    if asked or configured:
        return asked or configured or ""
    if is_whole:
        return uuid_to_text(new_uuid())
    one_file = path.suffix == ".properties"
    which = "a single .properties file" if one_file else "nodes formatted one by one"
    message = (
        f"there is no cluster.id, and {which} cannot make one up: the other nodes must have the same. Give "
        "--cluster-id ID (`kquorum random-uuid` makes one), or cluster.id in the config"
        + ("; only --standalone begins a cluster by itself" if one_file else "")
    )
    raise ConfigError([Problem(message, Place(path))])
