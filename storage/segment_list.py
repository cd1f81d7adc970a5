"""The segments of one log, oldest first: rolled when the last is full, made durable together, dropped at either end."""

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path

from kquorum.storage.durable_files import remove_file, sync_folder
from kquorum.storage.errors import StorageFailed, StorageFull
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.storage.log_rules import CONTIGUOUS, LogRules
from kquorum.storage.recovery import segment_paths
from kquorum.storage.segment import Segment, SegmentLimits, segment_path, unpublished_path
from kquorum.storage.spare_descriptors import is_out_of_descriptors
from kquorum.wire.log_batch import LogBatch

logger = logging.getLogger(__name__)


class SegmentList:
    """Never empty. Appends, cuts and reads belong to one thread; `make_durable` may run in another one meanwhile.

    The owner holds a lock for them: around appends and cuts, and around `take_dirty` and `put_back`.
    """

    def __init__(
        self,
        folder: Path,
        limits: SegmentLimits,
        segments: list[Segment],
        fs: FileSystem = POSIX,
        rules: LogRules = CONTIGUOUS,
    ) -> None:
        self._fs = fs
        self._rules = rules
        self._folder = folder
        self._limits = limits
        self._segments = segments
        self._dirty = set(segments)
        self._folder_is_dirty = True
        # The last segment is beyond its size, for want of descriptors.
        self._is_overgrown = False

    @property
    def last(self) -> Segment:
        return self._segments[-1]

    @property
    def base_offset(self) -> int:
        return self._segments[0].base_offset

    @property
    def end_offset(self) -> int:
        return self._segments[-1].end_offset

    @property
    def paths(self) -> set[Path]:
        return {segment.path for segment in self._segments}

    def append(self, batches: Sequence[LogBatch]) -> None:
        """Raises StorageFull with none of them kept, or StorageFailed."""
        end_offset = self.end_offset
        try:
            self._append(batches)
        except StorageFull:
            self._drop_segments(end_offset)
            if self.end_offset > end_offset:
                self.last.truncate_to(end_offset)
            raise

    def _append(self, batches: Sequence[LogBatch]) -> None:
        group: list[LogBatch] = []
        pending_bytes = 0
        for batch in batches:
            if not self.last.has_room_for(batch, pending_bytes, self._limits):
                self._write(group)
                self._roll(batch)
                group, pending_bytes = [], 0
            group.append(batch)
            pending_bytes += len(batch.data)
        self._write(group)

    def _write(self, group: Sequence[LogBatch]) -> None:
        if group:
            self._dirty.add(self.last)
            self.last.append(group)

    def _roll(self, batch: LogBatch) -> None:
        """Begin a segment with this batch, or go on with the last one while the process may open no more files."""
        base_offset = batch.base_offset
        try:
            segment = Segment(unpublished_path(self._folder, base_offset), base_offset, self._fs, self._rules)
        except StorageFailed as error:
            if not is_out_of_descriptors(error.error) or not self.last.may_grow_by(batch):
                raise
            self._tell_overgrown(error.error)
            return
        self._is_overgrown = False
        self.last.retire()
        segment.open_indexes()
        self._segments.append(segment)

    def _tell_overgrown(self, error: OSError) -> None:
        if not self._is_overgrown:
            self._is_overgrown = True
            logger.error(
                "no segment can be begun (%s), so %s grows beyond its size: raise the limit of open files "
                "(`ulimit -n`) or lower max.connections",
                error.strerror,
                self.last.path,
            )

    def read(
        self, start_offset: int, max_bytes: int, end_offset: int, epochs: Sequence[tuple[int, int]]
    ) -> bytes:
        index = bisect_right(self._segments, start_offset, key=lambda segment: segment.base_offset) - 1
        assert index >= 0, f"offset {start_offset} is below the log's start"
        if start_offset >= self._segments[index].end_offset and index + 1 < len(self._segments):
            # In a gap at the end of a compacted segment: the next batch is the first one of the next segment.
            index += 1
        return self._segments[index].read(start_offset, max_bytes, end_offset, epochs)

    def end_below(self, end_offset: int) -> int:
        """The end of the last batch that ends at or below an offset of the log."""
        index = bisect_left(self._segments, end_offset, key=lambda segment: segment.base_offset) - 1
        return self._segments[max(0, index)].end_below(end_offset)

    def truncate_to(self, end_offset: int) -> None:
        """Cut at a batch boundary, durably. A crash between may leave the log longer, but never with a gap."""
        self._drop_segments(end_offset)
        self.last.truncate_to(end_offset)
        self.last.sync()

    def _drop_segments(self, end_offset: int) -> None:
        """Remove the segments beyond, the last first, each durably before anything else is cut."""
        while len(self._segments) > 1 and self.last.base_offset >= end_offset:
            segment = self._segments.pop()
            self._dirty.discard(segment)
            segment.delete()
            sync_folder(self._folder, self._fs)

    def start_over(self, offset: int) -> None:
        """Remove all segments durably, the last first, and begin with an empty one. Raises StorageFailed, also for want
        of space: there is no log to go on with then."""
        # First what is damaged behind its sound part: a start that finds it in a log half removed could not tell any
        # more how far the log went, nor that all of it was to be removed.
        self.last.cut_unsound()
        self.last.sync()
        own = self.paths
        # Those behind damage were never opened.
        for path in reversed([each for each in segment_paths(self._folder, self._fs) if each not in own]):
            for each in (path.with_suffix(".timeindex"), path.with_suffix(".index"), path):
                remove_file(each, self._fs)
            sync_folder(self._folder, self._fs)
        for segment in reversed(self._segments):
            segment.delete()
            sync_folder(self._folder, self._fs)
        try:
            segment = first_segment(self._folder, offset, self._fs, self._rules)
        except StorageFull as error:
            raise StorageFailed("create", error.path, error.error) from error
        self._segments = [segment]
        self._dirty, self._folder_is_dirty = {segment}, True

    def take_below(self, offset: int) -> list[Segment]:
        """Give up the segments that lie wholly below an offset and are durable, but never the last one."""
        count = 0
        for segment in self._segments[:-1]:
            if segment.end_offset > offset or segment in self._dirty or not segment.is_published:
                break
            count += 1
        taken, self._segments = self._segments[:count], self._segments[count:]
        return taken

    # Flushing: what is taken under the lock is made durable beside appends

    def take_dirty(self) -> tuple[set[Segment], bool]:
        """The segments written to, and whether names were made or changed, since this was asked last."""
        taken = self._dirty, self._folder_is_dirty
        self._dirty, self._folder_is_dirty = set(), False
        return taken

    def put_back(self, dirty: set[Segment]) -> None:
        """These did not become durable after all."""
        self._dirty |= dirty
        self._folder_is_dirty = True

    def make_durable(self, dirty: set[Segment], *, folder_is_dirty: bool) -> bool:
        """Whether a segment was given its name: only once all before it is durable, names included. So each name is
        made durable by itself: of several, a crash could leave any, and a gap between.

        Raises StorageFull, StorageFailed or FsyncFailed.
        """
        has_rolled = False
        in_order = sorted(dirty, key=lambda segment: segment.base_offset) if len(dirty) > 1 else dirty
        for segment in in_order:
            segment.sync()
            if not segment.is_published:
                segment.publish()
                sync_folder(self._folder, self._fs)
                has_rolled = True
        if folder_is_dirty and not has_rolled:
            sync_folder(self._folder, self._fs)
        return has_rolled

    def close(self) -> None:
        for segment in self._segments:
            segment.close()


def first_segment(
    folder: Path, base_offset: int, fs: FileSystem = POSIX, rules: LogRules = CONTIGUOUS
) -> Segment:
    """The first segment of an empty log. Raises StorageFull or StorageFailed."""
    segment = Segment(segment_path(folder, base_offset), base_offset, fs, rules)
    segment.open_indexes()
    return segment


def placeholder_segment(
    folder: Path, base_offset: int, fs: FileSystem = POSIX, rules: LogRules = CONTIGUOUS
) -> Segment:
    """The first segment of a log with nothing sound left: unnamed while the damaged segments are in its place."""
    return Segment(unpublished_path(folder, base_offset), base_offset, fs, rules)
