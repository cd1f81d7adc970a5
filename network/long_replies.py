"""Answers that take long to make, made in slices: others are served in between.

The replies of a connection keep their order all the same; see `network.replies`.
"""

import asyncio
import logging
from collections.abc import Callable

from kquorum.network.requests import Reply
from kquorum.wire.protocol.headers import EncodedBody

log = logging.getLogger("network.long_replies")


def reply_in_slices(advance: Callable[[], EncodedBody | None], reply: Reply) -> None:
    """Call `advance` until it gives the answer: now for the first slice, once in each turn of the loop for the others.

    What it raises at once is the caller's; later the peer is left without an answer, which ends its connection.
    """
    answer = advance()
    if answer is not None:
        reply(answer)
    else:
        asyncio.get_running_loop().call_soon(_go_on, advance, reply)


def _go_on(advance: Callable[[], EncodedBody | None], reply: Reply) -> None:
    try:
        reply_in_slices(advance, reply)
    except Exception:
        log.exception("a long answer could not be made")
        reply(None)
