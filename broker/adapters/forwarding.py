"""Carries a client's request to the active controller in an Envelope, and its answer back (KIP-590)."""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence

from kquorum.broker.apis.registry import FORWARDED_APIS
from kquorum.broker.apis.services import RequestContext
from kquorum.broker.repeated_requests import RepeatedRequests, Watched
from kquorum.metadata.adapters.controller_channel import (
    AlreadyDone,
    ClientGone,
    ControllerChannel,
    ControllerUnavailable,
)
from kquorum.metadata.controller.refusals import refusal
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller_apis import REPLICAS_APIS
from kquorum.metadata.forwarding import encode_address, encode_principal, is_for_the_leader
from kquorum.network.aside import is_long
from kquorum.network.bounded_log import BoundedLog
from kquorum.network.errors import NoCommonVersion
from kquorum.network.requests import RequestContext as ClientContext
from kquorum.wire import message_codec
from kquorum.wire.errors import DecodeError
from kquorum.wire.forwarding_id import FORWARDING_ID_BYTES, forwarding_fields
from kquorum.wire.message_schema import Request, Response
from kquorum.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kquorum.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import message_types, response_header_version, supported_versions
from kquorum.wire.protocol.headers import (
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


# No version is in it.
_NOT_OFFERED = (0, -1)


class ForwardedRanges:
    """The versions in which clients may send what is forwarded: those of the active controller, which may run an older
    release. `controller_versions` are all that it offers, None as long as it has not said."""

    def __init__(self, controller_versions: Callable[[], Mapping[int, tuple[int, int]] | None]) -> None:
        self._controller_versions = controller_versions
        self._known: Mapping[int, tuple[int, int]] | None = None
        self._ranges: Mapping[int, tuple[int, int]] | None = None

    def __call__(self) -> Mapping[int, tuple[int, int]] | None:
        """The same object as long as the controller's versions are the same; None while they are not known."""
        known = self._controller_versions()
        if known is not None and known is not self._known and known != self._known:
            self._ranges = {int(each): known.get(each, _NOT_OFFERED) for each in FORWARDED_APIS}
            self._known = known
        return self._ranges


class Forwarder:
    """`repeated` knows what requests whose first attempt had no answer have done."""

    def __init__(self, channel: ControllerChannel, repeated: RepeatedRequests) -> None:
        self._channel = channel
        self._repeated = repeated
        # Clients can cause each of them, as often as they ask.
        self._warnings = BoundedLog(log, time.monotonic)

    async def forward(self, context: RequestContext, request: Request[Response]) -> EncodedBody | None:
        """The encoded body of the answer; None when the client's connection has to end (the controller is too old) or
        has ended before the request's turn came.

        The controller's answer passes through unread, unless an attempt before it was lost
        (`broker.repeated_requests`). When it cannot be had in time the client gets REQUEST_TIMED_OUT, for any other
        fault of the envelope UNKNOWN_SERVER_ERROR (rule C19).
        """
        forwarding_id = secrets.token_bytes(FORWARDING_ID_BYTES)
        header = context.header
        asked = ControllerRequest(
            api_key=ApiKey(header.api_key),
            api_version=header.api_version,
            body=request,
            principal=context.principal,
        )
        with self._repeated.watch(forwarding_id, asked) as watched:
            try:
                answer = await self._ask(context, forwarding_id, watched)
            except AlreadyDone:
                return await self._lost_answer(context, watched)
            if answer is None or not watched.is_in_doubt:
                return answer
            return await self._first_answer(context, answer, watched)

    async def _ask(
        self, context: RequestContext, forwarding_id: bytes, watched: Watched
    ) -> EncodedBody | None:
        """Raises AlreadyDone."""
        header, request = context.header, watched.request.body
        try:
            envelope = await self._channel.call(
                _envelope(context, request),
                watched.doubt,
                is_done=lambda: self._repeated.is_done(watched),
                is_for_the_leader=lambda envelope: _was_wrapped_by_standby(header, envelope),
                header_fields=forwarding_fields(forwarding_id),
                is_long=is_long(context.frame),
                share=context.principal,
                is_gone=context.is_gone,
            )
        except ClientGone:
            return None
        except ControllerUnavailable as error:
            if self._repeated.can_tell(watched):
                raise AlreadyDone from None
            return await self._refuse(context, request, ErrorCode.request_timed_out, str(error))
        except NoCommonVersion as error:
            self._warnings.warning("cannot forward: %s", error)
            return None
        if envelope.error_code is ErrorCode.unsupported_version:
            self._warnings.warning(
                "the controller cannot read %s version %d", ApiKey(header.api_key).name, header.api_version
            )
            return None
        if envelope.error_code is not ErrorCode.none:
            reason = f"the controller refused the envelope: {envelope.error_code.name}"
            self._warnings.warning("forwarding %s: %s", ApiKey(header.api_key).name, reason)
            return await self._refuse(context, request, ErrorCode.unknown_server_error, reason)
        return _body_of(header, envelope.response_data)

    async def _refuse(
        self, context: RequestContext, request: Request[Response], error: ErrorCode, reason: str
    ) -> EncodedBody:
        """Each entry of the request with the error."""
        return await _made(context, lambda: _refused(context.header, request, error, reason))

    async def _lost_answer(self, context: RequestContext, watched: Watched) -> EncodedBody:
        log.info(
            "the answer to %s of client %r was lost; the log says what was done",
            watched.request.api_key.name,
            context.header.client_id,
        )
        return await _made(context, lambda: _encoded(context.header, self._repeated.lost_answer(watched)))

    async def _first_answer(
        self, context: RequestContext, answer: EncodedBody, watched: Watched
    ) -> EncodedBody:
        """What the lost answer said, as far as the log tells. Raises DecodeError."""
        header = context.header
        response = message_codec.decode(message_types(header.api_key)[1], header.api_version, answer.data)[0]
        if self._repeated.has_to_wait(response, watched):
            seen = asyncio.Event()
            watched.on_carried_out = seen.set
            try:
                async with asyncio.timeout(_APPLIED_WITHIN_S):
                    await seen.wait()
            except TimeoutError:
                return answer

        def made() -> EncodedBody:
            first = self._repeated.first_answer(response, watched)
            return answer if first is response else _encoded(header, first)

        return await _made(context, made)

    async def create_topics(self, context: RequestContext, topics: Sequence[CreatableTopic]) -> None:
        """What a client's Metadata request may ask for; the outcome shows in the image, failures in the log."""
        version = supported_versions(ApiKey.CREATE_TOPICS)[1]
        request = CreateTopicsRequest(topics=tuple(topics), timeout_ms=CREATION_TIMEOUT_MS)
        header = RequestHeader(ApiKey.CREATE_TOPICS, version, 0, context.header.client_id)
        creation = ClientContext(
            context.connection_id, context.peer_host, context.listener_name, header, context.principal
        )
        answer = await self.forward(creation, request)
        if answer is None:
            return
        response, _ = message_codec.decode(CreateTopicsResponse, version, answer.data)
        for topic in response.topics:
            if topic.error_code not in (ErrorCode.none, ErrorCode.topic_already_exists):
                text = "topic %s was not created automatically: %s"
                self._warnings.warning(text, topic.name, topic.error_message)

    async def create_internal_topic(self, topic: CreatableTopic) -> None:
        """As this broker, not as a client."""
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=CREATION_TIMEOUT_MS)
        try:
            response = await self._channel.call(request)
        except (ControllerUnavailable, NoCommonVersion) as error:
            self._warnings.warning("topic %s was not created: %s", topic.name, error)
            return
        for each in response.topics:
            if each.error_code not in (ErrorCode.none, ErrorCode.topic_already_exists):
                self._warnings.warning(
                    "topic %s was not created: %s (%s)", each.name, each.error_code.name, each.error_message
                )


async def _made(context: RequestContext, make: Callable[[], EncodedBody]) -> EncodedBody:
    """An answer to a long request is made beside the loop."""
    return await asyncio.to_thread(make) if is_long(context.frame) else make()


def _envelope(context: RequestContext, request: Request[Response]) -> EnvelopeRequest:
    """A client's request goes on as it came, with what this broker knows nothing of; one of our own is encoded."""
    header = context.header
    data = context.frame or encode_request(
        header.api_key, header.api_version, header.correlation_id, header.client_id, request
    )
    return EnvelopeRequest(
        request_data=data,
        request_principal=encode_principal(
            context.principal, is_token_authenticated=context.is_token_authenticated
        ),
        client_host_address=encode_address(context.peer_host),
    )


def _body_of(header: RequestHeader, response: bytes | None) -> EncodedBody:
    """Raises DecodeError when the answer inside the envelope is not one to our request."""
    if response is None or read_correlation_id(response) != header.correlation_id:
        raise DecodeError("the envelope holds no answer to the forwarded request")
    position = _CORRELATION_ID_BYTES
    if response_header_version(header.api_key, header.api_version):
        position = skip_tagged_fields(response, position)
    return EncodedBody(response[position:])


def _was_wrapped_by_standby(header: RequestHeader, envelope: EnvelopeResponse) -> bool:
    """Whether a controller that does not lead has wrapped its replica's answer in place of NOT_CONTROLLER: earlier
    versions do, and Kafka's for changes of the voters (docs/standby.md)."""
    api_key = ApiKey(header.api_key)
    if api_key not in REPLICAS_APIS or envelope.error_code is not ErrorCode.none:
        return False
    try:
        body = _body_of(header, envelope.response_data)
        answer = message_codec.decode(message_types(api_key)[1], header.api_version, body.data)[0]
    except DecodeError:
        return False  # the reader of the answer reports what is wrong with it
    return is_for_the_leader(api_key, answer)


def _refused(header: RequestHeader, request: Request[Response], error: ErrorCode, reason: str) -> EncodedBody:
    api_key = ApiKey(header.api_key)
    inner = ControllerRequest(api_key=api_key, api_version=header.api_version, body=request)
    return _encoded(header, refusal(inner, ApiError(error, reason)))


def _encoded(header: RequestHeader, response: Response) -> EncodedBody:
    return EncodedBody(message_codec.encode(response, header.api_version))
