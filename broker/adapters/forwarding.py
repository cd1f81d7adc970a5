"""Carries a client's request to the active controller in an Envelope, and its answer back (KIP-590)."""

import asyncio
import logging
from typing import Any

from kio.schema.errors import ErrorCode

from broker.adapters.long_answers import is_long
from broker.repeated_requests import RepeatedRequests, RequestIdentity, Watched
from metadata.adapters.controller_channel import ControllerChannel, ControllerUnavailable
from metadata.controller.refusals import refusal
from metadata.controller.requests import ApiError, ControllerRequest, Values
from metadata.forwarding import decode_address, encode_address, encode_principal
from network.errors import NoCommonVersion
from network.requests import RequestContext
from wire.codec import decode, encode
from wire.errors import DecodeError
from wire.protocol.api_keys import ApiKey
from wire.protocol.apis import request_class, response_class, response_header_version, supported_versions
from wire.protocol.entities import build
from wire.protocol.headers import (
    EncodedBody,
    RequestHeader,
    encode_request,
    read_correlation_id,
    skip_tagged_fields,
)

log = logging.getLogger("broker.forwarding")

_CORRELATION_ID_BYTES = 4
CREATION_TIMEOUT_MS = 30_000
# What a controller has committed is in a broker's image within so long, or the broker hears of no commits at all.
_APPLIED_WITHIN_S = 1.0


class Forwarder:
    """`repeated` knows what requests whose first attempt had no answer have done."""

    def __init__(self, channel: ControllerChannel, repeated: RepeatedRequests) -> None:
        self._channel = channel
        self._repeated = repeated

    async def forward(self, context: RequestContext, request: Any) -> EncodedBody | None:
        """The encoded body of the answer; None when the client's connection has to end (the controller is too old).

        The controller's answer passes through unread, unless an attempt before it was lost
        (`broker.repeated_requests`). When it cannot be had in time the client gets REQUEST_TIMED_OUT, for any other
        fault of the envelope UNKNOWN_SERVER_ERROR (kraft-semantics B19).
        """
        with self._repeated.watch(_identity(context)) as watched:
            answer = await self._ask(context, request, watched)
            if answer is None or not watched.is_in_doubt:
                return answer
            return await self._first_answer(context.header, request, answer, watched)

    async def _ask(self, context: RequestContext, request: Any, watched: Watched) -> EncodedBody | None:
        header = context.header
        try:
            envelope = await self._channel.request(
                ApiKey.ENVELOPE, _envelope(context, request), watched.doubt
            )
        except ControllerUnavailable as error:
            return await self._refuse(context, request, ErrorCode.request_timed_out, str(error))
        except NoCommonVersion as error:
            log.warning("cannot forward: %s", error)
            return None
        if envelope.error_code is ErrorCode.unsupported_version:
            log.warning(
                "the controller cannot read %s version %d", ApiKey(header.api_key).name, header.api_version
            )
            return None
        if envelope.error_code is not ErrorCode.none:
            reason = f"the controller refused the envelope: {envelope.error_code.name}"
            log.error("forwarding %s: %s", ApiKey(header.api_key).name, reason)
            return await self._refuse(context, request, ErrorCode.unknown_server_error, reason)
        return _body_of(header, envelope.response_data)

    async def _refuse(
        self, context: RequestContext, request: Any, error: ErrorCode, reason: str
    ) -> EncodedBody:
        """Each entry of the request with the error."""
        if not is_long(context):
            return _refused(context.header, request, error, reason)
        return await asyncio.to_thread(_refused, context.header, request, error, reason)

    async def _first_answer(
        self, header: RequestHeader, request: Any, answer: EncodedBody, watched: Watched
    ) -> EncodedBody:
        """What the lost answer said, as far as the log tells. Raises DecodeError."""
        api_key = ApiKey(header.api_key)
        response, _ = decode(response_class(api_key, header.api_version), answer.data)
        if self._repeated.has_to_wait(api_key, response, watched):
            seen = asyncio.Event()
            watched.on_carried_out = seen.set
            try:
                async with asyncio.timeout(_APPLIED_WITHIN_S):
                    await seen.wait()
            except TimeoutError:
                return answer
        first = self._repeated.first_answer(api_key, request, response, watched)
        return answer if first is response else EncodedBody(encode(first))

    async def create_topics(self, context: RequestContext, names: tuple[str, ...]) -> None:
        """What a client's Metadata request may ask for; the outcome shows in the image, failures in the log."""
        version = supported_versions(ApiKey.CREATE_TOPICS)[1]
        values = {
            "topics": [
                {
                    "name": name,
                    "num_partitions": -1,
                    "replication_factor": -1,
                    "assignments": (),
                    "configs": (),
                }
                for name in names
            ],
            "timeout_ms": CREATION_TIMEOUT_MS,
        }
        header = RequestHeader(ApiKey.CREATE_TOPICS, version, 0, context.header.client_id)
        creation = RequestContext(
            context.connection_id, context.peer_host, context.listener_name, header, context.principal
        )
        answer = await self.forward(creation, build(request_class(ApiKey.CREATE_TOPICS, version), values))
        if answer is None:
            return
        response: Any = decode(response_class(ApiKey.CREATE_TOPICS, version), answer.data)[0]
        for topic in response.topics:
            if topic.error_code not in (ErrorCode.none, ErrorCode.topic_already_exists):
                log.warning("topic %s was not created automatically: %s", topic.name, topic.error_message)


def _identity(context: RequestContext) -> RequestIdentity:
    """As the controller notes it."""
    header = context.header
    host = decode_address(encode_address(context.peer_host))
    return RequestIdentity(
        context.principal, header.client_id or "", host, header.api_key, header.correlation_id
    )


def _envelope(context: RequestContext, request: Any) -> Values:
    """A client's request goes on as it came, with what this broker knows nothing of; one of our own is encoded."""
    header = context.header
    data = context.frame or encode_request(
        header.api_key, header.api_version, header.correlation_id, header.client_id, request
    )
    return {
        "request_data": data,
        "request_principal": encode_principal(
            context.principal, is_token_authenticated=context.is_token_authenticated
        ),
        "client_host_address": encode_address(context.peer_host),
    }


def _body_of(header: RequestHeader, response: bytes | None) -> EncodedBody:
    """Raises DecodeError when the answer inside the envelope is not one to our request."""
    if response is None or read_correlation_id(response) != header.correlation_id:
        raise DecodeError("the envelope holds no answer to the forwarded request")
    position = _CORRELATION_ID_BYTES
    if response_header_version(header.api_key, header.api_version):
        position = skip_tagged_fields(response, position)
    return EncodedBody(response[position:])


def _refused(header: RequestHeader, request: Any, error: ErrorCode, reason: str) -> EncodedBody:
    api_key = ApiKey(header.api_key)
    if api_key is ApiKey.DESCRIBE_QUORUM:
        values: Values = {"error_code": error, "error_message": reason, "topics": (), "nodes": ()}
    elif api_key in (ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER):
        values = {"throttle_time": 0, "error_code": error, "error_message": reason}
    else:
        inner = ControllerRequest(api_key=api_key, api_version=header.api_version, body=request)
        values = refusal(inner, ApiError(error, reason))
    return EncodedBody(encode(build(response_class(api_key, header.api_version), values)))
