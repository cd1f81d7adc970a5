"""Bytes that are no message, and methods that nobody serves: a call ends with a status, and the log stays as it is."""

import logging

import grpc
import pytest

from tests.unit.grpc.fake_source import FakeSource
from tests.unit.grpc.harness import failure_of, run, serving, take_all

MALFORMED = (b"\xff\xff", b"\x0a\x7f")
CALLS = {
    "unary": "/grpc.health.v1.Health/Check",
    "streamed answer": "/kquorum.v1.Inspect/ReadLog",
    "streamed by a coroutine": "/grpc.health.v1.Health/Watch",
    "streamed request": "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
}


@pytest.mark.parametrize("path", CALLS.values(), ids=CALLS)
def test_malformed_bytes_are_no_fault_of_the_node(path: str, caplog: pytest.LogCaptureFixture) -> None:
    """Each took a traceback in the log, at level ERROR, which a stranger could fill the disk with."""

    async def main() -> list[grpc.StatusCode]:
        async with serving(FakeSource()) as rig:
            if "Reflection" in path:
                calls = [rig.channel.stream_stream(path)(iter([data])) for data in MALFORMED]
            else:
                calls = [rig.channel.unary_stream(path)(data) for data in MALFORMED]
            return [(await failure_of(take_all(call))).code() for call in calls]

    with caplog.at_level(logging.WARNING):
        assert run(main) == [grpc.StatusCode.INTERNAL] * len(MALFORMED)
    assert not caplog.records


def test_a_method_that_a_service_leaves_out_is_no_fault_of_the_node(caplog: pytest.LogCaptureFixture) -> None:
    """grpc-health-checking's `List` is one."""

    async def main() -> grpc.StatusCode:
        async with serving(FakeSource()) as rig:
            return (await failure_of(rig.channel.unary_unary("/grpc.health.v1.Health/List")(b""))).code()

    with caplog.at_level(logging.WARNING):
        assert run(main) is grpc.StatusCode.UNIMPLEMENTED
    assert not caplog.records
