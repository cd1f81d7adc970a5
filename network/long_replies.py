"""Answers that take long to make, made in slices: others are served in between.

The replies of a connection keep their order all the same; see `network.replies`.
"""

import asyncio
import logging
from collections.abc import Callable

from kquorum.network.requests import Reply
from kquorum.network.turns import Work, turns_of
from kquorum.wire.protocol.headers import EncodedBody

log = logging.getLogger("network.long_replies")


def reply_in_slices(
    advance: Callable[[], EncodedBody | None], reply: Reply, is_gone: Callable[[], bool] = lambda: False
) -> None:
    """Call `advance` until it gives the answer: now for the first slice, and for the others when the turn of all
    connections has room (`network.turns`), so that a hundred clients with long answers take no more time than one.
    Nothing more is made for a connection that is gone.

    What `advance` raises at once is the caller's; later the peer is left without an answer, which ends its connection.
    """
    answer = advance()
    if answer is not None:
        reply(answer)
    else:
        turns_of(asyncio.get_running_loop()).ask(Work(lambda: _go_on(advance, reply, is_gone)))


def _go_on(advance: Callable[[], EncodedBody | None], reply: Reply, is_gone: Callable[[], bool]) -> None:
    if is_gone():
        reply(None)
        return
    try:
        reply_in_slices(advance, reply, is_gone)
    except Exception:
        log.exception("a long answer could not be made")
        reply(None)
