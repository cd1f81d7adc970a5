"""Do the broker's directories still answer? The broker reports a failed one to the controller, which takes its
partitions away.

A failed append or read tells it at once. A directory that nothing is written to is asked now and then for the one file
that must be in it. As in Kafka a directory that failed stays offline until the broker is started again.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from uuid import UUID

from kquorum.raft.adapters.errors import FORMAT_FIRST
from kquorum.storage.errors import EnvironmentFault
from kquorum.storage.meta_properties import read_meta_properties

LOOK_EVERY_S: Final = 10.0
log = logging.getLogger("broker.log_dirs")

Probe = Callable[[Path], UUID | None]


def directory_id_in(folder: Path) -> UUID | None:
    """Raises EnvironmentFault or OSError where the folder does not answer as it should."""
    return read_meta_properties(folder, remedy=FORMAT_FIRST).directory_id


class LogDirWatch:
    """Made and used on the loop; a disk that hangs holds up nothing but the next look."""

    def __init__(
        self,
        directories: Mapping[Path, UUID],
        probe: Probe = directory_id_in,
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._directories = dict(directories)
        self._probe = probe
        self._look_every_s = look_every_s
        self._offline: list[UUID] = []
        self._task: asyncio.Task[None] | None = None
        self._tell: Callable[[tuple[UUID, ...]], None] = lambda _offline: None

    @property
    def offline(self) -> tuple[UUID, ...]:
        return tuple(self._offline)

    def start(self, tell: Callable[[tuple[UUID, ...]], None]) -> None:
        """`tell` hears of all that are offline whenever there is one more."""
        self._tell = tell
        if self._offline:
            tell(self.offline)
        if self._directories:
            self._task = asyncio.get_running_loop().create_task(self._watch())

    def set_offline(self, directory_id: UUID) -> None:
        """A log could not be read or written there."""
        if directory_id in self._offline:
            return
        self._directories = {
            folder: each for folder, each in self._directories.items() if each != directory_id
        }
        self._offline.append(directory_id)
        self._tell(self.offline)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        while self._directories:
            for folder, directory_id in tuple(self._directories.items()):
                reason = await self._ask(folder, directory_id)
                if reason and folder in self._directories:
                    log.error(
                        "the log directory %s is offline until this broker is started again: %s",
                        folder,
                        reason,
                    )
                    self.set_offline(directory_id)
            await asyncio.sleep(self._look_every_s)

    async def _ask(self, folder: Path, directory_id: UUID) -> str:
        """In a thread that the end of the process does not wait for: a disk may hang for good."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[str] = loop.create_future()

        def tell(reason: str) -> None:
            if not answered.done():
                answered.set_result(reason)

        def ask() -> None:
            reason = self._why_offline(folder, directory_id)
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(tell, reason)

        threading.Thread(target=ask, name="kquorum-log-dirs", daemon=True).start()
        return await answered

    def _why_offline(self, folder: Path, directory_id: UUID) -> str:
        """Empty where all is well. Runs in a thread."""
        try:
            found = self._probe(folder)
        except (EnvironmentFault, OSError) as error:
            return str(error)
        return "" if found == directory_id else f"it is another directory now: {found}"
