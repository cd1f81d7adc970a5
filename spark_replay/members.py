"""Which node a metadata folder belongs to, and what it last knew of its quorum, as the files beside the log tell it.

The audit reads folders as they were copied from anywhere: what is missing or cannot be read is None, never an error.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from spark_replay.sources import METADATA_FOLDER

META_PROPERTIES, QUORUM_STATE = "meta.properties", "quorum-state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Of `meta.properties` (cluster, node, directory) and of `quorum-state` (the last epoch and leader known)."""

    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None
    leader_epoch: int | None = None
    leader_id: int | None = None


def member_of(log_folder: Path) -> Member:
    """The member whose log lies in `log_folder`, the folder of the segments."""
    metadata_folder = log_folder.parent if log_folder.name == METADATA_FOLDER else log_folder
    properties = _properties(metadata_folder / META_PROPERTIES)
    state = _state(log_folder / QUORUM_STATE)
    return Member(
        cluster_id=properties.get("cluster.id") or state.get("clusterId") or None,
        node_id=_number(properties.get("node.id", properties.get("broker.id"))),
        directory_id=properties.get("directory.id"),
        leader_epoch=_number(state.get("leaderEpoch")),
        leader_id=_number(state.get("leaderId")),
    )


def _properties(path: Path) -> dict[str, str]:
    """Keys and values of a properties file; colons may be escaped, and nothing else that Kafka writes there is."""
    lines = [line for line in _text(path).splitlines() if line[:1] not in ("#", "!")]
    pairs = (line.partition("=") for line in lines)
    return {key.strip(): value.strip().replace("\\", "") for key, found, value in pairs if found}


def _state(path: Path) -> dict[str, str]:
    try:
        state = json.loads(_text(path) or "{}")
    except ValueError:
        return {}
    return {key: str(value) for key, value in state.items()} if isinstance(state, dict) else {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _number(text: str | None) -> int | None:
    """A node id or an epoch; -1 is Kafka's word for none."""
    return int(text) if text is not None and text.isdecimal() else None
