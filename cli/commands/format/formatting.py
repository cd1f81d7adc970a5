"""Preparing the data folders of nodes, as `kafka-storage format` does."""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.quorum_beginning import Beginning, check_metadata_version
from metadata.features import default_features
from node.config.model import NodeConfig
from node.metadata_folder import is_as_formatted, make_metadata_folder, remove_metadata_folder
from snapshots.bootstrap import bootstrap_records, write_bootstrap_checkpoint
from storage.durable_files import replace_file, sync_folder
from storage.errors import NotFormatted
from storage.folder_permissions import make_private_folder
from storage.meta_properties import (
    MetaProperties,
    check_meta_properties,
    read_meta_properties,
    write_meta_properties,
)
from wire.schema import MetadataRecord
from wire.uuids import uuid_to_text

CHECKPOINT = "bootstrap.checkpoint"
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


def new_uuid() -> UUID:
    """Random, and with a text that does not begin with `-`, which a shell would take for an option (as Kafka's)."""
    while True:
        candidate = UUID(bytes=secrets.token_bytes(16))
        if not uuid_to_text(candidate).startswith("-"):
            return candidate


def data_folders(node: NodeConfig) -> tuple[Path, ...]:
    """The log folders and the metadata folder, each once, the metadata folder first."""
    return tuple(dict.fromkeys((node.metadata_log_dir, *node.log_dirs)))


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
            _format_folder(outcome, by_id[outcome.node_id], cluster_id, checkpoint, beginning)
    return tuple(outcomes)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


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


def _format_folder(
    outcome: FormattedFolder, node: NodeConfig, cluster_id: str, checkpoint: bytes, beginning: Beginning
) -> None:
    """`meta.properties` comes last: a folder counts as formatted only when everything is in it."""
    folder = outcome.folder
    if node.kquorum_allow_exposed_log_dirs:
        folder.mkdir(parents=True, exist_ok=True)
    else:
        make_private_folder(folder)
    sync_folder(folder.parent)
    replace_file(folder / CHECKPOINT, checkpoint)
    if (folder / METADATA_FOLDER).exists():
        remove_metadata_folder(folder)
    if outcome.is_metadata and (node.is_controller or beginning.voters is not None):
        static_ids = tuple(voter.id for voter in node.controller_quorum_voters)
        make_metadata_folder(
            folder,
            static_ids=static_ids,
            voters=beginning.voters,
            now_ms=now_ms(),
            replaces_disk=beginning.replaces_disk,
        )
    properties = MetaProperties(
        cluster_id=cluster_id, node_id=outcome.node_id, directory_id=outcome.directory_id
    )
    write_meta_properties(folder, properties, now_ms())
