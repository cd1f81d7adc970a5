"""`partition.metadata`: the id of the topic that a partition folder belongs to (KIP-516)."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from kquorum.storage.durable_files import read_if_there
from kquorum.storage.errors import DamagedInput
from kquorum.storage.file_system import FileSystem
from kquorum.wire.uuids import ZERO_UUID, uuid_from_text, uuid_to_text

FILE_NAME = "partition.metadata"


class PartitionMetadataDamaged(DamagedInput):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} is damaged: {reason}; restore the file, or move the partition's folder away"
        )
        self.path = path


def encode_topic_id(topic_id: UUID) -> bytes:
    """Two lines, the last without an end."""
    return f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode()


def decode_topic_id(content: bytes) -> UUID:
    """Raises ValueError with the reason. Any version from 0 on is read."""
    fields: dict[str, str] = {}
    for line in content.decode().splitlines():
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError(f"the line {line!r} is not NAME: VALUE")
        fields[name.strip()] = value.strip()
    if not fields.get("version", "").isdecimal():
        raise ValueError("the line with the version is missing or no number")
    topic_id = uuid_from_text(fields.get("topic_id", ""))
    if topic_id == ZERO_UUID:
        raise ValueError("the topic id is zero")
    return topic_id


def read_topic_id(folder: Path, fs: FileSystem) -> UUID | None:
    """None where there is no such file. Raises PartitionMetadataDamaged or StorageFailed."""
    content = read_if_there(folder / FILE_NAME, fs)
    if content is None:
        return None
    try:
        return decode_topic_id(content)
    except ValueError as error:
        raise PartitionMetadataDamaged(folder / FILE_NAME, str(error)) from error
