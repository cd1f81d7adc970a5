"""The node that a metadata folder belongs to, and its last view of the quorum, from the files beside the log.

The audit reads folders that were copied from anywhere: what is missing or unreadable is None, never an error.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kquorum.spark_replay.decode.files import open_listed
from kquorum.spark_replay.decode.sources import METADATA_FOLDER

META_PROPERTIES, QUORUM_STATE = "meta.properties", "quorum-state"
# Kafka writes some hundred bytes into either, and ids of 22 characters.
LARGEST_BYTES: Final = 1024 * 1024
_LARGEST_ID: Final = 256
_LARGEST_NUMBER: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Of `meta.properties` (cluster, node, directory) and of `quorum-state` (the last epoch and leader known)."""

    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None
    leader_epoch: int | None = None
    leader_id: int | None = None


def member_of(log_folder: Path) -> Member:
    """The node whose segments are in `log_folder`."""
    metadata_folder = log_folder.parent if log_folder.name == METADATA_FOLDER else log_folder
    properties = _properties(metadata_folder / META_PROPERTIES)
    state = _state(log_folder / QUORUM_STATE)
    return Member(
        cluster_id=_id(properties.get("cluster.id")) or _id(state.get("clusterId")),
        node_id=_number(properties.get("node.id", properties.get("broker.id"))),
        directory_id=_id(properties.get("directory.id")),
        leader_epoch=_number(state.get("leaderEpoch")),
        leader_id=_number(state.get("leaderId")),
    )


def _properties(path: Path) -> dict[str, str]:
    """Keys and values of a properties file; colons may be escaped. Kafka writes no other escapes in these."""
    lines = [line for line in _text(path).splitlines() if line[:1] not in ("#", "!")]
    pairs = (line.partition("=") for line in lines)
    return {key.strip(): value.strip().replace("\\", "") for key, found, value in pairs if found}


def _state(path: Path) -> dict[str, str]:
    try:
        state = json.loads(_text(path) or "{}")
        return {key: str(value) for key, value in state.items()} if isinstance(state, dict) else {}
    except (ValueError, RecursionError):
        return {}


def _text(path: Path) -> str:
    """What the file holds; nothing of what is no file of its own, or is larger than any."""
    try:
        with open_listed(path) as file:
            content = file.read(LARGEST_BYTES + 1)
        return content.decode() if len(content) <= LARGEST_BYTES else ""
    except (OSError, ValueError):
        return ""


def _number(text: str | None) -> int | None:
    """A node id or an epoch, of 32 bits; -1 is Kafka's word for none."""
    if text is None or not text.isdecimal() or len(text) > len(str(_LARGEST_NUMBER)):
        return None
    number = int(text)
    return number if number <= _LARGEST_NUMBER else None


def _id(text: str | None) -> str | None:
    """The id of a cluster or a directory; what is longer than any is none."""
    return text if text and len(text) <= _LARGEST_ID else None
