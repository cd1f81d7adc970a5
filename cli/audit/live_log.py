"""Logs of running nodes as folders: for a build a copy that is gone afterwards, for a stream one that goes on."""

import asyncio
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cli.audit.live_copy import LiveCopy, live_address
from cli.output import remark
from node.config.addresses import HostPort


@contextmanager
def local_copies(inputs: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The inputs, with a copy in the place of each `grpc://HOST:PORT`. Raises CliError."""
    if all(live_address(each) is None for each in inputs):
        yield tuple(inputs)
        return
    with tempfile.TemporaryDirectory(prefix="kquorum-live-") as work:
        found = []
        for number, each in enumerate(inputs):
            address = live_address(each)
            if address is None:
                found.append(each)
            else:
                tell(f"copying the log of {address}")
                copy = LiveCopy(address, Path(work) / str(number), tell)
                found.append(str(asyncio.run(copy.catch_up())))
        yield tuple(found)


@contextmanager
def followed(address: HostPort, folder: Path, *, once: bool) -> Iterator["FollowedLog"]:
    """The node's log beneath `folder`, as of now, and unless it is for `once` as it goes on. Raises CliError."""
    tell(f"copying the log of {address}")
    copy = LiveCopy(address, folder, tell)
    path = asyncio.run(copy.catch_up())
    log = FollowedLog(path, copy)
    if once:
        yield log
        return
    log.start()
    try:
        yield log
    finally:
        log.stop()


class FollowedLog:
    """A copy that a thread keeps up to date."""

    def __init__(self, path: Path, copy: LiveCopy) -> None:
        self.path = path
        self._copy = copy
        self._failed: BaseException | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="live-log", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises what ended the copying, a CliError."""
        if self._failed is not None:
            raise self._failed

    def stop(self) -> None:
        with suppress(RuntimeError):  # the loop is closed already: the copying has failed
            self._loop.call_soon_threadsafe(self._cancel)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._task = self._loop.create_task(self._copy.follow())
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised again by `check`
            self._failed = error
        finally:
            self._loop.close()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


def tell(text: str) -> None:
    remark(text)
