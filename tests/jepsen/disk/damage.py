"""Changes of a disk's content that no write made."""

import shutil
from pathlib import Path
from random import Random
from typing import NamedTuple

LOG_FOLDER = "__cluster_metadata-0"
# The header of a batch (KIP-98): its checksum covers what follows it.
_HEADER_BYTES = 61


class Flip(NamedTuple):
    file: str
    position: int
    bit: int


class NothingToFlip(Exception):
    """No segment of the log has a record."""


def flip_bit(folder: Path, random_source: Random) -> Flip:
    """Turn one bit of the records of a log below a node's data folder, in any segment; raises NothingToFlip."""
    logs = [folder] if folder.name == LOG_FOLDER else sorted(folder.rglob(LOG_FOLDER))
    spans = [span for log in logs for path in sorted(log.glob("*.log")) for span in _record_spans(path)]
    if not spans:
        raise NothingToFlip(f"no segment in {folder} has a record")
    path, start, end = random_source.choice(spans)
    flip = Flip(
        str(path.relative_to(folder)), random_source.randrange(start, end), random_source.randrange(8)
    )
    with path.open("r+b") as file:
        file.seek(flip.position)
        (byte,) = file.read(1)
        file.seek(flip.position)
        file.write(bytes([byte ^ 1 << flip.bit]))
    return flip


def _record_spans(path: Path) -> list[tuple[Path, int, int]]:
    """Where the records of each whole batch are."""
    content = path.read_bytes()
    spans = []
    position = 0
    while position + _HEADER_BYTES <= len(content):
        end = position + 12 + int.from_bytes(content[position + 8 : position + 12], "big", signed=True)
        if not position + _HEADER_BYTES < end <= len(content):
            break
        spans.append((path, position + _HEADER_BYTES, end))
        position = end
    return spans


def wipe(folder: Path) -> None:
    """Take everything out of a folder, as a new disk in the place of a broken one. A faulty disk has to `forget()`."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
