"""Bugs that the simulated worlds have no place for: in files, in registration, in configs."""

from itertools import count
from typing import Any
from unittest.mock import patch

from kquorum.metadata.controller.brokers import registration
from kquorum.metadata.controller.configs import alter_configs
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions import alter_partition
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.image.configs import ConfigsDelta
from kquorum.raft.adapters import quorum_state_file
from kquorum.storage.file_system import FileSystem
from kquorum.wire.messages.error_codes import ErrorCode

Patch = Any


def votes_not_flushed() -> Patch:
    """The election state is flushed to disk before a vote is sent."""

    class Unflushed:
        """A file system that only says it flushes."""

        def __init__(self, fs: FileSystem) -> None:
            self._fs = fs

        def __getattr__(self, name: str) -> Any:
            return getattr(self._fs, name)

        def fsync(self, descriptor: int) -> None: ...

        def fdatasync(self, descriptor: int) -> None: ...

    original: Any = vars(quorum_state_file)["replace_file"]

    def replace_file(path: Any, content: bytes, fs: FileSystem) -> None:
        original(path, content, Unflushed(fs))

    return patch.object(quorum_state_file, "replace_file", replace_file)


def broker_epoch_reused() -> Patch:
    """A broker that registers again gets an epoch that no broker ever had."""
    original: Any = registration._registered

    def registered(context: DecisionContext, new: Any, **rest: Any) -> ControllerResult:
        before = context.image.cluster.brokers.get(new.id)
        if before is not None:
            new = type(new)(
                **{name: getattr(new, name) for name in new.__dataclass_fields__} | {"epoch": before.epoch}
            )
        result: ControllerResult = original(context, new, **rest)
        return result

    return patch.object(registration, "_registered", registered)


def config_update_lost() -> Patch:
    """A change of a list is made to the list as it is now, not as it was some changes ago."""
    original: Any = alter_configs._incremental
    seen: dict[Any, dict[str, str]] = {}
    turns = count(1)

    def incremental(resource: Any, asked: Any, before: Any) -> Any:
        stale = seen.get(resource, before) if next(turns) % 8 == 0 else before
        seen[resource] = dict(before)
        return original(resource, asked, stale)

    return patch.object(alter_configs, "_incremental", incremental)


def partition_epoch_unchecked() -> Patch:
    """AlterPartition changes a partition only in the epoch that it names."""
    return _epoch_error_without(ErrorCode.invalid_update_version)


def leader_epoch_unchecked() -> Patch:
    """AlterPartition is heard from the leader of the partition's present epoch alone."""
    return _epoch_error_without(ErrorCode.fenced_leader_epoch)


def _epoch_error_without(code: ErrorCode) -> Patch:
    original: Any = alter_partition._epoch_error

    def epoch_error(broker_id: int, state: Any, wanted: Any) -> Any:
        error = original(broker_id, state, wanted)
        return None if error is code else error

    return patch.object(alter_partition, "_epoch_error", epoch_error)


def configs_outlive_their_topic() -> Patch:
    """A topic's configs go with it: who takes up its name finds none."""
    return patch.object(ConfigsDelta, "remove_topic", lambda *_: None)
