"""Every test of the network runs on asyncio's own loop and on uvloop: their transports differ in what they allow."""

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.support.certificates import authority, issued, write
from tests.support.network.peers import HOST, RunTest

TEST_TIMEOUT_S = 120


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[RunTest]:
    """Runs one coroutine to its end; a hang is a failure, and so is an error that only the loop heard of."""
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
    unhandled: list[dict[str, Any]] = []

    def run_test(test: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.get_loop().set_exception_handler(lambda _, context: unhandled.append(context))
            runner.run(asyncio.wait_for(test, TEST_TIMEOUT_S))

    yield run_test
    assert unhandled == []


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    """A key, its certificate, and the authority of that."""
    path = tmp_path / "server.pem"
    write(path, issued("test", HOST) + authority().pem.decode())
    return path
