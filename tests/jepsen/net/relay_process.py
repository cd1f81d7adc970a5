"""The relay as the harness sees it: a TUN device in the hub's namespace, and the process that has its other end."""

import fcntl
import json
import os
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.jepsen.net.conditions import Condition, Tally

DEVICE = "kqrelay"
# Both addresses of a link, with a space between.
Route = str
_TUN = "/dev/net/tun"
_TUNSETIFF = 0x400454CA
_IFF_TUN_WITHOUT_HEADER = 0x0001 | 0x1000
_ANSWER_TIMEOUT_S = 10.0
_STOP_TIMEOUT_S = 5.0
_PROJECT_ROOT = Path(__file__).resolve().parents[3]


class RelayFailed(OSError):
    """The relay ended, or does not answer."""


class RelayProcess:
    """Start it in a thread that is inside the hub's namespace. It ends with the harness, however that ends."""

    def __init__(self) -> None:
        """Raises OSError when there is no TUN here."""
        self._lock = threading.Lock()
        tun = _open_tun()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tests.jepsen.net.relay", str(tun)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(tun,),
                env={**os.environ, "PYTHONPATH": str(_PROJECT_ROOT)},
                start_new_session=True,
                bufsize=0,
            )
        finally:
            os.close(tun)
        try:
            self.tallies()
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def change(self, conditions: Mapping[Route, Condition]) -> None:
        """What is wrong with each link; those that are not named are sound. Raises RelayFailed."""
        self._ask(json.dumps({route: asdict(condition) for route, condition in conditions.items()}))

    def tallies(self) -> dict[Route, Tally]:
        """Of all links that ever had a fault. Raises RelayFailed."""
        return {route: Tally(**tally) for route, tally in self._ask("").items()}

    def stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # It ends because its input is closed.
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _ask(self, command: str) -> Any:
        assert self._process.stdin is not None
        with self._lock:
            with suppress(BrokenPipeError):
                self._process.stdin.write(command.encode() + b"\n")
            return json.loads(self._answer())

    def _answer(self) -> bytes:
        assert self._process.stdout is not None
        answer = b""
        deadline = time.monotonic() + _ANSWER_TIMEOUT_S
        while not answer.endswith(b"\n"):
            left_s = max(0.0, deadline - time.monotonic())
            if not select.select([self._process.stdout], [], [], left_s)[0]:
                raise RelayFailed(
                    f"the relay of links with faults did not answer in {_ANSWER_TIMEOUT_S:.0f} s"
                )
            data = self._process.stdout.read(65_536)
            if not data:
                raise RelayFailed("the relay of links with faults has ended")
            answer += data
        return answer


def _open_tun() -> int:
    """A handle of a new device, which exists as long as a process holds it."""
    handle = os.open(_TUN, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(handle, _TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), _IFF_TUN_WITHOUT_HEADER))
    except BaseException:
        os.close(handle)
        raise
    return handle
