"""A connection as the request budget sees it."""

from kquorum.network.request_budget import RequestBudget
from kquorum.wire.protocol.api_keys import ApiKey

USUAL = ApiKey.METADATA.to_bytes(2, "big") + bytes(20)


class Peer:
    """A Holder; all that it holds is a half-read frame if the test says so."""

    def __init__(
        self, budget: RequestBudget, name: str, told: list[str], address: str = "198.51.100.7"
    ) -> None:
        self.budget = budget
        self.name = name
        self.told = told
        self.held_bytes = self.half_read_bytes = self.held_requests = self.held_first = 0
        self.unsent_bytes = 0
        self.address = address

    def room_may_be_back(self) -> None:
        if self.budget.may_read(self) and self.may_serve():
            self.told.append(self.name)

    def may_serve(self, frame: bytes = USUAL) -> bool:
        return self.budget.may_serve(self, frame)

    def holds(
        self,
        held_bytes: int,
        requests: int = 0,
        *,
        first: int = 0,
        amid_frame: bool = False,
        unsent_bytes: int = 0,
    ) -> None:
        self.budget.hold(self, held_bytes, held_bytes if amid_frame else 0, requests, first, unsent_bytes)
