"""Envelope (api key 58) at the controller: the client's request is taken out, carried out, and its answer wrapped."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.controller_apis import FORWARDABLE_APIS
from kquorum.metadata.forwarding import (
    ForwardedPrincipal,
    decode_address,
    decode_principal,
    is_for_the_leader,
)
from kquorum.wire.errors import DecodeError
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.operator_reason import reason_of
from kquorum.wire.protocol.api_keys import ApiKey, api_name
from kquorum.wire.protocol.apis import is_supported
from kquorum.wire.protocol.bodies import read_request
from kquorum.wire.protocol.headers import UnsupportedRequest, decode_request_header, encode_response

log = logging.getLogger("metadata.envelope")

_NOT_CONTROLLER: Final = EnvelopeResponse(error_code=ErrorCode.not_controller)


class EnvelopeRefusedError(Exception):
    """The envelope, not the request inside, is at fault."""

    def __init__(self, error: ErrorCode, reason: str) -> None:
        self.error = error
        super().__init__(f"{error.name}: {reason}")


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """A request whose inner body is not read yet, as that may take long. `request` names the client and the API.

    `position` is where the body begins in `data`.
    """

    request: ControllerRequest
    data: bytes
    position: int

    def read(self, max_elements: Callable[[int], int]) -> tuple[ControllerRequest, int]:
        """The whole request and the number of its elements; raises EnvelopeRefusedError. In any thread.

        `max_elements` is what the listener allows a request of an api key: inside of an envelope it is not more.
        """
        api_key = self.request.api_key
        try:
            body, elements = read_request(
                api_key, self.request.api_version, self.data, self.position, max_elements(api_key)
            )
        except DecodeError as error:
            raise _unreadable(error) from None
        return replace(self.request, body=body), elements


def is_unwrapped(served: Mapping[ApiKey, tuple[int, int]], api_key: int, version: int) -> bool:
    """Whether such a request is read inside of an envelope; what is refused in any case is not imported for it."""
    return api_key in FORWARDABLE_APIS and api_key in served and is_supported(api_key, version)


def unwrap(envelope: EnvelopeRequest, served: Mapping[ApiKey, tuple[int, int]]) -> Unwrapped:
    """The request inside; raises EnvelopeRefusedError in the order in which Kafka checks (rule C19)."""
    principal = _principal(envelope.request_principal)
    address = _address(envelope.client_host_address)
    data = envelope.request_data
    try:
        header, position = decode_request_header(data, partial(is_unwrapped, served))
    except UnsupportedRequest as error:
        refused = error.header
        if is_supported(refused.api_key, refused.api_version):
            name = api_name(refused.api_key)
            raise EnvelopeRefusedError(ErrorCode.invalid_request, f"{name} is not to be forwarded") from None
        raise _unreadable(error) from None
    except DecodeError as error:
        raise _unreadable(error) from None
    api_key = ApiKey(header.api_key)
    request = ControllerRequest(
        api_key=api_key,
        api_version=header.api_version,
        body=None,
        principal=principal.name,
        client_id=header.client_id,
        client_host=address,
        correlation_id=header.correlation_id,
        operator_reason=reason_of(header.tagged_fields),
        is_token_authenticated=principal.is_token_authenticated,
        is_forwarded=True,
    )
    return Unwrapped(request, data, position)


def _unreadable(error: DecodeError) -> EnvelopeRefusedError:
    """Kafka's error for it; the broker ends its client's connection, as that client's own listener would have."""
    return EnvelopeRefusedError(ErrorCode.unsupported_version, f"the request inside: {error}")


def wrap(request: ControllerRequest, response: Response) -> EnvelopeResponse:
    """The envelope's answer: that this node does not lead is raised to the outside, so that the broker looks for the
    leader (docs/standby.md).

    An answer that cannot be encoded is our fault, but no answer at all would make the broker ask again and again.
    """
    if is_for_the_leader(request.api_key, response):
        return _NOT_CONTROLLER
    try:
        return _wrapped(request, response)
    except Exception:
        log.exception("the answer to %s cannot be encoded", request.api_key.name)
        return EnvelopeResponse(error_code=ErrorCode.unknown_server_error)


def wrap_entity(request: ControllerRequest, entity: Any) -> EnvelopeResponse:
    """As `wrap`, for an answer of the replica's."""
    return _NOT_CONTROLLER if is_for_the_leader(request.api_key, entity) else _wrapped(request, entity)


def _wrapped(request: ControllerRequest, entity: Any) -> EnvelopeResponse:
    data = encode_response(request.api_key, request.api_version, request.correlation_id, entity)
    return EnvelopeResponse(response_data=data)


def refusal_of(error: EnvelopeRefusedError) -> EnvelopeResponse:
    return EnvelopeResponse(error_code=error.error)


def _principal(data: bytes | None) -> ForwardedPrincipal:
    try:
        return decode_principal(data)
    except DecodeError as error:
        raise EnvelopeRefusedError(ErrorCode.principal_deserialization_failure, str(error)) from None


def _address(data: bytes) -> str:
    try:
        return decode_address(data)
    except ValueError as error:
        raise EnvelopeRefusedError(ErrorCode.invalid_request, str(error)) from None
