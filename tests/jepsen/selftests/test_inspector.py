"""A follower begins at the given offset, if the log still has it."""

from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from kquorum.cli.processes import wait_until
from kquorum.wire.proto import inspect_pb2 as pb
from tests.jepsen.core.inspector import LogFollower

WAIT_S = 20.0
LOG_START, IMAGE = 40, 44


class OutOfRange(grpc.RpcError):  # type: ignore[misc] # of a package without types
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

    def __init__(self, log_start: int = LOG_START) -> None:
        self.asked: list[int] = []
        self._log_start = log_start

    def follow(self, from_offset: int) -> Stream:
        self.asked.append(from_offset)
        return Stream(self._from(from_offset))

    def image(self, _consistency: int) -> list[pb.ImageChunk]:
        return [pb.ImageChunk(header=pb.ImageHeader(provenance=pb.Provenance(offset=IMAGE, epoch=3)))]

    def close(self) -> None: ...

    def _from(self, start: int) -> Iterator[pb.LogRecord]:
        if start < self._log_start:
            raise OutOfRange
        for offset in range(start, 50):
            yield pb.LogRecord(offset=offset, high_watermark=50)


@pytest.mark.parametrize(
    ("from_offset", "first_asked", "first_shown", "image"),
    [(0, 0, IMAGE + 1, (IMAGE, 3)), (45 + LogFollower.OVERLAP, 45, 45, None)],
)
def test_a_follower_begins_a_little_before_its_place_or_with_an_image_where_that_is_gone(
    from_offset: int, first_asked: int, first_shown: int, image: tuple[int, int] | None
) -> None:
    node: Any = Node()
    follower = LogFollower(node, from_offset)
    try:
        delivered = follower.take(WAIT_S)
    finally:
        follower.close()
    assert node.asked[0] == first_asked
    assert delivered.records[0].offset == first_shown
    assert delivered.image == image


def test_a_stream_that_starts_again_goes_on_once_what_came_before_it_is_taken() -> None:
    """The node's streams end at once, so that the next one begins while the records of the first wait."""
    node: Any = Node(log_start=0)
    follower = LogFollower(node)
    try:
        first = follower.take(WAIT_S)
        wait_until(lambda: len(node.asked) > 2, WAIT_S)  # and this one finds records that wait
        second = follower.take(WAIT_S)
        third = follower.take(WAIT_S)
    finally:
        follower.close()
    assert all(each.is_reset and each.records for each in (first, second, third))
