"""The controller's listener: the quorum's requests go to the replica, everybody else's to the controller.

ApiVersions is answered by the server below; who is asked for NOT_CONTROLLER's sake is told so by the controller.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from metadata.adapters.envelope import EnvelopeRefusedError, refusal_of, unwrap, wrap, wrap_entity
from metadata.controller.handlers import HANDLERS
from metadata.controller.requests import ControllerRequest, Values
from metadata.describe.question import Question
from metadata.describe.table import DESCRIBERS
from metadata.image.image import MetadataImage
from metadata.image.metadata_version import KRAFT_VERSION
from network.api_versions import FinalizedFeature, ServerFeatures, SupportedFeature
from network.requests import Handler, Reply, RequestContext
from raft.adapters.kafka_codec.codec import RAFT_APIS
from wire.protocol.api_keys import ApiKey
from wire.protocol.apis import response_class, supported_versions
from wire.protocol.entities import build
from wire.protocol.headers import RequestHeader

CONTROLLER_APIS = (*HANDLERS, *DESCRIBERS, ApiKey.DESCRIBE_CLUSTER, ApiKey.ENVELOPE)


class RequestSink(Protocol):
    """The part of a Controller that a listener needs."""

    def handle_request(
        self, now_ms: int, request: ControllerRequest, reply: Callable[[Values], None]
    ) -> None: ...


def controller_listener_apis() -> dict[ApiKey, tuple[int, int]]:
    """What a controller offers, and in which versions."""
    offered = {api_key: supported_versions(api_key) for api_key in CONTROLLER_APIS}
    return offered | dict(RAFT_APIS)


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
    which questions are answered on standbys too; `node_configs` are the keys of this node's config file.
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
    ) -> None:
        self._controller = controller
        self._handle_raft = handle_raft
        self._now_ms = now_ms
        self._wake = wake
        self._image = image
        self._node_id = node_id
        self._node_configs = node_configs or {}
        self.supported = controller_listener_apis()

    def handle(self, context: RequestContext, request: Any, reply: Reply) -> None:
        api_key = ApiKey(context.header.api_key)
        if api_key in RAFT_APIS:
            self._handle_raft(context, request, reply)
        elif api_key is ApiKey.ENVELOPE:
            self._serve_envelope(context, request, reply)
        elif api_key in DESCRIBERS:
            values = DESCRIBERS[api_key](self._question(context, request))
            reply(build(response_class(api_key, context.header.api_version), values))
        else:
            self._ask_controller(_controller_request(context, request), reply)

    def _ask_controller(self, request: ControllerRequest, reply: Reply) -> None:
        answer = response_class(request.api_key, request.api_version)
        self._controller.handle_request(self._now_ms(), request, lambda values: reply(build(answer, values)))
        self._wake()

    def _question(self, context: RequestContext, request: Any) -> Question:
        return Question(
            body=request,
            version=context.header.api_version,
            image=self._image(),
            principal=context.principal,
            node_id=self._node_id,
            is_controller=True,
            node_configs=self._node_configs,
        )

    def _serve_envelope(self, context: RequestContext, envelope: Any, reply: Reply) -> None:
        answer = response_class(ApiKey.ENVELOPE, context.header.api_version)
        try:
            inner = unwrap(envelope, self.supported)
        except EnvelopeRefusedError as error:
            reply(build(answer, refusal_of(error)))
            return
        if inner.api_key in RAFT_APIS:
            forwarded = replace(context, header=_inner_header(inner), principal=inner.principal)
            self._handle_raft(
                forwarded, inner.body, lambda entity: _reply_wrapped(answer, inner, entity, reply)
            )
            return
        self._controller.handle_request(
            self._now_ms(), inner, lambda values: reply(build(answer, wrap(inner, values)))
        )
        self._wake()


def _reply_wrapped(answer: type[Any], inner: ControllerRequest, entity: Any, reply: Reply) -> None:
    """No answer inside is no answer outside: the connection ends, and the broker asks again."""
    reply(None if entity is None else build(answer, wrap_entity(inner, entity)))


def _controller_request(context: RequestContext, body: Any) -> ControllerRequest:
    header = context.header
    return ControllerRequest(
        api_key=ApiKey(header.api_key),
        api_version=header.api_version,
        body=body,
        principal=context.principal,
        client_id=header.client_id,
        client_host=context.peer_host,
        correlation_id=header.correlation_id,
    )


def _inner_header(inner: ControllerRequest) -> RequestHeader:
    return RequestHeader(inner.api_key, inner.api_version, inner.correlation_id, inner.client_id)
