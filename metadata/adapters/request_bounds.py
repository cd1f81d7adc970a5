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
_TIMES_UNDIVIDED: Final = 10


@dataclass(frozen=True, slots=True)
class RequestBounds:
    """`most_entries`: elements of all arrays of a request together.

    Two requests may have ten times as many, as Kafka's tools do not divide them. kafka-reassign-partitions names all
    partitions that move, with their replicas; the controller decides that request in parts. kafka-topics asks for the
    configs of all topics; only a broker (`is_of_broker`) answers so many, as it has no leadership to lose meanwhile.
    """

    most_entries: int = MOST_ENTRIES
    is_of_broker: bool = False

    def excess(self, api_key: ApiKey, elements: int) -> ApiError | None:
        """What refuses a request of so many elements."""
        is_undivided = api_key is ApiKey.ALTER_PARTITION_REASSIGNMENTS or (
            self.is_of_broker and api_key is ApiKey.DESCRIBE_CONFIGS
        )
        times = _TIMES_UNDIVIDED if is_undivided else 1
        most = times * self.most_entries
        if elements <= most or api_key not in BOUNDED_APIS:
            return None
        key = ENTRIES_KEY if times == 1 else f"{times} times {ENTRIES_KEY}"
        return ApiError(
            ErrorCode.policy_violation,
            f"{elements} entries in a request of at most {most} ({key}): ask for less.",
        )
