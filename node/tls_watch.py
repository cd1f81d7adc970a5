"""Has the TLS files of a node looked at again and again, so that renewed certificates need no restart."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final

from kquorum.network.security.reloading import TlsMaterial

log = logging.getLogger("node.tls")

INTERVAL_S: Final = 5.0


class TlsWatch:
    def __init__(self, materials: Iterable[TlsMaterial[Any]], interval_s: float = INTERVAL_S) -> None:
        self._materials = tuple(materials)
        self._interval_s = interval_s
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._materials:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="tls-watch")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            for material in self._materials:
                try:
                    await asyncio.to_thread(material.refresh)
                except Exception:
                    log.exception("the TLS files of this node could not be looked at; they will be again")
