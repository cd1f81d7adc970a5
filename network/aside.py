"""Work that takes long, in a thread beside the loop, which goes on meanwhile: long requests are read there, and answers
of many entries made.

An element costs up to 5 microseconds to read and an entry up to 30 to answer, and either may have been a single byte.
CPython lets the loop have a turn every 5 ms. Each Aside has one thread, so that clients with long requests wait
only for each other.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from kquorum.wire.protocol.api_keys import ApiKey

# What is shorter has so few elements that the loop answers it in some milliseconds.
LONG_REQUEST_BYTES: Final = 4_096
# And reads it in twenty: an element takes less to be read than to be answered.
LONG_BODY_BYTES: Final = 32_768
# Of a long request whose bytes are nearly all records: with so many elements at most it is read in the loop, in ten
# milliseconds.
ELEMENTS_READ_IN_LOOP: Final = 2_048
_API_KEY_BYTES: Final = 2
_NEARLY_ALL_BYTES: Final = frozenset({ApiKey.PRODUCE.to_bytes(_API_KEY_BYTES, "big")})

Result = TypeVar("Result")


class Aside:
    def __init__(self, name: str) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def make(self, work: Callable[[], Result]) -> Result:
        """`work` must follow from values that never change, such as requests and images."""
        return await self.begin(work)

    def begin(self, work: Callable[[], Result]) -> "asyncio.Future[Result]":
        """The same for callers that are no coroutines; to be called in the loop, whose future it is.

        A caller looks at the error in any case: else asyncio logs it, with its traceback.
        """
        return asyncio.get_running_loop().run_in_executor(self._worker, work)

    def close(self) -> None:
        """What has not begun is given up."""
        self._worker.shutdown(wait=False, cancel_futures=True)


def is_long(request: bytes) -> bool:
    """Whether to answer it aside."""
    return len(request) >= LONG_REQUEST_BYTES


def is_long_to_read(request: bytes) -> bool:
    return len(request) >= LONG_BODY_BYTES


def is_nearly_all_bytes(request: bytes) -> bool:
    """Whether a request is long because of records as a rule, which are not read with it."""
    return request[:_API_KEY_BYTES] in _NEARLY_ALL_BYTES
