"""Who calls a service, and whether they may, as at the listeners for Kafka's protocol (KIP-11's operations); and
Kafka's errors as statuses of gRPC.

The certificate that a client was asked for names it (`ssl.client.auth=required`); without one the caller is anonymous.
This node sends the request on to the active controller with its own rights, so the caller's rights are checked here.
The controller answers brokers' requests with error codes alone; the words are added here.
"""

import ssl
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import grpc

from kquorum.metadata.authorizer.authorizer import NotLoadedError
from kquorum.metadata.authorizer.codes import Operation
from kquorum.metadata.authorizer.gate import RequestAuthorizer
from kquorum.metadata.image.image import MetadataImage
from kquorum.network.security.errors import UnnamedCertificate
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey


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
        "the broker epoch is not the one of the latest registration: this process was replaced, or must register again",
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


# As Kafka's brokers need it to be one; the whole log, which a member watches, is fetched with the same right.
_OPERATIONS: Final[Mapping[ApiKey, Operation]] = {
    ApiKey.BROKER_REGISTRATION: Operation.CLUSTER_ACTION,
    ApiKey.BROKER_HEARTBEAT: Operation.CLUSTER_ACTION,
    ApiKey.ALTER_PARTITION: Operation.CLUSTER_ACTION,
    ApiKey.FETCH: Operation.CLUSTER_ACTION,
    ApiKey.UNREGISTER_BROKER: Operation.ALTER,
    # What Kafka has no request for needs the right of the request that is most like it.
    ApiKey.DESCRIBE_CLUSTER: Operation.DESCRIBE,
    ApiKey.DESCRIBE_QUORUM: Operation.DESCRIBE,
    ApiKey.ELECT_LEADERS: Operation.ALTER,
}
_CERTIFICATE: Final = "x509_pem_cert"

SHORT_REQUEST_BYTES: Final = 16_384
"""The most of a request that names a few things. A field of two bytes takes some twenty times as much in memory."""


class CallRule(NamedTuple):
    """What a call needs: the right of this request at the listeners for Kafka's protocol. `may_be_long`: its request
    may have all the bytes that the listener takes; otherwise SHORT_REQUEST_BYTES."""

    api_key: ApiKey
    may_be_long: bool = False


CALL_RULES: Final[Mapping[str, CallRule]] = {
    "/kquorum.v1.Inspect/ReadLog": CallRule(ApiKey.DESCRIBE_CLUSTER),
    "/kquorum.v1.Inspect/Image": CallRule(ApiKey.DESCRIBE_CLUSTER),
    "/kquorum.v1.Inspect/Watch": CallRule(ApiKey.DESCRIBE_CLUSTER),
    "/kquorum.v1.Inspect/CopyLog": CallRule(ApiKey.FETCH),
    "/kquorum.v1.Inspect/CopySnapshot": CallRule(ApiKey.FETCH),
    "/kquorum.v1.Quorum/TransferLeadership": CallRule(ApiKey.ELECT_LEADERS),
    "/kquorum.v1.Quorum/GetElections": CallRule(ApiKey.DESCRIBE_QUORUM),
    "/kquorum.v1.Quorum/DescribeQuorum": CallRule(ApiKey.DESCRIBE_QUORUM),
    "/kquorum.v1.Quorum/DescribeNode": CallRule(ApiKey.DESCRIBE_QUORUM),
    "/kquorum.v1.Quorum/DescribeBrokers": CallRule(ApiKey.DESCRIBE_QUORUM),
    "/kquorum.v1.Quorum/WaitApplied": CallRule(ApiKey.DESCRIBE_QUORUM),
    "/kquorum.broker.v1.Broker/Register": CallRule(ApiKey.BROKER_REGISTRATION, may_be_long=True),
    "/kquorum.broker.v1.Broker/Heartbeat": CallRule(ApiKey.BROKER_HEARTBEAT),
    "/kquorum.broker.v1.Broker/Watch": CallRule(ApiKey.FETCH),
    "/kquorum.broker.v1.Broker/AlterPartition": CallRule(ApiKey.ALTER_PARTITION, may_be_long=True),
    "/kquorum.broker.v1.Broker/Unregister": CallRule(ApiKey.UNREGISTER_BROKER),
}
"""By path. Health and reflection have no rule: all may call them, with a short request."""


class Caller(Protocol):
    """What gRPC's context of a call tells of who makes it."""

    def peer(self) -> str: ...

    def auth_context(self) -> Mapping[str, Sequence[bytes]]: ...


class Context(Caller, Protocol):
    """What it takes besides to turn the caller away."""

    def set_trailing_metadata(self, trailing_metadata: tuple[tuple[str, str], ...]) -> None: ...

    async def abort(self, code: grpc.StatusCode, details: str) -> Any:
        """Always raises."""
        ...


class MemberGate:
    def __init__(
        self,
        gate: RequestAuthorizer,
        image: Callable[[], MetadataImage],
        principal_of: Callable[[bytes | None], str],
    ) -> None:
        """`principal_of` takes a certificate in DER, None where there is none."""
        self._gate = gate
        self._image = image
        self._principal_of = principal_of

    def principal_of(self, caller: Caller) -> str | None:
        """None where it shows no certificate, or one without a principal."""
        certificate = _certificate_of(caller)
        try:
            return None if certificate is None else self._principal_of(certificate)
        except UnnamedCertificate:
            return None

    async def admit(self, context: Context, api_key: ApiKey) -> None:
        """Ends the call of who lacks the right."""
        try:
            self.check(context, api_key)
        except Refused as refusal:
            await refuse(context, refusal)

    def check(self, caller: Caller, api_key: ApiKey) -> None:
        """Raises Refused."""
        try:
            principal = self._principal_of(_certificate_of(caller))
        except UnnamedCertificate as error:
            raise Refused(ErrorCode.cluster_authorization_failed, str(error)) from None
        if self._gate.is_open:
            return
        access = self._gate.access(api_key, self._image(), principal, host_of(caller.peer()))
        operation = _OPERATIONS[api_key]
        try:
            is_allowed = access.allows_on_cluster(operation)
        except NotLoadedError:
            reason = "this node has not yet loaded the metadata log, so it does not know who may do what; ask again"
            raise Refused(ErrorCode.not_controller, reason) from None
        if not is_allowed:
            reason = f"{principal} lacks {operation.name} on the cluster"
            raise Refused(ErrorCode.cluster_authorization_failed, reason)


async def refuse(context: Context, refusal: Refused) -> None:
    """End the call, with Kafka's error in the trailers; always raises."""
    name = refusal.error.name.upper()
    context.set_trailing_metadata((("kafka-error-code", str(refusal.error.value)), ("kafka-error", name)))
    await context.abort(grpc.StatusCode[status_name(refusal.error)], f"{name}: {refusal}")


def host_of(peer: str) -> str:
    """The address in gRPC's name of a peer, such as ipv4:10.0.0.1:4711 or ipv6:%5B::1%5D:4711."""
    kind, _, rest = urllib.parse.unquote(peer).partition(":")
    if kind not in ("ipv4", "ipv6"):
        return ""
    return rest.rpartition(":")[0].strip("[]")


def client_of(caller: Caller) -> str:
    """A client that has no other name than its address; that of a socket without one is what gRPC calls it."""
    return host_of(caller.peer()) or caller.peer()


def _certificate_of(caller: Caller) -> bytes | None:
    found = caller.auth_context().get(_CERTIFICATE)
    return ssl.PEM_cert_to_DER_cert(found[0].decode("ascii")) if found else None
