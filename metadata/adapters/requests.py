"""From what a listener got to what a controller or an authorizer is asked, and a refusal of it."""

from typing import Any

from kquorum.metadata.controller.refusals import refusal
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.network.requests import RequestContext
from kquorum.wire.operator_reason import reason_of
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import response_class
from kquorum.wire.protocol.entities import build


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


def refused_entity(request: ControllerRequest, error: ApiError) -> Any:
    """The response, of the request's version."""
    return build(response_class(request.api_key, request.api_version), refusal(request, error))
