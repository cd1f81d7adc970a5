"""Kafka's errors as statuses of gRPC, in words: the requests of brokers are answered with numbers alone."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kio.schema.errors import ErrorCode


class BadMessage(Exception):
    """A message that cannot be written in Kafka's protocol; the text names the field."""


class Refused(Exception):
    """The controller's error for a request as a whole."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        """`message` is the controller's own, where its answer has one."""
        self.error = error
        super().__init__(message or words_for(error))


class _Meaning(NamedTuple):
    status: str
    words: str


_DUPLICATE: Final = ErrorCode.duplicate_broker_registration
# The statuses are names of grpc.StatusCode. UNAVAILABLE is what a client may simply send again.
_MEANINGS: Final[Mapping[ErrorCode, _Meaning]] = {
    ErrorCode.stale_broker_epoch: _Meaning(
        "FAILED_PRECONDITION",
        "the broker epoch is not the one of the latest registration: this process was replaced, or must register anew",
    ),
    ErrorCode.broker_id_not_registered: _Meaning(
        "NOT_FOUND", "no broker of this id is registered: register first"
    ),
    _DUPLICATE: _Meaning(
        "ALREADY_EXISTS",
        "another process is registered with this id and alive; it counts as dead when its session has timed out",
    ),
    ErrorCode.inconsistent_cluster_id: _Meaning(
        "FAILED_PRECONDITION", "this is a node of another cluster than the one of cluster_id"
    ),
    ErrorCode.invalid_registration: _Meaning(
        "INVALID_ARGUMENT",
        "the registration is not valid: directories must be unlike each other and those of all other brokers, none of "
        "the reserved ids, and endpoints must have an address",
    ),
    ErrorCode.unsupported_version: _Meaning(
        "FAILED_PRECONDITION",
        "the features of the registration do not include a level that is finalized in this cluster, or the active "
        "controller is too old",
    ),
    ErrorCode.not_controller: _Meaning(
        "UNAVAILABLE",
        "the active controller has not seen these epochs yet, or has just been replaced: ask again",
    ),
    ErrorCode.request_timed_out: _Meaning(
        "UNAVAILABLE", "the active controller did not answer in time: ask again"
    ),
    ErrorCode.cluster_authorization_failed: _Meaning(
        "PERMISSION_DENIED", "this needs CLUSTER_ACTION on the cluster, which the caller does not have"
    ),
    ErrorCode.invalid_request: _Meaning(
        "INVALID_ARGUMENT",
        "the request contradicts itself or the partition: its leader must ask, once for each partition, and be in the "
        "isr, whose members must be replicas",
    ),
    ErrorCode.fenced_leader_epoch: _Meaning(
        "FAILED_PRECONDITION", "the leader epoch is an old one: there is a newer leader"
    ),
    ErrorCode.invalid_update_version: _Meaning(
        "FAILED_PRECONDITION", "the partition has changed since: take what Watch tells of it, and ask again"
    ),
    ErrorCode.ineligible_replica: _Meaning(
        "FAILED_PRECONDITION",
        "a member of the isr is fenced, shutting down or not registered, or has another broker epoch",
    ),
    ErrorCode.new_leader_elected: _Meaning(
        "FAILED_PRECONDITION", "the change was made, and has given the partition another leader"
    ),
    ErrorCode.unknown_topic_id: _Meaning("NOT_FOUND", "there is no topic with this id"),
    ErrorCode.unknown_topic_or_partition: _Meaning("NOT_FOUND", "the topic has no such partition"),
}


def status_name(error: ErrorCode) -> str:
    """A name of grpc.StatusCode."""
    meaning = _MEANINGS.get(error)
    return "UNKNOWN" if meaning is None else meaning.status


def words_for(error: ErrorCode) -> str:
    meaning = _MEANINGS.get(error)
    return f"Kafka's error {error.name.upper()}" if meaning is None else meaning.words


def _session_words(response: object) -> str | None:
    """A refused registration has no message, but may say how long the other process counts as alive."""
    ends_in_ms: int = getattr(response, "session_ends_in_ms", -1)
    return None if ends_in_ms < 0 else f"{words_for(_DUPLICATE)}: in {ends_in_ms} ms"


def check(response: object) -> None:
    """Raises Refused for an answer of Kafka's protocol whose error is about the request as a whole."""
    error = ErrorCode(getattr(response, "error_code", ErrorCode.none))
    if error is not ErrorCode.none:
        raise Refused(error, getattr(response, "error_message", None) or _session_words(response))
