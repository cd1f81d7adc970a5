"""What a node has on its disk for its replica: opened, mended as far as the quorum can mend it, and watched."""

import logging
from collections.abc import Callable

from kquorum.node.config.model import NodeConfig
from kquorum.node.folders import NodeFolders
from kquorum.node.full_disk import space_teller
from kquorum.node.log_repair import LogRepair, look_at_folder
from kquorum.node.snapshot_loading import SnapshotLoading
from kquorum.raft.adapters.driver_snapshots import Snapshots
from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.adapters.snapshot_files import SnapshotStore
from kquorum.raft.adapters.space_watch import FILE_NAME as SPARE_FILE
from kquorum.raft.adapters.space_watch import SPARE_BYTES, SpaceWatch, SparingStateStore
from kquorum.raft.ready import VotersChanged
from kquorum.raft.voters import ReplicaKey, VoterSet
from kquorum.storage.reserved_space import ReservedSpace
from kquorum.storage.retired_files import RetiredFiles
from kquorum.storage.segment import SegmentLimits

log = logging.getLogger("node.replica_files")


class ReplicaFiles:
    """The log, the election state, and the space that is reserved for them."""

    def __init__(
        self,
        config: NodeConfig,
        folders: NodeFolders,
        static_voters: VoterSet,
        in_force: Callable[[], VotersChanged],
    ) -> None:
        """Recovers the log. `in_force` answers what `quorum-state` says of the voters.

        Raises LogCorrupted, QuorumStateDamaged, StorageFailed or FsyncFailed.
        """
        is_lost = look_at_folder(config)
        self.folder = folders.metadata_log
        reserve = ReservedSpace(config.metadata_log_dir, config.kquorum_reserved_space_bytes)
        retired = RetiredFiles()
        self.space = SpaceWatch(reserve, space_teller(config.metadata_log_dir), make_room=retired.remove_all)
        limits = SegmentLimits(
            segment_bytes=config.metadata_log_segment_bytes, segment_ms=config.metadata_log_segment_ms
        )
        # A log that has to be dropped for a snapshot needs room for the mark that says so.
        self.log = self.space.with_space(
            lambda: FileLog(self.folder, limits, on_damage="report", retired=retired)
        )
        if self.log.recovered_cut_bytes:
            log.warning("%d bytes of a torn write were cut off the log's end", self.log.recovered_cut_bytes)
        key = ReplicaKey(config.node_id, folders.metadata_directory_id)
        # Before anything is read off the log or the election state: it may set either of them aside.
        self.repair = LogRepair(
            self.log, static_voters, config, key, is_lost=is_lost, with_space=self.space.with_space
        )
        state_file = QuorumStateFile(
            self.folder, lambda: in_force().voters.ids, lambda: in_force().kraft_version
        )
        spare_bytes = min(SPARE_BYTES, config.kquorum_reserved_space_bytes)
        spare = ReservedSpace(config.metadata_log_dir, spare_bytes, file_name=SPARE_FILE)
        self.state_store = SparingStateStore(state_file, spare)

    def snapshots(self, handle_unsound: Callable[[], None]) -> Snapshots:
        """For the driver; it calls `handle_unsound` when a snapshot cannot be served."""
        loading = SnapshotLoading(self.folder)
        return Snapshots(
            store=SnapshotStore(self.folder, objection=loading.objection),
            load=loading.load,
            forget=loading.forget,
            handle_unsound=lambda _: handle_unsound(),
            handle_full=self.space.handle_full_snapshot,
        )
