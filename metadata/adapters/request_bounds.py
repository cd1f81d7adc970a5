"""How many entries one administrative request, or one question, may have.

The active controller decides an entry in up to 40 microseconds, in which it does nothing else, and whoever deposes it
with a single request has deposed it for everybody. Kafka bounds the records of one operation (10,000, with
POLICY_VIOLATION for more); but what is refused makes no records, and costs as much.
"""

from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode

from metadata.controller.requests import ApiError
from metadata.describe.table import DESCRIBERS
from metadata.forwarding import FORWARDABLE_APIS
from network.limits import ENTRIES_KEY, MOST_ENTRIES
from wire.protocol.api_keys import ApiKey

BOUNDED_APIS: Final = FORWARDABLE_APIS | DESCRIBERS.keys()


@dataclass(frozen=True, slots=True)
class RequestBounds:
    """`most_entries`: elements of all arrays of a request together."""

    most_entries: int = MOST_ENTRIES

    def excess(self, api_key: ApiKey, elements: int) -> ApiError | None:
        """What refuses a request of so many elements."""
        if elements <= self.most_entries or api_key not in BOUNDED_APIS:
            return None
        reason = (
            f"{elements} entries in a request of at most {self.most_entries} ({ENTRIES_KEY}): ask for less."
        )
        return ApiError(ErrorCode.policy_violation, reason)
