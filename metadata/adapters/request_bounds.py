"""How many entries one administrative request, or one question, may have.

The active controller decides an entry in up to 40 microseconds and does nothing else meanwhile, so a single request
could make it lose its leadership. Kafka bounds the records of one operation (10,000, with POLICY_VIOLATION for more);
but what is refused makes no records, and costs as much.
"""

from dataclasses import dataclass

from kquorum.metadata.controller.requests import ApiError
from kquorum.metadata.controller_apis import EntryLimit
from kquorum.network.limits import ENTRIES_KEY, MOST_ENTRIES
from kquorum.wire.messages.error_codes import ErrorCode


@dataclass(frozen=True, slots=True)
class RequestBounds:
    """`most_entries`: elements of all arrays of a request together, where its API has the usual limit."""

    most_entries: int = MOST_ENTRIES

    def excess(self, limit: EntryLimit, elements: int) -> ApiError | None:
        """What refuses a request of so many elements; `limit` is that of its API."""
        most = limit * self.most_entries
        if elements <= most or limit is EntryLimit.NONE:
            return None
        key = ENTRIES_KEY if limit is EntryLimit.USUAL else f"{limit:d} times {ENTRIES_KEY}"
        return ApiError(
            ErrorCode.policy_violation,
            f"{elements} entries in a request of at most {most} ({key}): ask for less.",
        )
