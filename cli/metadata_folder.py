"""The folder of the metadata log as formatting leaves it: an election state of epoch 0, and the first voters if any.

Kafka's tool makes no such folder for a static quorum, so that one without election state and log may as well be new.
Ours always has one: a folder of ours in which both are missing has lost them, and with them what the node has voted
and acknowledged (demands D5, D20: such a voter must not help to elect a leader without what was committed).
"""

import shutil
from pathlib import Path

from raft.adapters.durable_files import sync_folder
from raft.adapters.file_log import FOLDER_NAME
from raft.adapters.quorum_checkpoint import write_quorum_checkpoint
from raft.adapters.quorum_state_file import FILE_NAME as QUORUM_STATE
from raft.adapters.quorum_state_file import QuorumStateFile
from raft.ready import QuorumState
from raft.voters import VoterSet
from snapshots.naming import BOOTSTRAP_SNAPSHOT_ID

_BEING_MADE = f"{FOLDER_NAME}.new"


def make_metadata_folder(
    metadata_dir: Path,
    *,
    static_ids: tuple[int, ...],
    voters: VoterSet | None,
    now_ms: int = 0,
    replaces_disk: bool = False,
) -> None:
    """Whole or not at all: it is made under another name. `voters` are a dynamic quorum's first, written at `now_ms`.

    One that replaces a disk gets no election state: what the node had voted and acknowledged is gone.

    Raises StorageFailed or FsyncFailed.
    """
    making = metadata_dir / _BEING_MADE
    if making.exists():
        shutil.rmtree(making)
    making.mkdir()
    if voters is not None:
        write_quorum_checkpoint(making, voters, now_ms)
    kraft_version = 0 if voters is None else 1
    if not replaces_disk:
        QuorumStateFile(making, lambda: static_ids, lambda: kraft_version).write(QuorumState())
    making.rename(metadata_dir / FOLDER_NAME)
    sync_folder(metadata_dir)


def is_as_formatted(metadata_dir: Path) -> bool:
    """Whether the folder holds nothing but what formatting writes: no record was ever in it."""
    folder = metadata_dir / FOLDER_NAME
    names = {path.name for path in folder.iterdir()}
    if not names or not names <= {QUORUM_STATE, BOOTSTRAP_SNAPSHOT_ID.file_name}:
        return False
    state = QuorumStateFile(folder, lambda: (), lambda: 0).read()
    return state is None or state == QuorumState()


def remove_metadata_folder(metadata_dir: Path) -> None:
    """For a folder whose formatting was interrupted."""
    shutil.rmtree(metadata_dir / FOLDER_NAME)
    sync_folder(metadata_dir)


def has_lost_its_state(metadata_dir: Path) -> bool:
    """Whether the folder of the metadata log is there without the election state that must be in it.

    Only the first voters beside nothing else is how Kafka's tool leaves a controller of a dynamic quorum. A log without
    election state is what a replica has that lost it, is on its way back, and was stopped meanwhile.
    """
    folder = metadata_dir / FOLDER_NAME
    if not folder.exists() or (folder / QUORUM_STATE).exists():
        return False
    return {path.name for path in folder.iterdir()} != {BOOTSTRAP_SNAPSHOT_ID.file_name}
