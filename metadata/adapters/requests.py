"""From what a listener got to what a controller or an authorizer is asked, and what is answered to it."""

from collections.abc import Callable, Iterator
from typing import Any

from kquorum.metadata.authorizer.gate import AuthorizationResult
from kquorum.metadata.authorizer.verdict import Verdict
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


def answered_in_slices(
    request: ControllerRequest,
    judgement: Iterator[AuthorizationResult | None],
    describe: Callable[[Verdict], Iterator[EncodedBody | None]],
) -> Iterator[EncodedBody | None]:
    """None after each slice of work, first of the judgement and then of what `describe` makes, and last the answer."""
    for result in judgement:
        if result is None:
            yield None
        elif result.answer is not None:
            yield encoded(request, result.answer)
        else:
            yield from describe(result.verdict)


def refused(request: ControllerRequest, error: ApiError) -> EncodedBody:
    return encoded(request, refusal(request, error))
