"""Bytes that are no message, and unknown methods: a call ends with a status, and nothing is logged as an error."""

import asyncio
import logging

import grpc
import pytest

from kquorum.wire.proto import inspect_pb2
from tests.support.grpc_harness import failure_of, run, serving, take_all
from tests.support.grpc_source import FakeSource
from tests.support.network import grpc_inputs as http2

MALFORMED = (b"\xff\xff", b"\x0a\x7f")
CALLS = {
    "unary": "/grpc.health.v1.Health/Check",
    "streamed answer": "/kquorum.v1.Inspect/ReadLog",
    "streamed by a coroutine": "/grpc.health.v1.Health/Watch",
    "streamed request": "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
}


@pytest.mark.parametrize("path", CALLS.values(), ids=CALLS)
def test_malformed_bytes_are_no_fault_of_the_node(path: str, caplog: pytest.LogCaptureFixture) -> None:
    """Each took a traceback in the log, at level ERROR, with which a client could fill the disk."""

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


def test_a_header_that_is_not_text_is_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """It was there whole, as an error: it may be a password, or 8 KiB of anything."""
    headers = http2.headers(b"/grpc.health.v1.Health/Check", http2.field(b"authorization", b"sEcret\xff"))
    call = http2.frame(http2.HEADERS, http2.END_HEADERS, 1, headers)

    async def main() -> None:
        async with serving(FakeSource()) as rig:
            reader, writer = await asyncio.open_connection("127.0.0.1", rig.server.bound_port)
            writer.write(
                http2.OPENING + call + http2.frame(http2.DATA, http2.END_STREAM, 1, http2.message(b""))
            )
            while data := await reader.read(65_536):
                if http2.has_ended(data):
                    break
            writer.close()

    with caplog.at_level(logging.WARNING):
        run(main)
    assert not caplog.records


def test_a_kind_of_change_that_is_not_known_is_refused() -> None:
    """It was a ValueError in the node's log; a newer client may know more kinds."""

    async def main() -> grpc.aio.AioRpcError:
        async with serving(FakeSource()) as rig:
            return await failure_of(take_all(rig.stub.Watch(inspect_pb2.WatchRequest(kinds=[2, 99]))))

    failure = run(main)
    assert failure.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "change kind 99 is not known; there are " in str(failure.details())


@pytest.mark.parametrize("length", [65, 16_000])
def test_a_long_name_of_a_type_is_neither_compared_nor_sent_back(length: int) -> None:
    """The search for a near name took 20 ms of the leader's loop for one of 250 KB."""

    async def main() -> str:
        async with serving(FakeSource()) as rig:
            request = inspect_pb2.ReadLogRequest(types=["TopicRecord" * (length // 11 + 1)])
            return str((await failure_of(take_all(rig.stub.ReadLog(request)))).details())

    said = run(main)
    assert said.startswith("no record type is named 'TopicRecordTopicRecord")
    assert "did you mean" not in said
    assert len(said) < 120
