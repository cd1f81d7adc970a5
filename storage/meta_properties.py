"""Whose folder this is: Kafka's `meta.properties`, a Java properties file in each log folder."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from kquorum.storage.durable_files import replace_file
from kquorum.storage.errors import (
    FORMAT_REMEDY,
    MetaPropertiesDamaged,
    NotFormatted,
    StorageFailed,
    WrongFolder,
)
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.wire.uuids import uuid_from_text, uuid_to_text

FILE_NAME = "meta.properties"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    """Version 1 of the file; `directory_id` is absent in folders formatted before Kafka 3.7.

    `others` are the keys this program does not know, kept when the file is rewritten.
    """

    cluster_id: str
    node_id: int
    directory_id: UUID | None = None
    others: tuple[tuple[str, str], ...] = ()


def read_meta_properties(
    folder: Path, fs: FileSystem = POSIX, *, remedy: str = FORMAT_REMEDY
) -> MetaProperties:
    """Raises NotFormatted with this `remedy` when there is no such file, MetaPropertiesDamaged when it does not make
    sense, StorageFailed when this process may not read it."""
    path = folder / FILE_NAME
    try:
        content = fs.read(path)
    except FileNotFoundError as error:
        raise NotFormatted(folder, f"it has no {FILE_NAME}", remedy) from error
    except PermissionError as error:
        raise StorageFailed("read", path, error) from error
    except OSError as error:
        raise MetaPropertiesDamaged(path, f"it cannot be read ({error.strerror})") from error
    try:
        return decode_meta_properties(content)
    except ValueError as error:
        raise MetaPropertiesDamaged(path, str(error)) from error


def write_meta_properties(
    folder: Path, properties: MetaProperties, now_ms: int, fs: FileSystem = POSIX
) -> None:
    """Replace the file, durable on return; `now_ms` is the date of its second line."""
    replace_file(folder / FILE_NAME, encode_meta_properties(properties, now_ms), fs)


def check_meta_properties(
    folder: Path, properties: MetaProperties, *, cluster_id: str | None, node_id: int
) -> None:
    """Raise WrongFolder unless the folder belongs to this node of this cluster (None: any cluster)."""
    path = folder / FILE_NAME
    if cluster_id is not None and properties.cluster_id != cluster_id:
        raise WrongFolder(path, "cluster.id", properties.cluster_id, cluster_id)
    if properties.node_id != node_id:
        raise WrongFolder(path, "node.id", str(properties.node_id), str(node_id))


def open_meta_properties(
    folder: Path,
    *,
    cluster_id: str | None,
    node_id: int,
    new_directory_id: UUID,
    now_ms: int,
    fs: FileSystem = POSIX,
) -> MetaProperties:
    """Read and check the file; a folder without a directory id is given `new_directory_id`, as Kafka does."""
    properties = read_meta_properties(folder, fs)
    check_meta_properties(folder, properties, cluster_id=cluster_id, node_id=node_id)
    if properties.directory_id is not None:
        return properties
    completed = replace(properties, directory_id=new_directory_id)
    write_meta_properties(folder, completed, now_ms, fs)
    return completed


def encode_meta_properties(properties: MetaProperties, now_ms: int) -> bytes:
    fields = dict(properties.others)
    fields |= {"version": "1", "cluster.id": properties.cluster_id, "node.id": str(properties.node_id)}
    if properties.directory_id is not None:
        fields["directory.id"] = uuid_to_text(properties.directory_id)
    date = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(now_ms // 1000))
    lines = ["#", f"#{date}", *(f"{_escape(key)}={_escape(value)}" for key, value in sorted(fields.items()))]
    return ("\n".join(lines) + "\n").encode()


def decode_meta_properties(content: bytes) -> MetaProperties:
    """Raises ValueError with the reason. Version 0 (ZooKeeper times) has `broker.id` in place of `node.id`."""
    fields = parse_java_properties(content.decode())
    version = fields.pop("version", "0")
    if version not in ("0", "1"):
        raise ValueError(f"version {version} is not supported (0 and 1 are)")
    id_key = "node.id" if version == "1" else "broker.id"
    cluster_id, node_id = fields.pop("cluster.id", None), fields.pop(id_key, None)
    if not cluster_id or node_id is None:
        raise ValueError(f"the key {id_key if cluster_id else 'cluster.id'} is missing")
    if not node_id.isdecimal():
        raise ValueError(f"{id_key} is {node_id!r}, not a number from 0")
    directory_text = fields.pop("directory.id", None)
    directory_id = None if directory_text is None else uuid_from_text(directory_text)
    return MetaProperties(
        cluster_id=cluster_id, node_id=int(node_id), directory_id=directory_id, others=tuple(fields.items())
    )


def parse_java_properties(text: str) -> dict[str, str]:
    """Keys and values of a properties file: `#` and `!` comments, `=`, `:` or blanks between, backslash escapes.

    Continued lines and \\u escapes, which Kafka never writes into this file, raise ValueError.
    """
    fields: dict[str, str] = {}
    for line in text.splitlines():
        stripped = line.lstrip()
        if stripped and stripped[0] not in "#!":
            key, value = _split(stripped)
            fields[key] = value
    return fields


def _split(line: str) -> tuple[str, str]:
    key: list[str] = []
    position = 0
    while position < len(line) and line[position] not in "=: \t":
        position, character = _character(line, position)
        key.append(character)
    while position < len(line) and line[position] in " \t":
        position += 1
    if position < len(line) and line[position] in "=:":
        position += 1
    value: list[str] = []
    while position < len(line) and line[position] in " \t":
        position += 1
    while position < len(line):
        position, character = _character(line, position)
        value.append(character)
    return "".join(key), "".join(value)


def _character(line: str, position: int) -> tuple[int, str]:
    """The next position and the character here, an escape resolved."""
    if line[position] != "\\":
        return position + 1, line[position]
    if position + 1 == len(line) or line[position + 1] == "u":
        raise ValueError(f"the line {line!r} has an escape this program does not read")
    escaped = line[position + 1]
    return position + 2, {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(escaped, escaped)


def _escape(text: str) -> str:
    return "".join("\\" + character if character in "\\=:#! " else character for character in text)
