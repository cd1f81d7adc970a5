"""`kquorum format`: prepare the data folders of nodes."""

from pathlib import Path
from typing import Annotated

import typer

from cli.commands.options import AsJson, ConfigPath, DataDir
from cli.config.errors import Place


def format_command(
    config: ConfigPath = Path("quorum.toml"),
    node: Annotated[
        list[int] | None,
        typer.Option("--node", help="Only this node; may be repeated. All nodes without it."),
    ] = None,
    cluster_id: Annotated[
        str | None, typer.Option("--cluster-id", help="The cluster's id; the config's cluster.id without it.")
    ] = None,
    metadata_version: Annotated[
        str | None,
        typer.Option("--metadata-version", help="A level (25), its name (4.0-IV3) or a release (4.0)."),
    ] = None,
    ignore_formatted: Annotated[
        bool, typer.Option("--ignore-formatted", help="Leave folders as they are that were formatted before.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Prepare the data folders of nodes: whose folder it is, and the records a new cluster starts with.

    Nothing is written unless everything asked for can be formatted.
    """
    from cli.config.load import load_config
    from cli.formatting import format_nodes
    from cli.metadata_versions import LATEST, parse_metadata_version
    from cli.output import print_json, print_table

    cluster = load_config(config, data_dir=data_dir)
    nodes = [cluster.node(node_id) for node_id in dict.fromkeys(node)] if node else list(cluster.nodes)
    chosen_id = choose_cluster_id(
        cluster_id, cluster.cluster_id, is_whole=len(nodes) == len(cluster.nodes), path=config
    )
    level = parse_metadata_version(metadata_version) if metadata_version else LATEST
    outcomes = format_nodes(
        nodes, cluster_id=chosen_id, metadata_version=level, ignore_formatted=ignore_formatted
    )
    rows = [
        (item.node_id, str(item.folder), "formatted" if item.is_new else "left as it was")
        for item in outcomes
    ]
    if as_json:
        folders = [
            {"node_id": item.node_id, "folder": str(item.folder), "formatted": item.is_new}
            for item in outcomes
        ]
        print_json({"cluster_id": chosen_id, "metadata_version": level, "folders": folders})
    else:
        print_table(f"cluster {chosen_id}, metadata.version {level}", ("#node", "folder", "outcome"), rows)


def choose_cluster_id(asked: str | None, configured: str | None, *, is_whole: bool, path: Path) -> str:
    """The option, the config's, or a new one, which only a formatting of the whole cluster may make up."""
    from cli.config.errors import ConfigError, Problem
    from cli.formatting import new_uuid
    from wire.uuids import uuid_to_text

    if asked and configured and asked != configured:
        message = f"cluster.id is {configured}, but --cluster-id is {asked}: leave one of them out"
        raise ConfigError([Problem(message, Place(path))])
    if asked or configured:
        return asked or configured or ""
    if not is_whole:
        message = (
            "there is no cluster.id: nodes formatted one by one need it in the config, or as --cluster-id"
        )
        raise ConfigError([Problem(message, Place(path))])
    return uuid_to_text(new_uuid())
