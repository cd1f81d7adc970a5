"""From what a listener got to what a controller or an authorizer is asked, and a refusal of it."""

from typing import Any

from kquorum.metadata.controller.refusals import refusal
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.network.requests import RequestContext
from kquorum.wire import message_codec
from kquorum.wire.message_schema import Response
from kquorum.wire.operator_reason import reason_of
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody


def controller_request(context: RequestContext, body: Any) -> ControllerRequest:
    header = context.header
    return ControllerRequest(
        api_key=ApiKey(header.api_key),
        api_version=header.api_version,
        body=body,
        principal=context.principal,
        client_id=header.client_id,
        client_host=context.peer_host,
        correlation_id=header.correlation_id,
        operator_reason=reason_of(header.tagged_fields),
        security_protocol=context.security_protocol,
        is_token_authenticated=context.is_token_authenticated,
    )


def encoded(request: ControllerRequest, response: Response) -> EncodedBody:
    """In the request's version."""
    return EncodedBody(message_codec.encode(response, request.api_version))


def refused(request: ControllerRequest, error: ApiError) -> EncodedBody:
    return encoded(request, refusal(request, error))
