"""Who calls a service, and whether they may: as at the listeners for Kafka's protocol (KIP-11's operations).

The certificate that a client was asked for names it (`ssl.client.auth=required`); nobody else is anybody in particular.
What goes on to the active controller is asked for by this node, which may do it, so it is judged here.
"""

import ssl
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import grpc
from kio.schema.errors import ErrorCode

from metadata.authorizer.authorizer import NotLoadedError
from metadata.authorizer.codes import Operation
from metadata.authorizer.gate import RequestAuthorizer
from metadata.grpc.errors import Refused, status_name
from metadata.image.image import MetadataImage
from network.security.errors import UnnamedCertificate
from wire.protocol.api_keys import ApiKey

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


def _certificate_of(caller: Caller) -> bytes | None:
    found = caller.auth_context().get(_CERTIFICATE)
    return ssl.PEM_cert_to_DER_cert(found[0].decode("ascii")) if found else None
