"""Answers to requests of many entries, made in a thread beside the loop, which goes on meanwhile.

An entry costs up to 30 microseconds to answer, and may have been a single byte. CPython lets the loop have a turn every
5 ms. There is one such thread, so that clients with long requests wait for each other and for nobody else.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from network.requests import RequestContext

LONG_REQUEST_BYTES: Final = 4_096

Answer = TypeVar("Answer")


class LongAnswers:
    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="long-answers")

    async def make(self, work: Callable[[], Answer]) -> Answer:
        """`work` must follow from values that never change, such as requests and images."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """What has not begun is given up."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def is_long(context: RequestContext) -> bool:
    return len(context.frame) >= LONG_REQUEST_BYTES
