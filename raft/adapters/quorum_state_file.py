"""The election state on disk: Kafka's `quorum-state`, one line of JSON whose data_version follows kraft.version.

Rules R3.1 and F4.7.

A bit that flips in it may leave JSON that makes sense: another vote, or an older epoch, and the node votes twice. So
the line ends with a key of ours, a checksum of the line that Kafka would have written. Kafka's reader asks for the keys
of its schema and passes over any other, and its writer drops ours: without it the file is believed as it stands. With
a key that is neither Kafka's nor ours it is not: no Kafka wrote that, as new keys came with a new data_version so far
(KIP-853); ours with a flipped bit in its name looks like that; and what is not understood may be part of the vote.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import UUID

from crc32c import crc32c

from kquorum.raft.adapters.errors import QuorumStateDamaged
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import ZERO_DIRECTORY, ReplicaKey
from kquorum.storage.durable_files import replace_file
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.wire.uuids import uuid_from_text, uuid_to_text

FILE_NAME = "quorum-state"
STATIC_QUORUM = 0
DYNAMIC_QUORUM = 1
CHECKSUM_KEY = "kquorumCrc32c"
_INT32 = range(-(2**31), 2**31)
_COMMON_KEYS = frozenset({"leaderId", "leaderEpoch", "votedId", "data_version"})
_KEYS = {
    STATIC_QUORUM: _COMMON_KEYS | {"clusterId", "appliedOffset", "currentVoters"},
    DYNAMIC_QUORUM: _COMMON_KEYS | {"votedDirectoryId"},
}


class QuorumStateFile:
    """The `QuorumStateStore` of a node; satisfies raft.ports.QuorumStateStore.

    Which format is written follows the kraft.version in force at that moment. That of kraft.version 0 lists the
    voters and cannot hold the directory id of a vote; read back, such a vote has the zero directory, which matches
    any directory of that node. Either format is read.
    """

    def __init__(
        self,
        folder: Path,
        voter_ids: tuple[int, ...] | Callable[[], tuple[int, ...]],
        kraft_version: int | Callable[[], int] = 0,
        fs: FileSystem = POSIX,
    ) -> None:
        """Callables are asked at each write, in the thread that writes: have them read one value which another thread
        replaces as a whole, such as `RaftDriver.in_force`."""
        self._fs = fs
        self._path = folder / FILE_NAME
        self._voter_ids = voter_ids
        self._kraft_version = kraft_version

    def read(self) -> QuorumState | None:
        """The stored state; None when there never was one. Raises QuorumStateDamaged."""
        try:
            content = self._fs.read(self._path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise QuorumStateDamaged(self._path, f"it cannot be read ({error.strerror})") from error
        try:
            return decode_quorum_state(content)
        except ValueError as error:
            raise QuorumStateDamaged(self._path, str(error)) from error

    def write(self, state: QuorumState) -> None:
        """Replace the state; durable on return. Raises StorageFailed or FsyncFailed, both fatal."""
        voter_ids = self._voter_ids() if callable(self._voter_ids) else self._voter_ids
        kraft_version = self._kraft_version() if callable(self._kraft_version) else self._kraft_version
        data_version = STATIC_QUORUM if kraft_version == 0 else DYNAMIC_QUORUM
        replace_file(self._path, encode_quorum_state(state, voter_ids, data_version), self._fs)


def encode_quorum_state(state: QuorumState, voter_ids: tuple[int, ...], data_version: int) -> bytes:
    """The file's content: compact JSON in Kafka's key order, our checksum behind it, no newline."""
    voted_id = -1 if state.voted is None else state.voted.id
    fields: dict[str, object]
    if data_version == STATIC_QUORUM:
        fields = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter_id} for voter_id in voter_ids],
        }
    else:
        directory_id = ZERO_DIRECTORY if state.voted is None else state.voted.directory_id
        fields = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": voted_id,
            "votedDirectoryId": uuid_to_text(directory_id),
        }
    return _with_checksum(json.dumps(fields | {"data_version": data_version}, separators=(",", ":")).encode())


def _with_checksum(line: bytes) -> bytes:
    """The checksum, in hexadecimal, is of all bytes of Kafka's line, its last brace included."""
    return line[:-1] + f',"{CHECKSUM_KEY}":"{crc32c(line):08x}"}}'.encode()


def decode_quorum_state(content: bytes) -> QuorumState:
    """Parse the first line of the file; raises ValueError with the reason."""
    first_line = content.split(b"\n", 1)[0].strip()
    if not first_line:
        raise ValueError("it is empty")
    try:
        fields = json.loads(first_line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not whole JSON ({error})") from error
    if not isinstance(fields, dict):
        raise ValueError("it is not a JSON object")
    version = _integer(fields, "data_version")
    if version not in (STATIC_QUORUM, DYNAMIC_QUORUM):
        raise ValueError(f"data_version {version} is not supported (0 and 1 are)")
    _check_keys(fields, version)
    if CHECKSUM_KEY in fields and _with_checksum(_without_last_key(first_line)) != first_line:
        raise ValueError("its checksum does not match")
    return _VERSIONS[version](fields)


def _check_keys(fields: Mapping[str, object], version: int) -> None:
    for key in sorted(_KEYS[version] - fields.keys()):
        raise ValueError(f"the key {key} is missing")
    for key in sorted(fields.keys() - _KEYS[version] - {CHECKSUM_KEY}):
        raise ValueError(f"data_version {version} has no key {key!r}")


def _without_last_key(line: bytes) -> bytes:
    return line[: line.rfind(b",")] + b"}"


def _decode_v0(fields: Mapping[str, object]) -> QuorumState:
    return _state(fields, ZERO_DIRECTORY)


def _decode_v1(fields: Mapping[str, object]) -> QuorumState:
    text = fields.get("votedDirectoryId")
    if not isinstance(text, str):
        raise ValueError("the key votedDirectoryId is not a text")
    return _state(fields, uuid_from_text(text))


def _state(fields: Mapping[str, object], voted_directory_id: UUID) -> QuorumState:
    leader_epoch = _integer(fields, "leaderEpoch")
    leader_id = _integer(fields, "leaderId")
    voted_id = _integer(fields, "votedId")
    if leader_epoch < 0:
        raise ValueError(f"leaderEpoch is {leader_epoch}")
    if leader_id < -1 or voted_id < -1:
        raise ValueError(f"leaderId {leader_id} or votedId {voted_id} is below -1")
    voted = ReplicaKey(voted_id, voted_directory_id) if voted_id >= 0 else None
    return QuorumState(leader_epoch=leader_epoch, leader_id=leader_id, voted=voted)


def _integer(fields: Mapping[str, object], key: str) -> int:
    value = fields.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value not in _INT32:
        raise ValueError(f"the key {key} is missing or not a 32-bit integer")
    return value


_VERSIONS: dict[int, Callable[[Mapping[str, object]], QuorumState]] = {
    STATIC_QUORUM: _decode_v0,
    DYNAMIC_QUORUM: _decode_v1,
}
