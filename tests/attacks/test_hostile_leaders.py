"""What a leader that lies answers must not end a follower without a word, destroy what it has, or keep it busy.

Raft trusts a voter with valid credentials to keep to the protocol. So what it says of records that are not committed
here counts; nothing else does.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from crc32c import crc32c

from kquorum.cli.failures import ExitStatus
from kquorum.cli.main import run
from kquorum.cli.processes import NodeProcess, wait_until
from kquorum.node.config.materialise import free_ports
from kquorum.node.snapshot_loading import SnapshotLoading
from kquorum.raft.adapters.kafka_codec import fetch as fetch_codec
from kquorum.raft.adapters.kafka_codec import vote as vote_codec
from kquorum.raft.adapters.snapshot_files import SnapshotStore, SnapshotUnsound
from kquorum.raft.errors import LogDivergedBelowHighWatermarkError
from kquorum.raft.inputs import SnapshotPieceWritten, SnapshotRefused
from kquorum.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    VoteResponse,
)
from kquorum.raft.ready import QuorumState, SnapshotChunk
from kquorum.raft.voters import ReplicaKey, Voter, VoterSet, voters_record
from kquorum.storage.errors import StorageFailed, StorageFull
from kquorum.wire.control_records import (
    ControlRecord,
    ControlRecordType,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    encode_control_record,
)
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, build_batch
from kquorum.wire.messages import fetch, vote
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.metadata_records.topics import PartitionRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.record_batch import write_batch
from kquorum.wire.record_frame import encode_record
from tests.support.fake_nodes import fake_node
from tests.support.fault_file_system import FaultFileSystem
from tests.support.raft.context import RaftContext, batch
from tests.support.single_node import HOST, write_config

EPOCH = 3
COMMITTED, END = 4, 6


def following() -> tuple[RaftContext, FetchResponse]:
    """A follower with six records, four of them committed, and a response that has nothing new."""
    context = RaftContext(
        (1, 2),  # so that there is no other to be asked meanwhile
        log=[batch(0, 1, 2), batch(2, 2, 2), batch(4, 2, 2)],
        state=QuorumState(leader_epoch=EPOCH, leader_id=2),
    )
    answer = context.fetched(high_watermark=COMMITTED)
    assert isinstance(answer, FetchResponse)
    (fetch,) = context.sent(FetchRequest)
    context.answer(fetch, answer)
    assert (context.node.high_watermark, context.log_end_offset) == (COMMITTED, END)
    return context, answer


def control(key: bytes, value: bytes, epoch: int = EPOCH) -> bytes:
    return build_batch(END, epoch, 1, [(key, value)], control=True).data


def of_type(control_type: int, value: bytes) -> bytes:
    return control(b"\0\0" + control_type.to_bytes(2, "big"), value)


def voters(*ids: int) -> bytes:
    directory = UUID(int=9)
    named = VoterSet({each: Voter(ReplicaKey(each, directory)) for each in ids})
    return control(*encode_control_record(voters_record(named)))


def voter_twice() -> bytes:
    record = voters_record(VoterSet({1: Voter(ReplicaKey(1, UUID(int=9)))}))
    return control(*encode_control_record(replace(record, voters=record.voters * 2)))


def with_changed_byte(made: LogBatch) -> bytes:
    return made.data[:-1] + bytes([made.data[-1] ^ 1])


def with_last_offset_delta(delta: int) -> bytes:
    """A batch of one record that takes so many offsets, and has the checksum for it."""
    data = bytearray(batch(END, EPOCH).data)
    data[23:27] = delta.to_bytes(4, "big", signed=True)
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


RECORDS: dict[str, Callable[[], bytes]] = {
    "garbage": lambda: b"\xff" * 1_000,
    "zeros": lambda: bytes(1_000),
    "a wrong checksum": lambda: with_changed_byte(batch(END, EPOCH)),
    "a gap": lambda: batch(END + 1, EPOCH).data,
    "the farthest offset": lambda: build_batch(2**63 - 1, EPOCH, 1, [(None, b"x")]).data,
    "an offset below zero": lambda: build_batch(-1, EPOCH, 1, [(None, b"x")]).data,
    "more offsets than records": lambda: with_last_offset_delta(2**31 - 1),
    "a last offset before the first": lambda: with_last_offset_delta(-(2**31)),
    "what is there already": lambda: batch(0, 1, 2).data,
    "a later epoch": lambda: batch(END, EPOCH + 1).data,
    "an epoch that goes back": lambda: batch(END, 1).data,
    "an epoch below zero": lambda: batch(END, -1).data,
    "no voters": voters,
    "a voter below zero": lambda: voters(1, 2, -3),
    "voters that cannot be read": lambda: of_type(ControlRecordType.KRAFT_VOTERS, b"\0\0\xff\xff"),
    "a kraft.version that cannot be read": lambda: of_type(ControlRecordType.KRAFT_VERSION, b""),
    "a voter that is there twice": voter_twice,
}
# Readers pass over control records that they do not know, as those of later releases.
TAKEN: dict[str, Callable[[], bytes]] = {
    "an absurd kraft.version": lambda: control(
        *encode_control_record(KRaftVersionRecord(k_raft_version=32_767))
    ),
    "an unknown control record": lambda: of_type(99, b"\xff"),
    "a control record without a key": lambda: control(b"", b""),
    "a leader change that cannot be read": lambda: of_type(ControlRecordType.LEADER_CHANGE, b"\xff"),
}
WITHOUT_NEWS = {
    "a high watermark beyond the log",
    "a high watermark that goes back",
    "a high watermark below zero",
    "another leader",
    "a leader that is no voter",
}
ANSWERS: dict[str, Callable[[FetchResponse], FetchResponse]] = {
    **{
        name: lambda answer, made=made: replace(answer, records=made())  # type: ignore[misc]
        for name, made in (RECORDS | TAKEN).items()
    },
    "a high watermark beyond the log": lambda answer: replace(answer, high_watermark=2**63 - 1),
    "a high watermark that goes back": lambda answer: replace(answer, high_watermark=0),
    "a high watermark below zero": lambda answer: replace(answer, high_watermark=-(2**63)),
    "an epoch that has gone": lambda answer: replace(answer, leader_epoch=EPOCH - 1),
    "an epoch below zero as its own": lambda answer: replace(answer, leader_epoch=-1),
    "an epoch without a successor": lambda answer: replace(answer, leader_epoch=2**31 - 1),
    "another leader": lambda answer: replace(answer, leader_id=3),
    "a leader that is no voter": lambda answer: replace(answer, leader_id=99),
    "a divergence at the end of the log": lambda answer: replace(answer, diverging=OffsetAndEpoch(END, 2)),
    "a divergence beyond the log": lambda answer: replace(answer, diverging=OffsetAndEpoch(2**62, 2)),
    "a divergence in a later epoch": lambda answer: replace(answer, diverging=OffsetAndEpoch(2**62, 2**30)),
    "a divergence below zero": lambda answer: replace(answer, diverging=OffsetAndEpoch(-1, 2)),
    "a snapshot that is there": lambda answer: replace(answer, snapshot_id=OffsetAndEpoch(0, 0)),
    "a snapshot below zero": lambda answer: replace(answer, snapshot_id=OffsetAndEpoch(-5, 1)),
    "a snapshot at the farthest offset": lambda answer: replace(
        answer, snapshot_id=OffsetAndEpoch(2**63 - 1, EPOCH)
    ),
    "a snapshot of a later epoch": lambda answer: replace(answer, snapshot_id=OffsetAndEpoch(9, EPOCH + 1)),
    "a snapshot of what is committed": lambda answer: replace(answer, snapshot_id=OffsetAndEpoch(3, 2)),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_lie_costs_a_follower_nothing_and_is_not_asked_for_again_at_once(name: str) -> None:
    context, honest = following()
    end = END + 1 if name in TAKEN else END
    for _ in range(3):
        fetches = context.sent(FetchRequest)
        if not fetches:
            context.advance(context.config.retry_backoff_ms)
            fetches = context.sent(FetchRequest)
        before = (context.log_end_offset, context.node.high_watermark)
        context.answer(fetches[0], ANSWERS[name](honest))
        assert context.log_end_offset == end
        assert COMMITTED <= context.node.high_watermark <= end
        if (context.log_end_offset, context.node.high_watermark) == before:
            # An answer without news is as cheap to give as to ask for, and an honest leader may have to give it.
            assert name in WITHOUT_NEWS or not context.sent(FetchRequest), "it asks again without a pause"
    assert context.node.role in ("follower", "unattached")
    assert context.node.leader_epoch == EPOCH


@pytest.mark.parametrize("point", [OffsetAndEpoch(0, 0), OffsetAndEpoch(3, 2), OffsetAndEpoch(1, 1)])
def test_a_divergence_below_what_is_committed_ends_the_follower_with_a_reason(point: OffsetAndEpoch) -> None:
    context, honest = following()
    (fetch,) = context.sent(FetchRequest)
    with pytest.raises(LogDivergedBelowHighWatermarkError, match="one of the two logs has lost data"):
        context.answer(fetch, replace(honest, diverging=point))
    assert context.log_end_offset == END


PIECES: dict[str, dict[str, object]] = {
    "no bytes": {"data": b"", "size": 100},
    "a size below zero": {"data": b"x", "size": -1},
    "another position": {"data": b"x", "size": 100, "position": 50},
    "another snapshot": {"data": b"x", "size": 100, "snapshot_id": OffsetAndEpoch(10, EPOCH)},
    "no snapshot at all": {"data": b"x", "size": 100, "snapshot_id": None},
    "bytes that are no snapshot": {"data": b"x" * 100, "size": 100},
}


@pytest.mark.parametrize("name", PIECES)
def test_a_snapshot_that_is_none_leaves_the_log_and_is_fetched_again_after_a_pause(name: str) -> None:
    context, honest = following()
    snapshot_id = OffsetAndEpoch(9, EPOCH)
    for _ in range(3):
        fetches = context.sent(FetchRequest)
        if not fetches:
            context.advance(context.config.retry_backoff_ms)
            fetches = context.sent(FetchRequest)
        context.answer(fetches[0], replace(honest, snapshot_id=snapshot_id))
        (asked,) = context.sent(FetchSnapshotRequest)
        piece = FetchSnapshotResponse(leader_id=2, leader_epoch=EPOCH, snapshot_id=snapshot_id)
        context.answer(asked, replace(piece, **PIECES[name]))  # type: ignore[arg-type]
        if context.node.replica.installing is not None:
            context.feed(SnapshotPieceWritten())
            context.feed(SnapshotRefused(snapshot_id))
        assert (context.log_end_offset, context.node.high_watermark) == (END, COMMITTED)
        assert not context.sent(FetchRequest), "it asks again without a pause"


PARTITION = encode_record(
    PartitionRecord(partition_id=0, topic_id=UUID(int=1), replicas=(1,), isr=(1,), leader=1)
)
HEADER = SnapshotHeaderRecord(last_contained_log_timestamp=1)
FOOTER = SnapshotFooterRecord()
Pair = tuple[bytes | None, bytes | None]


def snapshot(*more: ControlRecord, between: tuple[Pair, ...] = (), control: bool = False) -> bytes:
    """A whole file as far as its batches, its header and its footer go."""
    batches: list[tuple[list[Pair], bool]] = [
        ([encode_control_record(each) for each in (HEADER, *more)], True)
    ]
    batches += [([pair], control) for pair in between] + [([encode_control_record(FOOTER)], True)]
    data, offset = b"", 0
    for records, is_control in batches:
        data += write_batch(
            base_offset=offset, leader_epoch=EPOCH, timestamp_ms=1, records=records, control=is_control
        )
        offset += len(records)
    return data


SNAPSHOTS: dict[str, Callable[[], bytes]] = {
    "no voters": lambda: snapshot(VotersRecord(voters=())),
    "voters that cannot be read": lambda: snapshot(
        between=((b"\0\0" + ControlRecordType.KRAFT_VOTERS.to_bytes(2, "big"), b"\xff"),), control=True
    ),
    "a control record without a key": lambda: snapshot(between=((b"", b""),), control=True),
    "a metadata record that cannot be read": lambda: snapshot(between=((None, b"\xff\xff\xff"),)),
    "a record of a partition without its topic": lambda: snapshot(between=((None, PARTITION),)),
}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_snapshot_is_looked_at_before_the_log_is_dropped_for_it(name: str, tmp_path: Path) -> None:
    """Its file took the place of the log, and could not be loaded then, nor at any start."""
    content, snapshot_id = SNAPSHOTS[name](), OffsetAndEpoch(9, EPOCH)
    store = SnapshotStore(tmp_path, objection=SnapshotLoading(tmp_path).objection)
    store.write_chunk(SnapshotChunk(snapshot_id, 0, content, True, len(content)))
    with pytest.raises(SnapshotUnsound, match=r"is not whole|cannot be loaded"):
        store.finish(snapshot_id)
    assert list(tmp_path.iterdir()) == []


def test_no_byte_is_written_of_a_snapshot_that_does_not_fit() -> None:
    """Whatever size a leader claims, it filled the disk before it was given up, and again half a minute later."""
    folder, snapshot_id = Path("/log"), OffsetAndEpoch(9, EPOCH)
    fs = FaultFileSystem(folder, capacity=1_000)
    store = SnapshotStore(folder, fs)
    for size in (1_001, 2**63 - 1):
        with pytest.raises(StorageFull, match=f"{size} bytes, and 1000 are free"):
            store.write_chunk(SnapshotChunk(snapshot_id, 0, b"x" * 10, False, size))
        assert fs.names(folder) == []
    store.write_chunk(SnapshotChunk(snapshot_id, 0, b"x" * 900, False, 1_000))
    store.write_chunk(SnapshotChunk(OffsetAndEpoch(10, EPOCH), 0, b"x" * 900, False, 1_000))
    assert len(fs.names(folder)) == 1, "the one before is given up first"


def test_what_was_loaded_is_not_kept_where_it_is_not_asked_for(tmp_path: Path) -> None:
    """A whole image stayed in memory when its file found no space, or the state was past it."""
    snapshot_id = OffsetAndEpoch(9, EPOCH)
    loading = SnapshotLoading(tmp_path)
    part = tmp_path / "fetched.part"
    part.write_bytes(snapshot())
    assert loading.objection(part, snapshot_id) is None
    loading.forget()
    with pytest.raises(StorageFailed, match="checkpoint"):
        loading.load(snapshot_id)


def test_a_sound_snapshot_is_loaded_once(tmp_path: Path) -> None:
    snapshot_id = OffsetAndEpoch(9, EPOCH)
    loading = SnapshotLoading(tmp_path)
    store = SnapshotStore(tmp_path, objection=loading.objection)
    store.write_chunk(SnapshotChunk(snapshot_id, 0, snapshot(), True, len(snapshot())))
    store.finish(snapshot_id)
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"")
    assert loading.load(snapshot_id).image.provenance.last_contained_offset == 8


class Liar:
    """The leader of epoch 3, which sends six records, and a lie in each answer from then on."""

    def __init__(self) -> None:
        self.lies: list[Callable[[FetchResponse], FetchResponse]] = []
        self.told = 0
        self.honest = FetchResponse(
            leader_id=2, leader_epoch=EPOCH, high_watermark=COMMITTED, log_start_offset=0
        )

    def answer_vote(self, _request: object) -> vote.VoteResponse:
        """A node that is slow to send its first Fetch asks for votes before, and hears here who leads."""
        return vote_codec.CODEC.encode_response(VoteResponse(leader_id=2, leader_epoch=EPOCH), None)

    def answer_fetch(self, request: fetch.FetchRequest) -> fetch.FetchResponse:
        asked = fetch_codec.CODEC.decode_request(request)
        assert isinstance(asked, FetchRequest)
        answer = self.honest
        if asked.current_leader_epoch == EPOCH and asked.fetch_offset == 0:
            records = [(None, encode_record(NoOpRecord()))] * 2
            batches = (build_batch(offset, EPOCH, 1, records) for offset in range(0, END, 2))
            answer = replace(answer, records=b"".join(each.data for each in batches))
        elif self.lies and asked.fetch_offset >= END:
            answer = self.lies[self.told % len(self.lies)](answer)
            self.told += 1
        return fetch_codec.CODEC.encode_response(answer, None)


@pytest.mark.slow
def test_a_node_survives_a_lying_leader_or_ends_with_a_reason(tmp_path: Path) -> None:
    liar = Liar()
    refused = {
        ApiKey.VOTE: liar.answer_vote,
        ApiKey.FETCH: liar.answer_fetch,
        ApiKey.FETCH_SNAPSHOT: lambda _: {"throttle_time": 0, "error_code": 98, "topics": []},
    }
    (port,) = free_ports(1)
    with fake_node(refused) as leader:
        values = {
            "process.roles": "controller",
            "listeners": f"CONTROLLER://{HOST}:{port}",
            "controller.quorum.voters": f"1@{HOST}:{port},2@{leader.address}",
        }
        config = write_config(tmp_path, values)
        assert run(["format", "-c", str(config)]) == 0
        process = NodeProcess(config, 1, tmp_path / "node.out")
        segment = tmp_path / "data" / "__cluster_metadata-0" / "00000000000000000000.log"
        try:
            process.start()
            assert wait_until(lambda: segment.exists() and segment.stat().st_size > 0, 60), process.output()
            taken = segment.read_bytes()
            # All its records are of this epoch, so that each divergence in an earlier one is below what is committed.
            liar.lies = [
                lie
                for name, lie in ANSWERS.items()
                if name not in TAKEN
                and (answer := lie(liar.honest)).leader_epoch == EPOCH
                and (answer.diverging is None or answer.diverging.epoch > EPOCH)
            ]
            assert wait_until(lambda: liar.told > 3 * len(liar.lies) or not process.is_running, 60)
            assert process.is_running, process.output()
            assert segment.read_bytes() == taken
            liar.lies = [lambda answer: replace(answer, diverging=OffsetAndEpoch(1, EPOCH))]
            assert wait_until(lambda: not process.is_running, 30)
            assert process.exit_status == ExitStatus.DAMAGED_INPUT
            assert "one of the two logs has lost data" in process.output()
            assert "internal error" not in process.output()
            assert "Traceback" not in process.output()
            assert segment.read_bytes() == taken
        finally:
            process.kill()
