"""Kafka's `leader-epoch-checkpoint`: where each leader epoch begins in the log, as a small text file."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from kquorum.storage.durable_files import replace_file
from kquorum.storage.file_system import POSIX, FileSystem

FILE_NAME = "leader-epoch-checkpoint"
Epochs = tuple[tuple[int, int], ...]


def encode_epochs(epochs: Sequence[tuple[int, int]]) -> bytes:
    """`epochs` are (epoch, start offset), ascending."""
    lines = ["0", str(len(epochs)), *(f"{epoch} {start_offset}" for epoch, start_offset in epochs)]
    return ("\n".join(lines) + "\n").encode()


def decode_epochs(content: bytes) -> Epochs:
    """Raises ValueError with the reason; an empty file holds no epochs."""
    lines = content.decode().split("\n")
    lines = [line.strip() for line in lines if line.strip()]
    if not lines:
        return ()
    if lines[0] != "0":
        raise ValueError(f"format version {lines[0]!r} is not supported (0 is)")
    entries = tuple((int(epoch), int(start)) for epoch, start in (line.split() for line in lines[2:]))
    if len(lines) < 2 or int(lines[1]) != len(entries):
        raise ValueError("the number of entries does not match the second line")
    if any(after[0] <= before[0] or after[1] < before[1] for before, after in pairwise(entries)):
        raise ValueError("the epochs or their start offsets do not ascend")
    return entries


def epochs_from(
    epochs: Sequence[tuple[int, int]], start_offset: int, end_offset: int
) -> list[tuple[int, int]]:
    """The epochs of a log that holds the offsets from `start_offset` up to `end_offset`: one that began before is
    said to begin at the start."""
    clamped = [(epoch, max(start, start_offset)) for epoch, start in epochs]
    following = [*(start for _, start in clamped[1:]), end_offset]
    return [entry for entry, next_start in zip(clamped, following, strict=False) if entry[1] < next_start]


def write_epochs(folder: Path, epochs: Sequence[tuple[int, int]], fs: FileSystem = POSIX) -> None:
    """Replace the file, durable on return. It can be rebuilt from the log, and is at every start."""
    replace_file(folder / FILE_NAME, encode_epochs(epochs), fs)


def read_epochs(folder: Path, fs: FileSystem = POSIX) -> Epochs | None:
    """What the file says; None when it is absent or makes no sense (the log itself is the authority)."""
    try:
        return decode_epochs(fs.read(folder / FILE_NAME))
    except (OSError, ValueError):
        return None
