"""How often a request has lost its connection to the same controller, and what follows.

The request itself may be why the controller hangs up, such as one above the controller's limits.
"""

from collections.abc import Hashable
from typing import Final

RETRY_PAUSE_MS: Final = 50
# Kafka's `retry.backoff.max.ms`.
RETRY_PAUSE_MAX_MS: Final = 1_000
# After so many lost connections a request is sent on one of its own, and after so many not again.
LOSSES_IN_COMPANY: Final = 2
LOSSES_MAX: Final = 8


class LostConnections:
    """Of one request; those to the controller that lost it last count."""

    def __init__(self) -> None:
        self._count = 0
        self._address: Hashable = None

    def add(self, address: Hashable) -> None:
        self._count = self._count + 1 if address == self._address else 1
        self._address = address

    @property
    def are_too_many(self) -> bool:
        return self._count >= LOSSES_MAX

    @property
    def pause_ms(self) -> int:
        """Before the next attempt."""
        return min(RETRY_PAUSE_MS << max(self._count - 1, 0), RETRY_PAUSE_MAX_MS)

    def demand_solitude(self, address: Hashable) -> bool:
        """Whether other requests are to be spared at this controller."""
        return self._count >= LOSSES_IN_COMPANY and address == self._address
