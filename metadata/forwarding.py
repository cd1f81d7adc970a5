"""What a broker and a controller must agree on when a client's request is forwarded (KIP-590, EnvelopeRequest.json).

The envelope carries the client's request as it came, header included, its principal in the form of Kafka's
DefaultPrincipalData (an int16 version, then the fields), and its address as four or sixteen bytes.
"""

from collections.abc import Collection
from dataclasses import fields, is_dataclass
from ipaddress import ip_address
from typing import Any, NamedTuple

from kquorum.metadata.controller_apis import REPLICAS_APIS
from kquorum.wire.errors import DecodeError
from kquorum.wire.message_codec import decode_bounded, encode
from kquorum.wire.messages.default_principal_data import DefaultPrincipalData
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

PRINCIPAL_VERSION = 0
# It has no arrays; a newer version may add some tagged fields.
_MAX_ELEMENTS_OF_PRINCIPAL = 64


def encode_principal(principal: str, *, is_token_authenticated: bool = False) -> bytes:
    """`principal` is "Type:Name", as Kafka writes it."""
    principal_type, _, name = principal.partition(":")
    data = DefaultPrincipalData(type_=principal_type, name=name, token_authenticated=is_token_authenticated)
    return PRINCIPAL_VERSION.to_bytes(2, "big") + encode(data, PRINCIPAL_VERSION)


class ForwardedPrincipal(NamedTuple):
    """`name` is "Type:Name"."""

    name: str
    is_token_authenticated: bool


def decode_principal(data: bytes | None) -> ForwardedPrincipal:
    """Raises DecodeError for a missing principal, another version, or bytes that do not make sense."""
    if data is None or len(data) < 2:
        raise DecodeError("the envelope has no principal", 0)
    version = int.from_bytes(data[:2], "big", signed=True)
    if version != PRINCIPAL_VERSION:
        raise DecodeError(f"version {version} of the principal is not known", 0)
    principal, end = decode_bounded(
        DefaultPrincipalData, PRINCIPAL_VERSION, data, 2, _MAX_ELEMENTS_OF_PRINCIPAL
    )
    if end != len(data):
        raise DecodeError(f"{len(data) - end} bytes follow the principal", end)
    return ForwardedPrincipal(f"{principal.type_}:{principal.name}", principal.token_authenticated)


def encode_address(host: str) -> bytes:
    """Raises ValueError for what is no IP address; a zone (`fe80::1%eth0`) is left off."""
    return ip_address(host.partition("%")[0]).packed


def decode_address(data: bytes) -> str:
    """Raises ValueError unless there are four or sixteen bytes."""
    if len(data) not in (4, 16):
        raise ValueError(f"an IP address has 4 or 16 bytes, not {len(data)}")
    return str(ip_address(data))


_BY_CONTROLLER = frozenset({ErrorCode.not_controller})
_BY_REPLICA = frozenset({ErrorCode.not_controller, ErrorCode.not_leader_or_follower})


def is_for_the_leader(api_key: ApiKey, answer: Any) -> bool:
    """Whether a node answered that does not lead: then the envelope says NOT_CONTROLLER, and the broker looks for the
    leader. The answer is an entity, or the values of one; the error may stand anywhere in it."""
    return has_error(answer, _BY_REPLICA if api_key in REPLICAS_APIS else _BY_CONTROLLER)


def has_error(value: Any, codes: Collection[ErrorCode]) -> bool:
    """Whether one of these stands anywhere in a message, or in the values of one."""
    if isinstance(value, list | tuple):
        return any(has_error(each, codes) for each in value)
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, dict):
        return value.get("error_code") in codes or any(has_error(each, codes) for each in value.values())
    return False


def tells_error(values: Any, *, is_entry: bool = False) -> bool:
    """Whether a response, or an entry of it, has any error. What stands inside an entry is no outcome of its own."""
    if is_dataclass(values):
        values = {field.name: getattr(values, field.name) for field in fields(values)}
    if isinstance(values, dict):
        code = values.get("error_code")
        if code is not None and (is_entry or code != ErrorCode.none):
            return bool(code != ErrorCode.none)
        return any(tells_error(value, is_entry=True) for value in values.values())
    return isinstance(values, list | tuple) and any(tells_error(value, is_entry=is_entry) for value in values)
