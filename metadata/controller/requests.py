"""The input of a handler, its errors, and the responses that need no handler: for requests without entries, and for
those whose timeout has passed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any, Final

from kquorum.wire.message_schema import Response
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

# A string of an answer has 32,767 bytes at most, and a character up to four.
MAX_MESSAGE_CHARACTERS = 2_000
# An entry of a request may have one byte: its refusal must not be many times as long.
_MOST_MESSAGES: Final = 100
Reply = Callable[[Response], None]


@dataclass(slots=True, init=False)
class ControllerRequest:
    """A request that reached the controller. Only the listener that makes it sets its fields; it is not frozen because
    one is made for each request, which takes a frozen class three times as long.

    `body` is the message of the API.
    `received_at_ms` is when it came in, None for just now. `operator_reason` is why the operator wants it, in words.
    `security_protocol` is that of the connection it came by (network.requests.RequestContext), which an envelope does
    not tell of the client's. `forwarding_id` is the broker's for what came in an envelope (wire.forwarding_id);
    `is_part`: the client asked for more, which it may not have.
    """

    api_key: ApiKey
    api_version: int
    # Its repr may show secrets: salted passwords, values of configs.
    body: Any = field(repr=False)
    principal: str
    client_id: str | None
    client_host: str
    correlation_id: int
    received_at_ms: int | None
    operator_reason: str | None
    security_protocol: int
    is_token_authenticated: bool
    is_forwarded: bool
    forwarding_id: bytes
    is_part: bool

    def __init__(
        self,
        *,
        api_key: ApiKey,
        api_version: int,
        body: Any,
        principal: str = "User:ANONYMOUS",
        client_id: str | None = None,
        client_host: str = "",
        correlation_id: int = 0,
        received_at_ms: int | None = None,
        operator_reason: str | None = None,
        security_protocol: int = 0,
        is_token_authenticated: bool = False,
        is_forwarded: bool = False,
        forwarding_id: bytes = b"",
        is_part: bool = False,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.body = body
        self.principal = principal
        self.client_id = client_id
        self.client_host = client_host
        self.correlation_id = correlation_id
        self.received_at_ms = received_at_ms
        self.operator_reason = operator_reason
        self.security_protocol = security_protocol
        self.is_token_authenticated = is_token_authenticated
        self.is_forwarded = is_forwarded
        self.forwarding_id = forwarding_id
        self.is_part = is_part


class ApiError(Exception):
    """The request as a whole, or the one entry under check, is refused: a regular answer to the client.

    `ends_in_ms` is how long the reason will last, where that is known and the API has a field for it; -1 otherwise.
    """

    def __init__(self, code: ErrorCode, message: str | None = None, *, ends_in_ms: int = -1) -> None:
        self.code = code
        self.ends_in_ms = ends_in_ms
        self.message = None if message is None else cut_message(message)
        super().__init__(f"{code.name}: {self.message}")


def cut_message(message: str) -> str:
    """A message that quotes a huge name or value is cut, because no response could hold it."""
    return message if len(message) <= MAX_MESSAGE_CHARACTERS else f"{message[:MAX_MESSAGE_CHARACTERS]}..."


def messages_of_entries(message: str | None) -> Iterator[str | None]:
    """The message beside each entry of an answer that refuses all of them alike: the first entries have it."""
    return chain(repeat(message, _MOST_MESSAGES), repeat(None))


def not_controller(leader_id: int, node_id: int) -> ApiError:
    """A leader that resigned still has itself as the leader of its epoch; a client must not be sent back to it."""
    is_known = leader_id >= 0 and leader_id != node_id
    known = f"node {leader_id} is" if is_known else "no active controller is known"
    return ApiError(ErrorCode.not_controller, f"This node is not the active controller; {known}.")


def throttled(response: Response, throttle_time_ms: int) -> Response:
    """The same response with a throttle time: every API that the controller decides has the field."""
    answer: Any = response
    throttled_answer: Response = replace(answer, throttle_time_ms=throttle_time_ms)
    return throttled_answer


def throttle_time_ms(response: Response) -> int:
    answer: Any = response
    wait_ms: int = answer.throttle_time_ms
    return wait_ms


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
    subjects = [getattr(request.body, name) for name in names]
    return all(each is not None and not each for each in subjects)


def check_deadline(request: ControllerRequest, now_ms: int) -> None:
    """Raises REQUEST_TIMED_OUT if the request's timeout has passed since its arrival (rule C1). A timeout of 0 has
    always passed."""
    if request.api_key not in _WITH_TIMEOUT:
        return
    timeout_ms: int = request.body.timeout_ms
    received_at_ms = now_ms if request.received_at_ms is None else request.received_at_ms
    if received_at_ms + timeout_ms <= now_ms:
        reason = f"The request was not begun within its timeout of {timeout_ms} ms; it had no effect."
        raise ApiError(ErrorCode.request_timed_out, reason)
