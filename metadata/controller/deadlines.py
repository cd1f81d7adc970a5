"""What is answered before anything is decided: requests that ask for nothing, and those whose time was up."""

from collections.abc import Mapping

from kio.schema.errors import ErrorCode

from metadata.controller.requests import ApiError, ControllerRequest
from wire.protocol.api_keys import ApiKey

# Whose timeout bounds the time until the controller begins. Once it has begun there is no way back, so an answer comes
# when the records are committed, however long that takes: the client gives up by its own clock.
_WITH_TIMEOUT = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    }
)
# What a request is about; without any there is nothing to wait for. None, in place of a list, stands for everything.
_SUBJECTS: Mapping[ApiKey, tuple[str, ...]] = {
    ApiKey.CREATE_TOPICS: ("topics",),
    ApiKey.DELETE_TOPICS: ("topics", "topic_names"),
    ApiKey.CREATE_PARTITIONS: ("topics",),
    ApiKey.ALTER_PARTITION: ("topics",),
    ApiKey.ELECT_LEADERS: ("topic_partitions",),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ("topics",),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ("topics",),
    ApiKey.ALTER_CONFIGS: ("resources",),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ("resources",),
    ApiKey.ALTER_CLIENT_QUOTAS: ("entries",),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ("deletions", "upsertions"),
}


def asks_for_nothing(request: ControllerRequest) -> bool:
    """Such a request succeeds at once, on a standby too (as Kafka answers it without queueing it)."""
    names = _SUBJECTS.get(request.api_key)
    if names is None:
        return False
    subjects = [getattr(request.body, name) for name in names if hasattr(request.body, name)]
    return bool(subjects) and all(each is not None and not each for each in subjects)


def check_deadline(request: ControllerRequest, now_ms: int) -> None:
    """Raises REQUEST_TIMED_OUT when the request's timeout passed between its arrival and now; 0 is over at once."""
    if request.api_key not in _WITH_TIMEOUT:
        return
    timeout_ms = round(request.body.timeout.total_seconds() * 1000)
    received_at_ms = now_ms if request.received_at_ms is None else request.received_at_ms
    if received_at_ms + timeout_ms <= now_ms:
        reason = f"The request was not begun within its timeout of {timeout_ms} ms; it had no effect."
        raise ApiError(ErrorCode.request_timed_out, reason)
