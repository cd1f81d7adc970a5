"""A node's data folders: checked to be its own, locked, and what was formatted into them read."""

import uuid
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID

from kquorum.node.config.model import NodeConfig
from kquorum.node.errors import BootstrapDamaged
from kquorum.node.fence import check_not_fenced
from kquorum.raft.adapters.errors import FORMAT_FIRST
from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.regular_files import read_regular
from kquorum.snapshots.bootstrap import bootstrap_records, read_bootstrap_checkpoint
from kquorum.snapshots.naming import BOOTSTRAP_CHECKPOINT_NAME
from kquorum.storage.errors import WrongFolder
from kquorum.storage.folder_lock import FolderLock
from kquorum.storage.folder_permissions import make_private
from kquorum.storage.meta_properties import FILE_NAME as META_PROPERTIES
from kquorum.storage.meta_properties import MetaProperties, open_meta_properties, read_meta_properties
from kquorum.wire.errors import DecodeError
from kquorum.wire.schema import MetadataRecord


class NodeFolders:
    """The folders of `log.dirs` and `metadata.log.dir`, locked until `release`."""

    def __init__(self, config: NodeConfig, now_ms: int) -> None:
        """Raises NotFormatted, WrongFolder, Fenced, FolderExposed, FolderLocked, MetaPropertiesDamaged or
        StorageFailed."""
        self._config = config
        self._locks = ExitStack()
        self._properties: dict[Path, MetaProperties] = {}
        # What is to be logged as a warning once the node's log is open.
        self.notes: list[str] = []
        try:
            self._open(now_ms)
        except BaseException:
            self._locks.close()
            raise

    @property
    def cluster_id(self) -> str:
        return self._properties[self._config.metadata_log_dir].cluster_id

    @property
    def metadata_directory_id(self) -> UUID:
        """The id of the folder that holds the metadata log: half of this replica's key in the quorum."""
        return self._id_of(self._config.metadata_log_dir)

    @property
    def log_directory_ids(self) -> tuple[UUID, ...]:
        return tuple(self._id_of(folder) for folder in self._config.log_dirs)

    @property
    def log_directory_paths(self) -> dict[UUID, str]:
        return {self._id_of(folder): str(folder.absolute()) for folder in self._config.log_dirs}

    @property
    def metadata_log(self) -> Path:
        return self._config.metadata_log_dir / FOLDER_NAME

    def bootstrap_records(self) -> tuple[MetadataRecord, ...]:
        """What a new cluster's log starts with; raises BootstrapDamaged."""
        path = self._config.metadata_log_dir / BOOTSTRAP_CHECKPOINT_NAME
        try:
            return read_bootstrap_checkpoint(read_regular(path))
        except FileNotFoundError:
            return bootstrap_records()
        except (DecodeError, OSError) as error:
            raise BootstrapDamaged(path, str(error)) from error

    def release(self) -> None:
        self._locks.close()

    def _open(self, now_ms: int) -> None:
        folders = dict.fromkeys((self._config.metadata_log_dir, *self._config.log_dirs))
        for folder in folders:
            read_meta_properties(folder, remedy=FORMAT_FIRST)
            check_not_fenced(folder)
            if not self._config.kquorum_allow_exposed_log_dirs:
                self._make_private(folder)
            self._locks.callback(FolderLock(folder).release)
        cluster_id = self._config.cluster_id
        for folder in folders:
            properties = open_meta_properties(
                folder,
                cluster_id=cluster_id,
                node_id=self._config.node_id,
                new_directory_id=uuid.uuid4(),
                now_ms=now_ms,
            )
            cluster_id = properties.cluster_id
            self._properties[folder] = properties
        self._check_distinct()

    def _make_private(self, folder: Path) -> None:
        mode = make_private(folder)
        if mode is not None:
            self.notes.append(
                f"{folder} had the permissions {mode:04o}, so other users of this machine could read the keys in it; "
                "they were taken away from all but its owner and its group"
            )

    def _check_distinct(self) -> None:
        """A folder copied from another brings that one's id along."""
        seen: dict[UUID, Path] = {}
        for folder in self._properties:
            directory_id = self._id_of(folder)
            if directory_id in seen:
                path = folder / META_PROPERTIES
                raise WrongFolder(
                    path, "directory.id", str(directory_id), f"an id that {seen[directory_id]} lacks"
                )
            seen[directory_id] = folder

    def _id_of(self, folder: Path) -> UUID:
        directory_id = self._properties[folder].directory_id
        assert directory_id is not None, f"{folder} was opened without being given a directory id"
        return directory_id
