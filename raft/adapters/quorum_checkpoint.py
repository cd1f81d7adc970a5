"""The snapshot `0-0` with which a dynamic quorum begins: its first voters, before there is any log (KIP-853).

Kafka's layout (rules F4.9, F4.11): a control batch with the snapshot's header, kraft.version and the voters, and
one with its footer. Offsets count the records of the file; in the history of voters they all stand at offset -1.
"""

from pathlib import Path

from kquorum.raft.adapters.errors import QuorumCheckpointDamaged
from kquorum.raft.voters import (
    KRaftVersionAt,
    QuorumRecord,
    VotersAt,
    VoterSet,
    check_voter_sets,
    voter_set_of,
    voters_record,
)
from kquorum.storage.durable_files import replace_file, sync_folder
from kquorum.storage.errors import StorageFailed
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.wire.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    decode_control_record,
    encode_control_record,
)
from kquorum.wire.errors import DecodeError
from kquorum.wire.record_batch import check_batch, read_records, write_batch

FILE_NAME = "00000000000000000000-0000000000.checkpoint"
DYNAMIC_KRAFT_VERSION = 1
_OFFSET = -1
_EPOCH = 0


def write_quorum_checkpoint(
    metadata_log_folder: Path, voters: VoterSet, now_ms: int, fs: FileSystem = POSIX
) -> None:
    """Make these the first voters of a dynamic quorum; durable on return. The folder is made if there is none.

    Raises StorageFailed or FsyncFailed.
    """
    try:
        fs.make_folder(metadata_log_folder)
    except OSError as error:
        raise StorageFailed("create", metadata_log_folder, error) from error
    sync_folder(metadata_log_folder.parent, fs)
    replace_file(metadata_log_folder / FILE_NAME, encode_quorum_checkpoint(voters, now_ms), fs)


def read_quorum_checkpoint(metadata_log_folder: Path, fs: FileSystem = POSIX) -> tuple[QuorumRecord, ...]:
    """What the checkpoint says, at offset -1; nothing when there is none (a static quorum, or a node that is to learn
    the voters from the leader). Raises QuorumCheckpointDamaged."""
    path = metadata_log_folder / FILE_NAME
    try:
        content = fs.read(path)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise QuorumCheckpointDamaged(path, f"it cannot be read ({error.strerror})") from error
    try:
        return decode_quorum_checkpoint(content)
    except DecodeError as error:
        raise QuorumCheckpointDamaged(path, str(error)) from error


def encode_quorum_checkpoint(voters: VoterSet, now_ms: int) -> bytes:
    """The file's content. `now_ms` is also the header's timestamp, as Kafka's storage tool does it."""
    first: tuple[ControlRecord, ...] = (
        SnapshotHeaderRecord(last_contained_log_timestamp=now_ms),
        KRaftVersionRecord(k_raft_version=DYNAMIC_KRAFT_VERSION),
        voters_record(voters),
    )
    return _control_batch(0, now_ms, first) + _control_batch(len(first), now_ms, (SnapshotFooterRecord(),))


def _control_batch(base_offset: int, now_ms: int, records: tuple[ControlRecord, ...]) -> bytes:
    return write_batch(
        base_offset=base_offset,
        leader_epoch=_EPOCH,
        timestamp_ms=now_ms,
        records=[encode_control_record(record) for record in records],
        control=True,
    )


def decode_quorum_checkpoint(content: bytes) -> tuple[QuorumRecord, ...]:
    """kraft.version and voters of the file, every batch checked; raises DecodeError.

    Data batches are passed over: Kafka may keep the first metadata records in the same file (KIP-1170).
    """
    controls = _control_records(content)
    if not controls or not isinstance(controls[0], SnapshotHeaderRecord):
        raise DecodeError("it does not begin with a snapshot header", 0)
    if not isinstance(controls[-1], SnapshotFooterRecord):
        raise DecodeError("its footer is missing, so it was never finished", len(content))
    for kind in (KRaftVersionRecord, VotersRecord):
        if sum(isinstance(record, kind) for record in controls) > 1:
            raise DecodeError(f"it has more than one {kind.__name__}")
    found: list[QuorumRecord] = []
    for record in controls:
        if isinstance(record, KRaftVersionRecord):
            found.append(KRaftVersionAt(_OFFSET, record.k_raft_version))
        elif isinstance(record, VotersRecord):
            found.append(VotersAt(_OFFSET, voter_set_of(record)))
    check_voter_sets(found)
    return tuple(found)


def _control_records(content: bytes) -> list[ControlRecord]:
    found: list[ControlRecord] = []
    position = 0
    while position < len(content):
        header = check_batch(content, position)
        if header.is_control:
            records = read_records(content, position, header)
            found.extend(decode_control_record(record.key, record.value) for record in records)
        position += header.size_in_bytes
    return found
