"""One call without a login, with a path that is not UTF-8, ended the gRPC listener until the node was restarted.

That is a fault of grpcio from 1.84 on: its task that accepts calls decodes the path, and ends with the error.
"""

import asyncio
import logging

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.support.grpc_harness import run, serving
from tests.support.grpc_source import FakeSource
from tests.support.network import grpc_inputs as http2

SERVING = health_pb2.HealthCheckResponse.SERVING


def test_a_path_that_is_not_text_ends_nothing_but_its_call(caplog: pytest.LogCaptureFixture) -> None:
    headers = http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.headers(b"/kquorum\x80.v1/X"))
    call = http2.OPENING + headers + http2.frame(http2.DATA, http2.END_STREAM, 1, http2.message(b""))

    async def main() -> int:
        async with serving(FakeSource()) as rig:
            reader, writer = await asyncio.open_connection("127.0.0.1", rig.server.bound_port)
            writer.write(call)
            # Until the call has its status, or the server has closed the connection.
            while data := await reader.read(65_536):
                if http2.has_ended(data):
                    break
            writer.close()
            stub = health_pb2_grpc.HealthStub(rig.channel)
            return int((await stub.Check(health_pb2.HealthCheckRequest())).status)

    with caplog.at_level(logging.WARNING):
        assert run(main) == SERVING
    assert not caplog.records, "a client's bytes are in the log, with a traceback"
