"""The folder of the metadata log as formatting leaves it: an election state of epoch 0, and the first voters if any.

Kafka's tool makes no such folder for a static quorum, so that one without election state and log may as well be new.
Ours always has one, and a mark beside it: what is missing later was lost, and with it what the node has voted and
acknowledged. Such a voter must not help to elect a leader without what was committed (demands D5, D20).
"""

import shutil
from pathlib import Path

from raft.adapters.durable_files import replace_file, sync_folder
from raft.adapters.file_log import FOLDER_NAME
from raft.adapters.quorum_checkpoint import read_quorum_checkpoint, write_quorum_checkpoint
from raft.adapters.quorum_state_file import FILE_NAME as QUORUM_STATE
from raft.adapters.quorum_state_file import QuorumStateFile
from raft.quorum_records import VotersAt
from raft.ready import QuorumState
from raft.voters import VoterSet
from snapshots.naming import BOOTSTRAP_SNAPSHOT_ID

MARK = "kquorum-metadata-log"
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
    _mark(metadata_dir)


def first_voters(metadata_dir: Path) -> VoterSet | None:
    """The voters that formatting wrote; None in a folder of a static quorum, or of a node to be added later."""
    records = read_quorum_checkpoint(metadata_dir / FOLDER_NAME)
    return next((record.voters for record in records if isinstance(record, VotersAt)), None)


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


def prepare_metadata_folder(metadata_dir: Path, static_ids: tuple[int, ...]) -> bool:
    """Make the folder ready for a start; answers whether this node has lost what it had voted or acknowledged.

    A folder that Kafka's tool formatted is given what ours would have. One that has lost its state is left without an
    election state, so that it is known for lost until it has caught up, however often it is stopped before.
    """
    folder = metadata_dir / FOLDER_NAME
    is_lost = has_lost_its_state(metadata_dir)
    if is_lost and (folder / QUORUM_STATE).exists():
        (folder / QUORUM_STATE).rename(folder / f"{QUORUM_STATE}.lost")
        sync_folder(folder)
    if not folder.exists():
        make_metadata_folder(metadata_dir, static_ids=static_ids, voters=None, replaces_disk=is_lost)
    elif not is_lost and not (folder / QUORUM_STATE).exists():
        QuorumStateFile(folder, lambda: (), lambda: 1).write(QuorumState())
    _mark(metadata_dir)
    return is_lost


def has_lost_its_state(metadata_dir: Path) -> bool:
    """Whether something is missing that was there before: the folder, the election state, or the segments of the log.

    A folder with the first voters alone, or none at all, is how Kafka leaves a new controller; but not
    where the mark says that one was begun. A log without election state is what a replica has that lost it, is on its
    way back, and was stopped meanwhile.
    """
    folder = metadata_dir / FOLDER_NAME
    was_begun = (metadata_dir / MARK).exists()
    if not folder.exists():
        return was_begun
    if not (folder / QUORUM_STATE).exists():
        is_as_kafka_leaves_it = {path.name for path in folder.iterdir()} == {BOOTSTRAP_SNAPSHOT_ID.file_name}
        return was_begun or not is_as_kafka_leaves_it
    state = QuorumStateFile(folder, lambda: (), lambda: 0).read()
    has_lived = state is not None and state.leader_epoch > 0
    return has_lived and not any(folder.glob("*.log"))


def _mark(metadata_dir: Path) -> None:
    """Outside the folder of the log, so that it outlives it; Kafka passes over files that it does not know here."""
    if not (metadata_dir / MARK).exists():
        replace_file(metadata_dir / MARK, b"The metadata log of this node was begun here.\n")
