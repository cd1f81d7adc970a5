"""What a handler of the broker waits for, on asyncio's loop and by its clock."""

import asyncio


class LoopDelayedOperation:
    """Implements broker.apis.services.DelayedOperation."""

    def __init__(self) -> None:
        self._completed = asyncio.Event()

    def complete(self) -> None:
        self._completed.set()

    async def wait(self, timeout_ms: int) -> bool:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._completed.wait()
        except TimeoutError:
            return self._completed.is_set()
        return True
