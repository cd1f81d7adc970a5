"""What becomes of a request: some of it goes on, and the rest is refused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kquorum.metadata.controller.requests import ApiError


def _unchanged(answer: Any) -> Any:
    return answer


@dataclass(slots=True, init=False)
class Verdict:
    """`body` is passed to the handler. `complete` then adds the refused parts to the response, or removes what the
    client may not see. With a `refusal` nothing is passed on. `refused` is for a request that is answered in
    slices, in the place of `complete`: the entries of the answer that refuse something.
    """

    body: Final[Any]
    complete: Final[Callable[[Any], Any]]
    refusal: Final[ApiError | None]
    refused: Final[Sequence[Any]]

    def __init__(
        self,
        body: Any,
        complete: Callable[[Any], Any] = _unchanged,
        refusal: ApiError | None = None,
        refused: Sequence[Any] = (),
    ) -> None:
        self.body = body
        self.complete = complete
        self.refusal = refusal
        self.refused = refused
