"""Answers that take long to make, made in slices: others are served in between.

The replies of a connection keep their order all the same; see `network.replies`.
"""

import asyncio
import logging
from collections.abc import Callable

from kquorum.network.aside import Aside
from kquorum.network.request_budget import AnswerInMaking
from kquorum.network.requests import Reply, RequestContext
from kquorum.network.turns import Work, turns_of
from kquorum.wire.protocol.headers import EncodedBody

log = logging.getLogger("network.long_replies")


def reply_in_slices(
    advance: Callable[[], EncodedBody | None], reply: Reply, context: RequestContext | None = None
) -> None:
    """Call `advance` until it gives the answer: now for the first slice, and for the others when the turn of all
    connections has room (`network.turns`), so that a hundred clients with long answers take no more time than one, and
    when the budget has room (`network.request_budget`), so that they take no more memory than it has. Nothing more is
    made for a connection that is gone.

    What `advance` raises at once is the caller's; later the peer is left without an answer, which ends its connection.
    """
    making = AnswerInMaking() if context is None else context.making
    try:
        answer = advance()
    except BaseException:
        making.end()
        raise
    if answer is not None:
        making.end()
        reply(answer)
    else:
        _LongReply(advance, reply, context, making).ask()


class _LongReply:
    def __init__(
        self,
        advance: Callable[[], EncodedBody | None],
        reply: Reply,
        context: RequestContext | None,
        making: AnswerInMaking,
    ) -> None:
        self._advance = advance
        self._reply = reply
        self._context = context
        self._making = making
        self._forget = None if context is None else context.when_gone(making.go_on_anyway)

    def ask(self) -> None:
        turns_of(asyncio.get_running_loop()).ask(Work(self._go_on))

    def _go_on(self) -> None:
        answer = None
        if self._context is None or not self._context.is_gone():
            if not self._making.may_go_on(self.ask):
                return
            try:
                answer = self._advance()
            except Exception:
                log.exception("a long answer could not be made")
            else:
                if answer is None:
                    self.ask()
                    return
        self._making.end()
        if self._forget is not None:
            self._forget()
        self._reply(answer)


class AnswersAside:
    """Answers that are made whole in the thread of `aside`, one after the other: an answer counts when it is there,
    and the next one asks for room after that. An answer that waits for room keeps no other waiting."""

    def __init__(self, aside: Aside) -> None:
        self._aside = aside
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, context: RequestContext, make: Callable[[], EncodedBody | None], reply: Reply) -> None:
        """`make` must follow from values that never change. A peer whose answer cannot be made loses its
        connection."""
        task = asyncio.get_running_loop().create_task(self._answer(context, make, reply))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def under_way(self) -> int:
        return len(self._tasks)

    def close(self) -> None:
        """What is under way is given up."""
        self._aside.close()
        for task in tuple(self._tasks):
            task.cancel()

    async def _answer(
        self, context: RequestContext, make: Callable[[], EncodedBody | None], reply: Reply
    ) -> None:
        answer: EncodedBody | None = None
        try:
            answer = await self._made(context, make)
        except Exception:
            log.exception("a long answer could not be made")
        finally:
            context.making.end()
            reply(answer)

    async def _made(
        self, context: RequestContext, make: Callable[[], EncodedBody | None]
    ) -> EncodedBody | None:
        while True:
            await room_for(context)
            async with self._turn:
                if context.is_gone():
                    return None
                # The answers before this one may have taken the room.
                if context.making.has_room:
                    return await self._aside.make(make)


async def room_for(context: RequestContext) -> None:
    """Wait until the budget has room for an answer that is made as a whole, or the connection has gone."""
    making = context.making
    while not context.is_gone():
        has_room = asyncio.Event()
        if making.may_go_on(has_room.set):
            return
        forget = context.when_gone(making.go_on_anyway)
        try:
            await has_room.wait()
        finally:
            forget()
