"""A follower begins where it is told to: at the first record of all, or wherever the log begins."""

from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from tests.jepsen.inspector import LogFollower
from wire.proto import inspect_pb2 as pb

WAIT_S = 20.0
LOG_START, IMAGE = 40, 44


class OutOfRange(grpc.RpcError):
    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.OUT_OF_RANGE


class Stream:
    def __init__(self, records: Iterator[pb.LogRecord]) -> None:
        self._records = records

    def __iter__(self) -> Iterator[pb.LogRecord]:
        return self._records

    def cancel(self) -> None: ...


class Node:
    """An inspector of a node that keeps offsets 40 to 49 and has an image of the log up to 44."""

    def __init__(self) -> None:
        self.asked: list[int | None] = []

    def follow(self, from_offset: int | None) -> Stream:
        self.asked.append(from_offset)
        return Stream(self._from(LOG_START if from_offset is None else from_offset))

    def image(self, _consistency: int) -> list[pb.ImageChunk]:
        return [pb.ImageChunk(header=pb.ImageHeader(provenance=pb.Provenance(offset=IMAGE, epoch=3)))]

    def close(self) -> None: ...

    def _from(self, start: int) -> Iterator[pb.LogRecord]:
        if start < LOG_START:
            raise OutOfRange
        for offset in range(start, 50):
            yield pb.LogRecord(offset=offset, high_watermark=50)


@pytest.mark.parametrize(
    ("misses_the_gone", "first_asked", "first_shown", "image"),
    [(True, None, LOG_START, None), (False, 0, IMAGE + 1, (IMAGE, 3))],
)
def test_a_follower_of_a_log_whose_begin_is_gone(
    misses_the_gone: bool, first_asked: int | None, first_shown: int, image: tuple[int, int] | None
) -> None:
    node: Any = Node()
    follower = LogFollower(node, misses_the_gone=misses_the_gone)
    try:
        delivered = follower.take(WAIT_S)
    finally:
        follower.close()
    assert node.asked[0] == first_asked
    assert delivered.records[0].offset == first_shown
    assert delivered.image == image
