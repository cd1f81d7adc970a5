"""Inspect.CopyLog and Inspect.CopySnapshot over real loopback gRPC: the bytes of the log, only what is committed."""

import grpc
import pytest

from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.proto import inspect_pb2 as pb
from tests.support.grpc_harness import Rig, failure_of, run, serving, take, take_all
from tests.support.grpc_source import FakeSource, topic

SNAPSHOT = "00000000000000000002-0000000003.checkpoint"


def filled_source() -> FakeSource:
    """Offsets 0 to 3 committed, 4 not."""
    source = FakeSource()
    for number in range(4):
        source.commit(topic(f"topic-{number}", number))
    source.append(NoOpRecord())
    source.snapshot_files = {SNAPSHOT: bytes(range(256)) * 2500}
    return source


def copied(request: pb.CopyLogRequest, source: FakeSource) -> list[pb.LogCopy]:
    async def main() -> list[pb.LogCopy]:
        async with serving(source) as rig:
            return await take_all(rig.stub.CopyLog(request))

    return run(main)


def bytes_of(messages: list[pb.LogCopy]) -> bytes:
    return b"".join(message.batches for message in messages)


def test_the_committed_batches_come_as_they_are_behind_what_lies_beside_the_log() -> None:
    source = filled_source()
    first, *rest = copied(pb.CopyLogRequest(), source)
    assert first.files == pb.LogFiles(
        cluster_id=source.cluster_id, node_id=7, log_start_offset=0, snapshots=[SNAPSHOT]
    )
    assert bytes_of(rest) == b"".join(batch.data for batch in source.batches[:4])
    assert bytes_of(copied(pb.CopyLogRequest(from_offset=2), source)) == b"".join(
        batch.data for batch in source.batches[2:4]
    )
    assert [
        message.WhichOneof("content") for message in copied(pb.CopyLogRequest(from_offset=4), source)
    ] == ["files"]


def test_a_batch_that_the_high_watermark_cuts_is_not_sent() -> None:
    source = filled_source()
    source.append(NoOpRecord(), NoOpRecord())
    source.committed = 6

    async def main() -> bytes:
        async with serving(source) as rig:
            call = rig.stub.CopyLog(pb.CopyLogRequest(from_offset=3, follow=True))
            return bytes_of(await take(call, 2))

    assert bytes_of(copied(pb.CopyLogRequest(from_offset=3), _committed_up_to(source, 5))) == b"".join(
        batch.data for batch in source.batches[3:5]
    )
    assert run(main) == b"".join(batch.data for batch in source.batches[3:5])


def _committed_up_to(source: FakeSource, offset: int) -> FakeSource:
    other = FakeSource()
    other.batches, other.image, other.committed = source.batches, source.image, offset
    return other


def test_what_is_committed_later_follows_and_so_does_the_name_of_a_new_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kquorum.metadata.grpc.inspect.copy_log.LOOK_EVERY_S", 0.01)
    source = filled_source()

    async def main() -> tuple[bytes, list[str]]:
        async with serving(source) as rig:
            call = rig.stub.CopyLog(pb.CopyLogRequest(from_offset=4, follow=True))
            await take(call, 1)
            source.commit_all()
            (batches,) = await take(call, 1)
            source.snapshot_files["later"] = b""
            (files,) = await take(call, 1)
            return batches.batches, list(files.files.snapshots)

    batches, names = run(main)
    assert batches == source.batches[4].data
    assert names == [SNAPSHOT, "later"]


def test_below_the_start_of_the_log_there_is_nothing_but_what_lies_beside_it() -> None:
    source = filled_source()
    source.start = 2

    async def main() -> tuple[pb.LogCopy, grpc.aio.AioRpcError]:
        async with serving(source) as rig:
            call = rig.stub.CopyLog(pb.CopyLogRequest(from_offset=1))
            (first,) = await take(call, 1)
            return first, await failure_of(call.read())

    first, error = run(main)
    assert (first.files.log_start_offset, first.high_watermark) == (2, 4)
    assert error.code() is grpc.StatusCode.OUT_OF_RANGE
    assert bytes_of(copied(pb.CopyLogRequest(), source)) == b"".join(
        batch.data for batch in source.batches[2:4]
    )


def test_a_snapshot_comes_in_chunks_and_one_that_is_gone_is_not_found() -> None:
    source = filled_source()

    async def main() -> tuple[list[pb.FileChunk], grpc.aio.AioRpcError]:
        async with serving(source) as rig:
            return await _chunks(rig, SNAPSHOT), await failure_of(_chunks(rig, "../quorum-state"))

    chunks, error = run(main)
    assert len(chunks) > 1
    assert b"".join(chunk.data for chunk in chunks) == source.snapshot_files[SNAPSHOT]
    assert [chunk.position for chunk in chunks] == [
        sum(len(each.data) for each in chunks[:index]) for index in range(len(chunks))
    ]
    assert error.code() is grpc.StatusCode.NOT_FOUND


async def _chunks(rig: Rig, name: str) -> list[pb.FileChunk]:
    return await take_all(rig.stub.CopySnapshot(pb.CopySnapshotRequest(name=name)))
