"""Bugs planted in the storage; the power-cut tests must find each."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kquorum.raft.adapters import file_log, quorum_state_file, snapshot_files
from kquorum.raft.adapters.snapshot_files import SnapshotStore
from kquorum.snapshots.adapters import durable_snapshot
from kquorum.storage import durable_files
from kquorum.storage.corruption_marker import remove_corruption_marker
from kquorum.storage.file_system import FileSystem
from kquorum.storage.recovery_point import RecoveryPoint
from kquorum.storage.segment import Segment, segment_path
from kquorum.storage.segment_list import SegmentList
from kquorum.storage.segmented_log import SegmentedLog
from tests.support.fault_file_system import FaultFileSystem

Mutant = Callable[[pytest.MonkeyPatch], None]


def _nothing(*_args: Any, **_options: Any) -> None:
    return None


def no_folder_flush_after_a_rename(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(durable_files, "sync_folder", _nothing)


def rename_before_the_flush(patch: pytest.MonkeyPatch) -> None:
    def replace(path: Path, data: bytes, fs: FileSystem) -> None:
        temporary = path.with_name(path.name + ".tmp")
        descriptor = fs.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        fs.write(descriptor, data)
        fs.rename(temporary, path)
        fs.fsync(descriptor)
        fs.close(descriptor)
        durable_files.sync_folder(path.parent, fs)

    for module in (quorum_state_file, file_log):
        patch.setattr(module, "replace_file", replace)


def state_written_in_place(patch: pytest.MonkeyPatch) -> None:
    def replace(path: Path, data: bytes, fs: FileSystem) -> None:
        descriptor = fs.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        fs.write(descriptor, data)
        fs.fsync(descriptor)
        fs.close(descriptor)
        durable_files.sync_folder(path.parent, fs)

    patch.setattr(quorum_state_file, "replace_file", replace)


def truncation_is_not_durable(patch: pytest.MonkeyPatch) -> None:
    def truncate_to(segments: SegmentList, end_offset: int) -> None:
        segments._drop_segments(end_offset)
        segments.last.truncate_to(end_offset)

    patch.setattr(SegmentList, "truncate_to", truncate_to)


def recovery_point_before_the_flush(patch: pytest.MonkeyPatch) -> None:
    flush = SegmentedLog.flush

    def advance_first(log: SegmentedLog, *, durably: bool = False) -> int:
        if not log._is_read_only:
            log._point.advance(log.end_offset)
        return flush(log, durably=durably)

    patch.setattr(SegmentedLog, "flush", advance_first)


def recovery_point_not_set_back_before_a_cut(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RecoveryPoint, "set_back", _nothing)


def flush_that_flushes_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Segment, "sync", _nothing)


def flush_of_the_last_segment_alone(patch: pytest.MonkeyPatch) -> None:
    make_durable = SegmentList.make_durable

    def last_alone(segments: SegmentList, dirty: set[Segment], *, folder_is_dirty: bool) -> bool:
        for segment in dirty - {segments.last}:
            if not segment.is_published:
                segment.publish()
        return make_durable(segments, dirty & {segments.last}, folder_is_dirty=folder_is_dirty)

    patch.setattr(SegmentList, "make_durable", last_alone)


def segment_named_before_its_flush(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("kquorum.storage.segment_list.unpublished_path", segment_path)


def snapshot_received_not_flushed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SnapshotStore, "_flush", _nothing)


def snapshot_written_not_flushed(patch: pytest.MonkeyPatch) -> None:
    fsync = FaultFileSystem.fsync

    def not_of_parts(fs: FaultFileSystem, descriptor: int) -> None:
        file = fs._file(descriptor)
        parts = [name for folder in fs.folders.values() for name in folder.entries if name.endswith(".part")]
        if file.folder is not None or not parts:
            fsync(fs, descriptor)

    patch.setattr(FaultFileSystem, "fsync", not_of_parts)


def snapshot_named_without_folder_flush(patch: pytest.MonkeyPatch) -> None:
    def rename(path: Path, target: Path, fs: FileSystem) -> None:
        fs.rename(path, target)

    for module in (snapshot_files, durable_snapshot):
        patch.setattr(module, "rename_durably", rename)
    patch.setattr(file_log.FileLog, "_retire_snapshots", _nothing)


def segments_dropped_oldest_first(patch: pytest.MonkeyPatch) -> None:
    """And their names flushed once at the end, which would do no harm the right way round."""

    def drop(segments: SegmentList, end_offset: int) -> None:
        for segment in [each for each in segments._segments[1:] if each.base_offset >= end_offset]:
            segments._segments.remove(segment)
            segments._dirty.discard(segment)
            segment.delete()
            durable_files.sync_folder(segments._folder, segments._fs)

    patch.setattr(SegmentList, "_drop_segments", drop)


def damage_forgotten_once_it_is_set_aside(patch: pytest.MonkeyPatch) -> None:
    """A crash before all is fetched again then leaves a log that looks whole."""
    set_aside = SegmentedLog.set_damage_aside

    def forgetting(log: SegmentedLog, handle_marked: Callable[[], None]) -> None:
        set_aside(log, handle_marked)
        log._point.set_back(log.end_offset)
        remove_corruption_marker(log._folder, log._fs)

    patch.setattr(SegmentedLog, "set_damage_aside", forgetting)


def replacement_by_a_snapshot_not_marked(patch: pytest.MonkeyPatch) -> None:
    """A snapshot that turns bad between two starts then leaves a log that is shorter and looks whole."""
    patch.setattr(file_log, "mark_replacement", _nothing)


MUTANTS: dict[str, Mutant] = {
    mutant.__name__: mutant
    for mutant in (
        no_folder_flush_after_a_rename,
        rename_before_the_flush,
        state_written_in_place,
        truncation_is_not_durable,
        recovery_point_before_the_flush,
        recovery_point_not_set_back_before_a_cut,
        flush_that_flushes_nothing,
        flush_of_the_last_segment_alone,
        segment_named_before_its_flush,
        snapshot_received_not_flushed,
        snapshot_written_not_flushed,
        snapshot_named_without_folder_flush,
        segments_dropped_oldest_first,
        damage_forgotten_once_it_is_set_aside,
        replacement_by_a_snapshot_not_marked,
    )
}
