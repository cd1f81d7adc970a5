"""The sockets of a listener when the process has no descriptors left."""

import asyncio
import errno
import logging
import socket
from typing import Any

import pytest

from kquorum.network import listening
from kquorum.network.listening import Listening, listening_sockets
from tests.support.network.peers import HOST, RunTest, until


class Scarce:
    """A listening socket at which `accept` finds no descriptor while `is_exhausted`."""

    def __init__(self, real: socket.socket) -> None:
        self._real = real
        self.is_exhausted = True
        self.attempts = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def accept(self) -> tuple[socket.socket, Any]:
        self.attempts += 1
        if self.is_exhausted:
            raise OSError(errno.EMFILE, "Too many open files")
        return self._real.accept()


def test_without_descriptors_accepting_pauses_and_does_not_spin(
    run: RunTest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listening, "_PAUSE_S", 0.1)

    async def test() -> None:
        loop = asyncio.get_running_loop()
        [real] = await listening_sockets(loop, HOST, 0)
        scarce, accepted = Scarce(real), list[socket.socket]()
        found: Any = [scarce]
        listener = Listening(loop, found, lambda opened, _peer: accepted.append(opened))
        try:
            _, writer = await asyncio.open_connection(HOST, listener.bound_port)
            await until(lambda: scarce.attempts > 0)
            for _ in range(200):
                await asyncio.sleep(0)
            assert scarce.attempts == 1, "connections in the kernel's queue must not keep the loop busy"
            scarce.is_exhausted = False
            await until(lambda: len(accepted) == 1)
            writer.close()
        finally:
            listener.close()
            for opened in accepted:
                opened.close()

    with caplog.at_level(logging.ERROR):
        run(test())
    (line,) = [record.getMessage() for record in caplog.records if record.name == "network.server"]
    assert line.startswith("no connection can be accepted now")


def test_a_listener_that_is_closed_during_the_pause_stays_closed(
    run: RunTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "_PAUSE_S", 0.02)

    async def test() -> None:
        loop = asyncio.get_running_loop()
        [real] = await listening_sockets(loop, HOST, 0)
        scarce = Scarce(real)
        found: Any = [scarce]
        listener = Listening(loop, found, lambda _opened, _peer: None)
        _, writer = await asyncio.open_connection(HOST, listener.bound_port)
        try:
            await until(lambda: scarce.attempts > 0)
        finally:
            listener.close()
        attempts, began_s = scarce.attempts, loop.time()
        await until(lambda: loop.time() > began_s + 0.05)
        assert scarce.attempts == attempts
        writer.close()

    run(test())
