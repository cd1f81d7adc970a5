"""A data folder as a node expects it at its first start: `meta.properties`, the bootstrap checkpoint, and the folder of
the metadata log."""

import secrets
import time
from pathlib import Path
from uuid import UUID

from kquorum.node.config.model import NodeConfig
from kquorum.node.metadata_folder import make_metadata_folder, remove_metadata_folder
from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.raft.voters import VoterSet
from kquorum.snapshots.naming import BOOTSTRAP_CHECKPOINT_NAME
from kquorum.storage.durable_files import replace_file, sync_folder
from kquorum.storage.folder_permissions import make_private_folder
from kquorum.storage.meta_properties import MetaProperties, write_meta_properties
from kquorum.wire.uuids import uuid_to_text


def new_uuid() -> UUID:
    """Random, and with a text that does not begin with `-`, which a shell would take for an option (as Kafka's)."""
    while True:
        candidate = UUID(bytes=secrets.token_bytes(16))
        if not uuid_to_text(candidate).startswith("-"):
            return candidate


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def data_folders(node: NodeConfig) -> tuple[Path, ...]:
    """The log folders and the metadata folder, each once, the metadata folder first."""
    return tuple(dict.fromkeys((node.metadata_log_dir, *node.log_dirs)))


def format_folder(
    folder: Path,
    node: NodeConfig,
    *,
    cluster_id: str,
    directory_id: UUID | None,
    checkpoint: bytes,
    voters: VoterSet | None = None,
    replaces_disk: bool = False,
) -> None:
    """`folder` is one of the node's, not formatted yet. `checkpoint` holds the first records of the cluster, `voters`
    are the first of a dynamic quorum, and `replaces_disk` is as in `make_metadata_folder`.

    `meta.properties` comes last: a folder counts as formatted only when everything is in it.
    """
    if node.kquorum_allow_exposed_log_dirs:
        folder.mkdir(parents=True, exist_ok=True)
    else:
        make_private_folder(folder)
    # The new folder's own name must survive a power cut as well, or the node's votes in it would be gone.
    sync_folder(folder.parent)
    replace_file(folder / BOOTSTRAP_CHECKPOINT_NAME, checkpoint)
    # Left by a formatting that was interrupted; the caller has made sure that nothing was written to it since.
    if (folder / FOLDER_NAME).exists():
        remove_metadata_folder(folder)
    if folder == node.metadata_log_dir and (node.is_controller or voters is not None):
        static_ids = tuple(voter.id for voter in node.controller_quorum_voters)
        make_metadata_folder(
            folder, static_ids=static_ids, voters=voters, now_ms=now_ms(), replaces_disk=replaces_disk
        )
    properties = MetaProperties(cluster_id=cluster_id, node_id=node.node_id, directory_id=directory_id)
    write_meta_properties(folder, properties, now_ms())
