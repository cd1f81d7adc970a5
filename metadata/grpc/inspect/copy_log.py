"""A node's log as it is, for who keeps a copy: `CopyLog` and `CopySnapshot` of the `Inspect` service.

The bytes are those of the log, so secrets are in them: who may have them is who may fetch the log (the service sees to
that). Nothing is sent that is not committed.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from kquorum.metadata.grpc.feed import check_in_range
from kquorum.metadata.grpc.source import CommittedLog, NoSuchSnapshot
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.proto import inspect_pb2 as pb

CHUNK_BYTES: Final = 256 * 1024
# Snapshots are taken every few minutes at most; a look is a listing of the folder.
LOOK_EVERY_S: Final = 2.0


async def copy_log(log: CommittedLog, request: pb.CopyLogRequest) -> AsyncGenerator[pb.LogCopy]:
    """The files beside the log, then its batches. Raises OffsetOutOfRange, NotReady, LogUnreadable, ServerStopping."""
    log.check_ready()
    loop = asyncio.get_running_loop()
    end = None if request.follow else log.high_watermark
    names, looked_at = await log.source.snapshots(), loop.time()
    yield _files(log, names)
    position = request.from_offset if request.HasField("from_offset") else log.source.log_start_offset()
    check_in_range(log, position, follow=request.follow)
    while end is None or position < end:
        batches = _committed(log, position)
        if batches:
            yield pb.LogCopy(
                batches=b"".join(batch.data for batch in batches), high_watermark=log.high_watermark
            )
            position = batches[-1].next_offset
            await asyncio.sleep(0)  # the node's other work gets a turn
        else:
            await log.wait_for_more()
        if end is None and loop.time() - looked_at >= LOOK_EVERY_S:
            found, looked_at = await log.source.snapshots(), loop.time()
            if found != names:
                names = found
                yield _files(log, names)


def _committed(log: CommittedLog, position: int) -> list[LogBatch]:
    """Some batches from `position` on; none where there is no more, or the high watermark lies within the next one."""
    if log.high_watermark <= position:
        return []
    found = log.read(position, log.high_watermark)
    return [batch for batch in found if batch.next_offset <= log.high_watermark]


def _files(log: CommittedLog, names: tuple[str, ...]) -> pb.LogCopy:
    source = log.source
    files = pb.LogFiles(
        cluster_id=source.cluster_id,
        node_id=source.node_id,
        log_start_offset=source.log_start_offset(),
        snapshots=names,
    )
    return pb.LogCopy(files=files, high_watermark=log.high_watermark)


async def copy_snapshot(log: CommittedLog, name: str) -> AsyncGenerator[pb.FileChunk]:
    """Raises NoSuchSnapshot."""
    position, size = 0, -1
    while position != size:
        data, size = await log.source.read_snapshot(name, position, CHUNK_BYTES)
        if not data and position < size:
            raise NoSuchSnapshot(f"{name} has become shorter")
        yield pb.FileChunk(position=position, size_in_bytes=size, data=data)
        position += len(data)
