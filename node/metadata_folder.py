"""The folder of the metadata log as formatting leaves it: an election state of epoch 0, and the first voters if any.

Kafka's tool makes no such folder for a static quorum, so that one without election state and log may as well be new.
Ours always has one, and a mark beside it: what is missing later was lost, and with it what the node has voted and
acknowledged. Such a voter must not help to elect a leader without what was committed (rule P3).
"""

import shutil
from pathlib import Path

from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.raft.adapters.quorum_checkpoint import read_quorum_checkpoint, write_quorum_checkpoint
from kquorum.raft.adapters.quorum_state_file import FILE_NAME as QUORUM_STATE
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.adapters.replacement_mark import FILE_NAME as REPLACEMENT_MARK
from kquorum.raft.adapters.snapshot_files import list_snapshots, problem_of, snapshot_path
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import VotersAt, VoterSet
from kquorum.snapshots.naming import BOOTSTRAP_SNAPSHOT_ID
from kquorum.storage.corruption_marker import FILE_NAME as DAMAGE_NOTE
from kquorum.storage.durable_files import list_names, rename_durably, replace_file, sync_folder
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.storage.recovery import segment_paths
from kquorum.storage.recovery_point import read_recovery_point

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


def prepare_metadata_folder(metadata_dir: Path, static_ids: tuple[int, ...], fs: FileSystem = POSIX) -> bool:
    """Make the folder ready for a start; answers whether this node has lost what it had voted or acknowledged.

    A folder that Kafka's tool formatted is given what ours would have. One that has lost its state is left without an
    election state, so that it is known for lost until it has caught up, however often it is stopped before.
    """
    folder = metadata_dir / FOLDER_NAME
    is_lost = has_lost_its_state(metadata_dir, fs)
    if is_lost and fs.exists(folder / QUORUM_STATE):
        rename_durably(folder / QUORUM_STATE, folder / f"{QUORUM_STATE}.lost", fs)
    if not fs.exists(folder):
        make_metadata_folder(metadata_dir, static_ids=static_ids, voters=None, replaces_disk=is_lost)
    elif not is_lost and not fs.exists(folder / QUORUM_STATE):
        QuorumStateFile(folder, lambda: (), lambda: 1, fs).write(QuorumState())
    _mark(metadata_dir, fs)
    return is_lost


def has_lost_its_state(metadata_dir: Path, fs: FileSystem = POSIX) -> bool:
    """Whether something is missing that was there before: the folder, the election state, or the segments of the log.

    A folder with the first voters alone, or none at all, is how Kafka leaves a new controller; but not
    where the mark says that one was begun. A log without election state is what a replica has that lost it, is on its
    way back, and was stopped meanwhile.
    """
    folder = metadata_dir / FOLDER_NAME
    was_begun = fs.exists(metadata_dir / MARK)
    if not fs.exists(folder):
        return was_begun
    if not fs.exists(folder / QUORUM_STATE):
        is_as_kafka_leaves_it = list_names(folder, fs) == [BOOTSTRAP_SNAPSHOT_ID.file_name]
        return was_begun or not is_as_kafka_leaves_it
    state = QuorumStateFile(folder, lambda: (), lambda: 0, fs).read()
    has_lived = state is not None and state.leader_epoch > 0
    return has_lived and not segment_paths(folder, fs) and not _is_being_emptied(folder, fs)


def _is_being_emptied(folder: Path, fs: FileSystem) -> bool:
    """Whether a node stopped while it had dropped the segments itself: the log knows what to do about it.

    For a snapshot, it first leaves a mark, and takes back its recovery point to 0, where it stays until there is a
    segment again (earlier versions left no mark). Damaged segments it notes before they go aside.
    """
    if fs.exists(folder / DAMAGE_NOTE) or fs.exists(folder / REPLACEMENT_MARK):
        return True
    if read_recovery_point(folder, fs) != 0:
        return False
    snapshots = [each for each in list_snapshots(folder, fs) if each.offset > 0]
    return any(problem_of(snapshot_path(folder, each), each.epoch, fs) is None for each in snapshots)


def _mark(metadata_dir: Path, fs: FileSystem = POSIX) -> None:
    """Outside the folder of the log, so that it outlives it; Kafka passes over files that it does not know here."""
    if not fs.exists(metadata_dir / MARK):
        replace_file(metadata_dir / MARK, b"The metadata log of this node was begun here.\n", fs)
