"""The controller's listener: it bounds and authorizes a request, and gives it to its handler.

`metadata.controller_apis` says for each API which handler that is: the replica for requests of the quorum, the
controller for decisions, the committed image for questions. The server below answers ApiVersions.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

from kquorum.metadata.adapters.envelope import (
    EnvelopeRefusedError,
    is_unwrapped,
    refusal_of,
    unwrap,
    wrap,
    wrap_entity,
)
from kquorum.metadata.adapters.request_bounds import RequestBounds
from kquorum.metadata.adapters.requests import answered_in_slices, controller_request, encoded, refused
from kquorum.metadata.authorizer.gate import AuthorizationResult, RequestAuthorizer
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.controller_apis import (
    CONTROLLER_APIS,
    ControllerApi,
    ForwardedRequest,
    Question,
    QuorumRequest,
    SlicedQuestion,
)
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.metadata_version import KRAFT_VERSION
from kquorum.metadata.image.topics import TopicsImage
from kquorum.network.api_versions import FinalizedFeature, ServerFeatures, SupportedFeature
from kquorum.network.aside import Aside, is_long, is_long_to_read
from kquorum.network.long_replies import AnswersAside, reply_in_slices
from kquorum.network.requests import Handler, Reply, RequestContext
from kquorum.network.turns import Work, turns_of
from kquorum.raft.adapters.kafka_codec.codec import RAFT_APIS
from kquorum.wire import message_codec
from kquorum.wire.forwarding_id import forwarding_id_of
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from kquorum.wire.protocol.headers import EncodedBody, RequestHeader
from kquorum.wire.protocol.warm_up import cold_version, warm_version

log = logging.getLogger("metadata.listener")

T = TypeVar("T")


class RequestSink(Protocol):
    """The part of a Controller that a listener needs."""

    def handle_request(
        self, now_ms: int, request: ControllerRequest, reply: Callable[[Response], None]
    ) -> None: ...

    def note_change(self, now_ms: int, request: ControllerRequest, words: str) -> None: ...


def controller_listener_apis() -> dict[ApiKey, tuple[int, int]]:
    """What a controller offers, and in which versions: the replica takes those of its codec."""
    return {
        api_key: RAFT_APIS[api_key] if isinstance(api, QuorumRequest) else supported_versions(api_key)
        for api_key, api in CONTROLLER_APIS.items()
    }


def server_features(
    image: MetadataImage, supported: Mapping[str, tuple[int, int]], kraft_version: int = 0
) -> ServerFeatures:
    """What ApiVersions tells of features (KIP-584): this program's ranges, and the cluster's levels as of the image.

    kraft.version stands in the log, not in the image; at 0 it is left out, as Kafka does.
    """
    levels = dict(image.features.finalized) | ({KRAFT_VERSION: kraft_version} if kraft_version else {})
    return ServerFeatures(
        supported=tuple(SupportedFeature(name, low, high) for name, (low, high) in sorted(supported.items())),
        finalized=tuple(FinalizedFeature(name, level) for name, level in sorted(levels.items())),
        finalized_epoch=image.provenance.last_contained_offset,
    )


class ControllerListener:
    """`handle` is the handler of a KafkaServer.

    `handle_raft` takes requests of the quorum's APIs. `wake` is called after the controller was given a request: it
    may have proposed records, which the driver then takes along in its next turn. `image` is the committed one, from
    which questions are answered on standbys too; `node_configs` are the keys of this node's config file. Every request
    passes `gate`, which has to know the topics that the controller knows: `topics`, by default those of the image.
    """

    def __init__(
        self,
        *,
        controller: RequestSink,
        handle_raft: Handler,
        now_ms: Callable[[], int],
        wake: Callable[[], None],
        image: Callable[[], MetadataImage] = MetadataImage.empty,
        node_id: int = -1,
        node_configs: Mapping[str, str] | None = None,
        gate: RequestAuthorizer | None = None,
        topics: Callable[[], TopicsImage] | None = None,
        bounds: RequestBounds | None = None,
    ) -> None:
        self._controller = controller
        self._handle_raft = handle_raft
        self._now_ms = now_ms
        self._wake = wake
        self._image = image
        self._node_id = node_id
        self._node_configs = node_configs or {}
        self._gate = gate or RequestAuthorizer(None)
        self._bounds = bounds or RequestBounds()
        self._aside = Aside("forwarded-requests")
        self._long_answers = AnswersAside(self._aside)
        self._topics = topics or (lambda: image().topics)
        self.supported = controller_listener_apis()

    def handle(self, context: RequestContext, request: Any, reply: Reply) -> None:
        asked = controller_request(context, request)
        api = CONTROLLER_APIS[asked.api_key]
        # Before the authorizer: to judge a request takes time for each of its entries, and the bound is on just that.
        excess = self._bounds.excess(api.entry_limit, context.elements)
        if excess is not None:
            self._long_answers.begin(context, partial(refused, asked, excess), reply)
            return
        if isinstance(api, SlicedQuestion):
            self._answer_in_slices(api, asked, context, reply)
            return
        passage = self._judge(api, asked)
        if passage.answer is not None:
            reply(encoded(asked, passage.answer))
            return
        match api:
            case QuorumRequest():
                self._handle_raft(context, request, self._noting(api, asked, reply))
            case ForwardedRequest():
                self._serve_envelope(context, request, reply)
            case Question():
                response = api.describe(self._question(context, passage.verdict.body))
                reply(encoded(asked, passage.verdict.complete(response)))
            case _:
                self._hand_over(
                    asked,
                    passage,
                    context,
                    reply,
                    partial(encoded, asked),
                    is_long=is_long(context.frame),
                )

    def admit(self, context: RequestContext) -> Any:
        """The admission of a KafkaServer: what refuses a request before its body is read."""
        authorization = CONTROLLER_APIS[ApiKey(context.header.api_key)].authorization
        if not self._gate.judges_header(authorization):
            return None
        asked = controller_request(context, None)
        refusal = self._judge_header(asked)
        return None if refusal is None else encoded(asked, refusal)

    def stop(self) -> None:
        """Give up the long requests that are still to be read, and the long answers that are still to be made."""
        self._long_answers.close()

    def _judge_header(self, request: ControllerRequest) -> Response | None:
        authorization = CONTROLLER_APIS[request.api_key].authorization
        return self._gate.judge_header(authorization, request, self._image(), self._topics())

    def _judge(self, api: ControllerApi, request: ControllerRequest) -> AuthorizationResult:
        return self._gate.judge(api.authorization, request, self._image(), self._topics())

    def _answer_in_slices(
        self, api: SlicedQuestion, request: ControllerRequest, context: RequestContext, reply: Reply
    ) -> None:
        slices = answered_in_slices(
            request,
            self._gate.judge_in_slices(api.authorization, request, self._image(), self._topics()),
            lambda verdict: api.slices(self._question(context, verdict.body), verdict.refused),
        )
        reply_in_slices(slices.__next__, reply, context)

    def _hand_over(
        self,
        request: ControllerRequest,
        passage: AuthorizationResult,
        context: RequestContext,
        reply: Reply,
        encode: Callable[[Response], EncodedBody],
        *,
        is_long: bool,
    ) -> None:
        """A long request has a long answer, which is made beside the loop. Others may come from within a commit, so
        what is wrong with one must end its connection and no more."""
        now_ms = self._now_ms()

        def answer(response: Response) -> None:
            if is_long:
                self._long_answers.begin(context, lambda: encode(passage.verdict.complete(response)), reply)
                return
            try:
                body = encode(passage.verdict.complete(response))
            except Exception:
                log.exception("the answer to %s cannot be encoded", request.api_key.name)
                reply(None)
                return
            reply(body)

        asked = passage.verdict.body
        if asked is not request.body:
            # The authorizer took entries out. The audit note must not say that the request was carried out whole.
            request.is_part = asked != request.body
            request.body = asked
        request.received_at_ms = now_ms - context.waited_ms
        self._controller.handle_request(now_ms, request, answer)
        self._wake()

    def _question(self, context: RequestContext, request: Any) -> DescribeRequest:
        return DescribeRequest(
            body=request,
            version=context.header.api_version,
            image=self._image(),
            principal=context.principal,
            node_id=self._node_id,
            is_controller=True,
            node_configs=self._node_configs,
            note_made=context.making.note_made,
        )

    def _serve_envelope(self, context: RequestContext, envelope: EnvelopeRequest, reply: Reply) -> None:
        cold = cold_version(envelope.request_data)
        if cold is None or not is_unwrapped(self.supported, *cold):
            self._open_envelope(context, envelope, reply)
            return
        warming = self._aside.begin(partial(warm_version, *cold))
        warming.add_done_callback(_in_its_turn(partial(self._has_warmed, context, envelope, reply)))

    def _has_warmed(
        self,
        context: RequestContext,
        envelope: EnvelopeRequest,
        reply: Reply,
        warming: "asyncio.Future[None]",
    ) -> None:
        """The version of the request inside of an envelope was imported, or could not be."""
        if warming.cancelled():
            reply(None)
            return
        try:
            warming.result()
            self._open_envelope(context, envelope, reply)
        except Exception:
            log.exception("a forwarded request could not be answered")
            reply(None)

    def _open_envelope(self, context: RequestContext, envelope: EnvelopeRequest, reply: Reply) -> None:
        try:
            found = unwrap(envelope, self.supported)
        except EnvelopeRefusedError as error:
            reply(_envelope(context, refusal_of(error)))
            return
        asked = replace(found.request, forwarding_id=forwarding_id_of(context.header.tagged_fields))
        # The body inside is still unread: a client without the right must not make the controller decode 30 MB.
        refusal = self._judge_header(asked)
        if refusal is not None:
            reply(_envelope(context, wrap(asked, refusal)))
            return
        found = replace(found, request=asked)
        if not is_long_to_read(found.data):
            self._serve_inside(context, partial(found.read, context.max_elements), reply)
            return
        reading = self._aside.begin(partial(found.read, context.max_elements))
        reading.add_done_callback(_in_its_turn(partial(self._has_read, context, reply)))

    def _has_read(
        self, context: RequestContext, reply: Reply, reading: "asyncio.Future[tuple[ControllerRequest, int]]"
    ) -> None:
        """A long request inside of an envelope was read, or could not be."""
        if reading.cancelled():
            reply(None)
            return
        try:
            self._serve_inside(context, reading.result, reply)
        except Exception:
            log.exception("a forwarded request could not be answered")
            reply(None)

    def _serve_inside(
        self, context: RequestContext, read: Callable[[], tuple[ControllerRequest, int]], reply: Reply
    ) -> None:
        try:
            inner, elements = read()
        except EnvelopeRefusedError as error:
            reply(_envelope(context, refusal_of(error)))
            return
        api = CONTROLLER_APIS[inner.api_key]
        excess = self._bounds.excess(api.entry_limit, elements)
        if excess is not None:
            self._long_answers.begin(
                context, lambda: _envelope(context, wrap_entity(inner, refused(inner, excess))), reply
            )
            return
        passage = self._judge(api, inner)
        if passage.answer is not None:
            reply(_envelope(context, wrap(inner, passage.answer)))
            return
        if isinstance(api, QuorumRequest):
            forwarded = replace(context, header=_inner_header(inner), principal=inner.principal)
            reply_inside = self._noting(
                api, inner, lambda entity: _reply_wrapped(context, inner, entity, reply)
            )
            self._handle_raft(forwarded, inner.body, reply_inside)
            return
        self._hand_over(
            inner,
            passage,
            context,
            reply,
            lambda response: _envelope(context, wrap(inner, response)),
            is_long=is_long(context.frame),
        )

    def _noting(self, api: QuorumRequest, request: ControllerRequest, reply: Reply) -> Reply:
        """The replica changes the voters and writes no audit notes, so a change that was made is noted here."""
        note = api.note
        if note is None:
            return reply

        def answer(entity: Any) -> None:
            if getattr(entity, "error_code", None) is ErrorCode.none:
                self._controller.note_change(self._now_ms(), request, f"{note} {request.body.voter_id}")
                self._wake()
            reply(entity)

        return answer


def _in_its_turn(go_on: Callable[["asyncio.Future[T]"], None]) -> Callable[["asyncio.Future[T]"], None]:
    """What was read aside is served like a connection: several may have been read, and each may take long."""

    def ask(done: "asyncio.Future[T]") -> None:
        turns_of(done.get_loop()).ask(Work(partial(go_on, done)))

    return ask


def _envelope(context: RequestContext, response: EnvelopeResponse) -> EncodedBody:
    return EncodedBody(message_codec.encode(response, context.header.api_version))


def _reply_wrapped(context: RequestContext, inner: ControllerRequest, entity: Any, reply: Reply) -> None:
    """No answer inside is no answer outside: the connection ends, and the broker asks again."""
    reply(None if entity is None else _envelope(context, wrap_entity(inner, entity)))


def _inner_header(inner: ControllerRequest) -> RequestHeader:
    return RequestHeader(inner.api_key, inner.api_version, inner.correlation_id, inner.client_id)
