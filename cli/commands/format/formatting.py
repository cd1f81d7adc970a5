"""The work of `kquorum format`: write the data folders of nodes, as `kafka-storage format` does, and report them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import typer

from kquorum.cli.commands.features.metadata_versions import name_of
from kquorum.cli.commands.format.beginning import Beginning, check_against_config, check_metadata_version
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import complain, print_json, print_table
from kquorum.metadata.features import default_features
from kquorum.node.config.errors import Place
from kquorum.node.config.model import NodeConfig
from kquorum.node.formatting import data_folders, format_folder, new_uuid, now_ms
from kquorum.node.metadata_folder import first_voters, is_as_formatted
from kquorum.snapshots.bootstrap import bootstrap_records, write_bootstrap_checkpoint
from kquorum.storage.errors import NotFormatted
from kquorum.storage.meta_properties import (
    MetaProperties,
    check_meta_properties,
    read_meta_properties,
)
from kquorum.wire.schema import MetadataRecord
from kquorum.wire.uuids import uuid_from_text, uuid_to_text


def choose_cluster_id(asked: str | None, configured: str | None, *, is_whole: bool, path: Path) -> str:
    """The option, the config's, or a new one, which only a formatting of the whole cluster may make up: nodes that are
    formatted one by one, or from a file for each, would become clusters of their own."""
    from kquorum.node.config.errors import ConfigError, Problem
    from kquorum.node.config.values import check_cluster_id
    from kquorum.wire.uuids import uuid_to_text

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


METADATA_FOLDER = "__cluster_metadata-0"
STATIC_BEGINNING = Beginning()


@dataclass(frozen=True, slots=True)
class FormattedFolder:
    """What became of one folder; `is_new` is False where it had been formatted before. The folder of the metadata
    log has the directory id by which the quorum knows the node."""

    node_id: int
    folder: Path
    is_new: bool
    is_metadata: bool
    directory_id: UUID | None


def is_formatted(node: NodeConfig) -> bool:
    """Whether every folder of the node has a `meta.properties`, of whatever cluster."""
    return all(_properties(folder) is not None for folder in data_folders(node))


def format_nodes(
    nodes: Sequence[NodeConfig],
    *,
    cluster_id: str,
    metadata_version: int,
    ignore_formatted: bool,
    beginning: Beginning = STATIC_BEGINNING,
    features: Mapping[str, int] | None = None,
    more_records: Sequence[MetadataRecord] = (),
) -> tuple[FormattedFolder, ...]:
    """Format all folders of the nodes, or none of them when one cannot be.

    `features` are set beside those that are on by default at this metadata.version; `more_records` follow them into
    the log of a new cluster. Raises CliError for a folder that
    was formatted before (unless `ignore_formatted`) or is not empty, and WrongFolder for one of another cluster or
    node.
    """
    check_metadata_version(beginning, metadata_version)
    # All folders are checked before the first is written: all are formatted, or none.
    outcomes = [
        _planned(folder, node, cluster_id, beginning, ignore_formatted=ignore_formatted)
        for node in nodes
        for folder in data_folders(node)
    ]
    levels = default_features(metadata_version) | dict(features or {})
    records = (*bootstrap_records(metadata_version, levels), *more_records)
    checkpoint = write_bootstrap_checkpoint(records, now_ms())
    by_id = {node.node_id: node for node in nodes}
    for outcome in outcomes:
        if outcome.is_new:
            format_folder(
                outcome.folder,
                by_id[outcome.node_id],
                cluster_id=cluster_id,
                directory_id=outcome.directory_id,
                checkpoint=checkpoint,
                voters=beginning.voters,
                replaces_disk=beginning.replaces_disk,
            )
    return tuple(outcomes)


def _planned(
    folder: Path, node: NodeConfig, cluster_id: str, beginning: Beginning, *, ignore_formatted: bool
) -> FormattedFolder:
    is_new = _check(folder, node, cluster_id, ignore_formatted=ignore_formatted)
    is_metadata = folder == node.metadata_log_dir
    if is_new:
        given = beginning.directory_id_of(node.node_id) if is_metadata else None
        return FormattedFolder(node.node_id, folder, True, is_metadata, given or new_uuid())
    return FormattedFolder(
        node.node_id, folder, False, is_metadata, read_meta_properties(folder).directory_id
    )


def _check(folder: Path, node: NodeConfig, cluster_id: str, *, ignore_formatted: bool) -> bool:
    """Whether the folder is still to be formatted."""
    properties = _properties(folder)
    if properties is None:
        if (folder / METADATA_FOLDER).exists() and not is_as_formatted(folder):
            raise CliError(
                f"{folder} has a metadata log but no meta.properties: it is damaged or not a folder of this "
                "program; move it away before you format it",
                status=ExitStatus.FOLDER_REFUSED,
            )
        return True
    check_meta_properties(folder, properties, cluster_id=cluster_id, node_id=node.node_id)
    if not ignore_formatted:
        raise CliError(
            f"{folder} is formatted already (node {node.node_id} of cluster {cluster_id}); "
            "--ignore-formatted leaves such folders as they are",
            status=ExitStatus.FOLDER_REFUSED,
        )
    return False


def _properties(folder: Path) -> MetaProperties | None:
    try:
        return read_meta_properties(folder)
    except NotFormatted:
        return None


@dataclass(frozen=True, slots=True)
class Formatted:
    """What was asked for and what came of it."""

    outcomes: Sequence[FormattedFolder]
    cluster_id: str
    metadata_version: int
    beginning: Beginning
    nodes: Sequence[NodeConfig]

    @property
    def voters_written(self) -> tuple[int, ...] | None:
        """The first voters, where they were written into a folder now."""
        voters = self.beginning.voters
        is_written = any(outcome.is_new and outcome.is_metadata for outcome in self.outcomes)
        return voters.ids if voters is not None and is_written else None

    def differing(self) -> list[str]:
        """Controllers whose folder was left as it was and has other first voters than those asked for now."""
        asked = self.beginning.voters
        if asked is None:
            return []
        controllers = {node.node_id for node in self.nodes if node.is_controller}
        lines = []
        for outcome in self.outcomes:
            if outcome.is_new or not outcome.is_metadata or outcome.node_id not in controllers:
                continue
            found = first_voters(outcome.folder)
            if found is None or found.keys != asked.keys:
                has = "no first voters" if found is None else f"the first voters {_named(found.ids)}"
                lines.append(
                    f"node {outcome.node_id} was left as it was and has {has}: those asked for now "
                    f"({_named(asked.ids)}) were not written"
                )
        return lines


def check_voters(beginning: Beginning, nodes: Sequence[NodeConfig], known: Sequence[NodeConfig]) -> None:
    """Raises CliError where the listed voters contradict the config; warns where they may."""
    assert beginning.voters is not None
    for warning in check_against_config(beginning.voters, nodes, known):
        complain(warning, style="yellow", label="warning")


def warn_of_cluster_id(cluster_id: str) -> None:
    """Kafka takes any text, but its tools make such ids only, and a made-up one may be another cluster's."""
    try:
        uuid_from_text(cluster_id)
    except ValueError:
        complain(
            f"cluster.id {cluster_id} is not 16 bytes in url-safe base64, as `kquorum random-uuid` and Kafka's tools "
            "make one: make sure that no other cluster has it",
            style="yellow",
            label="warning",
        )


def show_formatted(formatted: Formatted, *, as_json: bool) -> None:
    for line in formatted.differing():
        complain(line, style="yellow", label="warning")
    ids = [None if it.directory_id is None else uuid_to_text(it.directory_id) for it in formatted.outcomes]
    written = formatted.voters_written
    if as_json:
        folders = [
            {
                "node_id": item.node_id,
                "folder": str(item.folder),
                "formatted": item.is_new,
                "directory_id": directory_id,
            }
            for item, directory_id in zip(formatted.outcomes, ids, strict=True)
        ]
        levels = {
            "metadata_version": formatted.metadata_version,
            "kraft_version": formatted.beginning.kraft_version,
        }
        voters = None if written is None else list(written)
        print_json({"cluster_id": formatted.cluster_id, **levels, "voters": voters, "folders": folders})
        return
    rows = [
        (item.node_id, directory_id, "formatted" if item.is_new else "left as it was", str(item.folder))
        for item, directory_id in zip(formatted.outcomes, ids, strict=True)
    ]
    print_table(_title(formatted), ("#node", "directory id", "outcome", "folder"), rows)


def _title(formatted: Formatted) -> str:
    """Only what was written."""
    if not any(outcome.is_new for outcome in formatted.outcomes):
        return f"cluster {formatted.cluster_id}: nothing was written"
    level = formatted.metadata_version
    written = formatted.voters_written
    voters = "" if written is None else f", first voters {_named(written)}"
    return f"cluster {formatted.cluster_id}, metadata.version {level} ({name_of(level)}){voters}"


def _named(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids))
