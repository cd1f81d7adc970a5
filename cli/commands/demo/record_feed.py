"""Lines that go into `kquorum produce` while brokers die, and what must be true of what is consumed afterwards."""

import json
import subprocess
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Self, cast

KEYS = 12
RECORDS_AT_A_TIME = 200
# Between two batches: the demo shows a stream, and leaves the machine to the brokers.
_PAUSE_S = 0.05
# On a loaded machine what waits in the pipe takes its time: the command is late only when nothing is acknowledged.
_STALLED_AFTER_S = 60.0


class RecordFeed:
    """Keeps `command` (kquorum produce --json) supplied until it is left; then all that was sent is acknowledged, or
    `error` says why not."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._is_over = threading.Event()
        self.sent = 0
        self.acknowledged = 0
        self.error: str | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._write, self._read, self._listen)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        if kind is not None or not self._ends():
            self._process.kill()
            self._process.wait()
        for thread in self._threads:
            thread.join()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with suppress(OSError):  # what the command did not read any more
                cast(IO[str], stream).close()

    def wrong(self, consumed: Iterable[str]) -> str | None:
        """What contradicts the acknowledgements in the lines of `kquorum consume --keys`, or None."""
        if self._process.returncode != 0 or self.acknowledged != self.sent:
            return f"{self.acknowledged} of {self.sent} records were acknowledged: {self.error}"
        by_key: dict[str, list[int]] = {}
        for line in consumed:
            key, _, value = line.partition("\t")
            by_key.setdefault(key, []).append(int(value))
        for number in range(min(KEYS, self.sent)):
            expected = list(range(number, self.sent, KEYS))
            if by_key.get(f"key {number}") != expected:
                found = len(by_key.get(f"key {number}", ()))
                return f"of the {len(expected)} records with key {number}, {found} are there, or in another order"
        return None

    def _ends(self) -> bool:
        while True:
            acknowledged = self.acknowledged
            try:
                self._process.wait(_STALLED_AFTER_S)
            except subprocess.TimeoutExpired:
                if self.acknowledged == acknowledged:
                    self.error = (
                        f"for {_STALLED_AFTER_S:.0f} s after its input, the command got no acknowledgement"
                    )
                    return False
            else:
                return True

    def _write(self) -> None:
        target = cast(IO[str], self._process.stdin)
        with suppress(OSError):  # the command has ended, and has said why
            while not self._is_over.wait(_PAUSE_S):
                numbers = range(self.sent, self.sent + RECORDS_AT_A_TIME)
                target.write("".join(f"key {number % KEYS}:{number}\n" for number in numbers))
                target.flush()
                self.sent = numbers.stop
            target.close()

    def _read(self) -> None:
        for line in cast(IO[str], self._process.stdout):
            appended = json.loads(line)
            self.acknowledged += appended["last_offset"] - appended["first_offset"] + 1

    def _listen(self) -> None:
        for line in cast(IO[str], self._process.stderr):
            self.error = line.strip()
