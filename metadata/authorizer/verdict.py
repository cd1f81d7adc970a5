"""What becomes of a request: some of it goes on, and the rest is refused."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kquorum.metadata.controller.requests import ApiError


def _unchanged(answer: Any) -> Any:
    return answer


@dataclass(frozen=True, slots=True)
class Verdict:
    """`body` goes on to whoever carries it out; `complete` then adds to the answer what is refused of it, or takes out
    what is not for these eyes. With a `refusal` nothing goes on.
    """

    body: Any
    complete: Callable[[Any], Any] = _unchanged
    refusal: ApiError | None = None
