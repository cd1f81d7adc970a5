"""Answers that wait for the commit of what they tell of."""

from collections import deque
from dataclasses import dataclass, replace

from metadata.controller.refusals import refusal
from metadata.controller.requests import ApiError, ControllerRequest, Reply, Values


@dataclass(frozen=True, slots=True)
class Waiting:
    offset: int
    request: ControllerRequest
    reply: Reply
    values: Values


class DeferredReplies:
    """In the order of the requests; one that could be answered earlier waits for those before it."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, waiting: Waiting) -> None:
        if self._waiting and self._waiting[-1].offset > waiting.offset:
            waiting = replace(waiting, offset=self._waiting[-1].offset)
        self._waiting.append(waiting)

    def complete(self, committed_offset: int) -> None:
        """Answer all that waited for this offset or one below."""
        while self._waiting and self._waiting[0].offset <= committed_offset:
            waiting = self._waiting.popleft()
            waiting.reply(waiting.values)

    def fail(self, error: ApiError) -> None:
        """Answer all that still wait; whether their records will be committed nobody knows."""
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            each.reply(refusal(each.request, error))
