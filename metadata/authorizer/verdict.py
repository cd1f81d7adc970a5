"""What becomes of a request: some of it goes on, and the rest is refused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kquorum.metadata.controller.requests import ApiError


def _unchanged(answer: Any) -> Any:
    return answer


@dataclass(frozen=True, slots=True)
class Verdict:
    """`body` is passed to the handler. `complete` then adds the refused parts to the response, or removes what the
    client may not see. With a `refusal` nothing is passed on. `refused` is for a request that is answered in
    slices, in the place of `complete`: the entries of the answer that refuse something.
    """

    body: Any
    complete: Callable[[Any], Any] = _unchanged
    refusal: ApiError | None = None
    refused: Sequence[Any] = ()
