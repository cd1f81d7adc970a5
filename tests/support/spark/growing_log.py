"""A finished log shown to a reader bit by bit, as the node that wrote it would have shown it."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

from kquorum.spark_replay.decode.sources import METADATA_FOLDER, FileKind, find_log_files


class GrowingLog:
    """`shown` is a copy of the log at `whole` that grows with each `grow`: by pieces of batches, segment by segment."""

    def __init__(self, whole: Path, shown: Path, random: Random) -> None:
        self.shown = shown
        self._random = random
        self._folder = shown / METADATA_FOLDER
        self._folder.mkdir(parents=True)
        files = find_log_files(whole)
        self._segments = [file for file in files if file.kind is FileKind.LOG]
        self._others = [file for file in files if file.kind is not FileKind.LOG]
        self._at = 0
        self._bytes = b""

    @property
    def is_begun(self) -> bool:
        """Whether there is a file."""
        return any(self._folder.iterdir())

    @property
    def is_whole(self) -> bool:
        return self._at == len(self._segments) and not self._others

    def steps(self) -> Iterator[None]:
        """Grow until all is there."""
        while not self.is_whole:
            self.grow()
            yield

    def grow(self) -> None:
        """Some bytes more, often not whole batches; now and then a snapshot, or an old segment that goes."""
        if self._others and (self._at == len(self._segments) or self._random.random() < 0.3):
            file = self._others.pop(0)
            (self._folder / file.name).write_bytes(Path(file.path).read_bytes())
        if self._at == len(self._segments):
            return
        segment = self._segments[self._at]
        whole = Path(segment.path).read_bytes()
        size = min(len(whole), len(self._bytes) + self._random.randint(0, max(1, len(whole) // 3)))
        self._bytes = whole[:size]
        (self._folder / segment.name).write_bytes(self._bytes)
        if size == len(whole):
            self._at, self._bytes = self._at + 1, b""

    def grow_much(self) -> None:
        """The rest of a segment, and part of the next one."""
        at = self._at
        while self._at == at and not self.is_whole:
            self.grow()
        self.grow()

    def remove_old(self) -> None:
        """All but the newest two segments, and all but the newest snapshot."""
        segments = sorted(self._folder.glob("*.log"))
        for path in [*segments[:-2], *sorted(self._folder.glob("*.checkpoint"))[:-1]]:
            path.unlink()
