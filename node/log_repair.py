"""A node that starts with damaged files sets the damage aside, logs it, and fetches the lost data from the quorum.

The log: opened as far as it is sound, the rest is set aside and fetched again (`raft.recovery`). The election state:
set aside, and the node continues like one that has lost it (`raft.recovery`), so that it never votes twice.
Both need other voters; a sole voter with a damaged log is refused, because no other node has what it lost.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from kquorum.node.config.model import NodeConfig
from kquorum.node.logs import log as notable_log
from kquorum.node.metadata_folder import prepare_metadata_folder
from kquorum.raft.adapters.errors import RESTORE_THE_ONLY_COPY, QuorumStateDamaged
from kquorum.raft.adapters.file_log import FOLDER_NAME, FileLog
from kquorum.raft.adapters.quorum_state_file import FILE_NAME as QUORUM_STATE
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.ports import LogSummary
from kquorum.raft.voters import ReplicaKey, VoterHistory, VoterSet
from kquorum.storage.damage_aside import DAMAGED_SUFFIX
from kquorum.storage.durable_files import rename_durably
from kquorum.storage.errors import DamagedRange, LogCorrupted
from kquorum.storage.file_system import POSIX, FileSystem

log = logging.getLogger("node.log_repair")

_UNTIL_TRUSTED = (
    "It will neither vote nor stand for election before it has fetched what the cluster committed and every other "
    "voter has named the same leader. If no leader can be elected without it, restore the folder as it was when the "
    "node last stopped"
)


class OnDisk(Protocol):
    """Runs a job in the disk's thread and the rest in the loop; `RaftDriver`'s."""

    def __call__(self, job: Callable[[], None], then: Callable[[None], None]) -> None: ...


def look_at_folder(config: NodeConfig, fs: FileSystem = POSIX) -> bool:
    """Whether a voter's state is gone, before its log is opened. What is damaged is kept beside it.

    Raises QuorumStateDamaged for a file that may not be read, StorageFailed or FsyncFailed.
    """
    folder = config.metadata_log_dir / FOLDER_NAME
    reason = _set_damaged_state_aside(folder, fs)
    if not config.is_controller:
        if reason is not None:
            log.warning("%s; a broker does not vote, so it begins a new one", reason)
        return False
    static_ids = tuple(voter.id for voter in config.controller_quorum_voters)
    is_lost = prepare_metadata_folder(config.metadata_log_dir, static_ids, fs)
    if reason is not None:
        log.warning("%s, so what this node has voted is not known any more. %s", reason, _UNTIL_TRUSTED)
    elif is_lost:
        log.warning(
            "%s lacks what was in it: what this node has voted and acknowledged is not known any more (a new or "
            "emptied disk). %s",
            folder,
            _UNTIL_TRUSTED,
        )
    return is_lost


def _set_damaged_state_aside(folder: Path, fs: FileSystem) -> str | None:
    """Answers what is wrong with it, if anything. A file that cannot be read at all may be sound: that is raised."""
    try:
        QuorumStateFile(folder, (), fs=fs).read()
    except QuorumStateDamaged as error:
        if isinstance(error.__cause__, OSError):
            raise
        return _set_state_aside(folder, error.reason, fs)
    return None


def _set_state_aside(folder: Path, reason: str, fs: FileSystem) -> str:
    path = folder / QUORUM_STATE
    kept = path.with_name(QUORUM_STATE + DAMAGED_SUFFIX)
    rename_durably(path, kept, fs)
    return f"{path} is damaged: {reason}; it is kept as {kept.name}"


class LogRepair:
    """What is wrong with a node's log and election state together, once the log is open, and its end.

    `damaged_until` and `has_lost_its_state` go into the `QuorumConfig`.
    """

    def __init__(
        self,
        metadata_log: FileLog,
        static_voters: VoterSet,
        config: NodeConfig,
        key: ReplicaKey,
        *,
        is_lost: bool,
        with_space: Callable[[Callable[[], None]], None] = lambda write: write(),
        fs: FileSystem = POSIX,
    ) -> None:
        """Sets the damage aside, so that the log takes appends again. `is_lost` is what `look_at_folder` said;
        `with_space` finds room for what a full disk has none for.

        Raises LogCorrupted when no other node has what was lost (the log is closed then), StorageFailed or FsyncFailed.
        """
        self._log = metadata_log
        self._with_space = with_space
        self._damage = metadata_log.damage
        summary = metadata_log.summary()
        voters = VoterHistory.of(static_voters, summary.quorum_records).voters
        is_alone = config.is_controller and voters.contains(key) and len(voters) == 1
        if self._damage is not None:
            self._begin(self._damage, is_alone=is_alone)
        self.has_lost_its_state = is_lost
        if config.is_controller and not is_alone and not is_lost:
            folder = config.metadata_log_dir / FOLDER_NAME
            self.has_lost_its_state = _is_state_behind(folder, summary, fs)

    @property
    def damaged_until(self) -> int | None:
        return None if self._damage is None else self._damage.end_offset

    def _begin(self, damage: DamagedRange, *, is_alone: bool) -> None:
        if is_alone:
            self._log.close()
            raise LogCorrupted(damage, RESTORE_THE_ONLY_COPY)
        log.warning(
            "%s. All from there on, sound records too, is set aside with the suffix %s, and the log is fetched again "
            "from offset %d on; until it is whole this node does not stand, and votes only for a candidate that cannot "
            "lack what it has lost",
            damage,
            DAMAGED_SUFFIX,
            damage.start_offset,
        )
        self._with_space(self._log.set_damage_aside)
        newest = max((each.offset for each in self._log.snapshots()), default=0)
        if newest > self._log.end_offset:
            # What is sound ends below a snapshot that is whole: the state and the log both go on from there.
            self._with_space(lambda: self._log.truncate_fully_to(newest))

    def handle_caught_up(self, on_disk: OnDisk) -> None:
        """The core trusts its log and its votes again: let the files say so too."""
        damage, self._damage = self._damage, None
        was_lost, self.has_lost_its_state = self.has_lost_its_state, False
        if was_lost:
            notable_log.info("caught up with what was lost: this node votes again")
        if damage is not None:
            on_disk(self._log.mark_repaired, lambda _: self._tell_repaired(damage))

    def _tell_repaired(self, damage: DamagedRange) -> None:
        notable_log.info(
            "the log is repaired: all from offset %d on was fetched again, up to %d by now; this node votes again. The "
            "files with the suffix %s can be deleted",
            damage.start_offset,
            self._log.end_offset,
            DAMAGED_SUFFIX,
        )

    def why_it_does_not_vote(self) -> str:
        """For the line that names missing voters while there is no leader; empty if it does."""
        if self.has_lost_its_state:
            return "; this node does not vote before it has caught up, for it lost what it had voted"
        if self._damage is not None:
            return "; this node does not stand before its log is repaired, and votes only where it can judge"
        return ""


def _is_state_behind(folder: Path, summary: LogSummary, fs: FileSystem) -> bool:
    """Whether the log holds records of a later epoch than the election state.

    A voter among others writes its epoch down before it asks any peer for a vote or for records, so the file must be an
    older copy, and votes given since are forgotten.
    """
    state = QuorumStateFile(folder, (), fs=fs).read()
    known_epoch = 0 if state is None else state.leader_epoch
    epochs = [epoch for epoch, _ in summary.epochs] + [snapshot.epoch for snapshot in summary.snapshots]
    logged_epoch = max(epochs, default=0)
    if state is None or logged_epoch <= known_epoch:
        return False
    reason = f"it says epoch {known_epoch}, but the log holds records of epoch {logged_epoch}, so it is an old copy"
    log.warning(
        "%s: what this node has voted is not known any more. %s",
        _set_state_aside(folder, reason, fs),
        _UNTIL_TRUSTED,
    )
    return True
