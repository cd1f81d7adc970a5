"""A controller with its listener and an authorizer: requests come in as from a connection, or in envelopes."""

from typing import Any

from kquorum.metadata.adapters.listener import ControllerListener
from kquorum.metadata.authorizer.authorizer import Authorizer, AuthorizerConfig
from kquorum.metadata.authorizer.codes import Operation
from kquorum.metadata.authorizer.denial_log import DenialLog
from kquorum.metadata.authorizer.gate import RequestAuthorizer
from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.refusals import refusal
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.forwarding import encode_address, encode_principal
from kquorum.metadata.image.security import AccessControlEntry
from kquorum.network.requests import Reply, RequestContext
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from kquorum.wire.protocol.headers import EncodedBody, RequestHeader, encode_response_header
from kquorum.wire.protocol.warm_up import warm_version
from tests.support.acl_worlds import ADMIN, ALICE, HERE, acl, creations
from tests.support.api_calls import as_read, request_of
from tests.support.controller_world import World
from tests.support.kio.frames import decode_response, encode_request

SASL_PLAINTEXT = 2


class ListenerWorld:
    """Two brokers are there; `lines` is what was told of denials."""

    def __init__(
        self,
        *,
        is_loaded: bool = True,
        super_users: frozenset[str] = frozenset({ADMIN}),
        voters: frozenset[str] = frozenset(),
        has_authorizer: bool = True,
    ) -> None:
        self.world = World(ControllerConfig(delegation_token_secret_key="secret")).lead().add_brokers(1, 2)
        self.is_loaded = is_loaded
        self.raft_requests: list[RequestContext] = []
        self.lines: list[str] = []
        config = AuthorizerConfig(super_users=super_users)
        self.gate = RequestAuthorizer(
            Authorizer(config, lambda: self.is_loaded) if has_authorizer else None,
            DenialLog(lambda: self.world.now_ms, self.lines.append),
            voters,
        )
        controller = self.world.controller
        self.listener = ControllerListener(
            controller=controller,
            handle_raft=self._handle_raft,
            now_ms=lambda: self.world.now_ms,
            wake=lambda: None,
            image=lambda: controller.committed_image,
            node_configs={"delegation.token.secret.key": "secret"},
            gate=self.gate,
            topics=lambda: controller.image.topics,
        )

    def allow(self, *entries: AccessControlEntry) -> "ListenerWorld":
        self.world.ask(ApiKey.CREATE_ACLS, 3, creations=creations(entries))
        return self

    def allow_on_cluster(self, operation: Operation) -> "ListenerWorld":
        return self.allow(acl(operation))

    def ask(
        self,
        api_key: ApiKey,
        values: dict[str, Any] | Any,
        version: int | None = None,
        *,
        principal: str = ALICE,
        protocol: int = SASL_PLAINTEXT,
        is_token: bool = False,
        header_fields: tuple[tuple[int, bytes], ...] = (),
    ) -> Any:
        """The decoded answer to a request that came directly."""
        version = supported_versions(api_key)[1] if version is None else version
        header = RequestHeader(api_key, version, 17, "client", header_fields)
        context = RequestContext(
            1,
            HERE,
            "CONTROLLER",
            header,
            principal,
            security_protocol=protocol,
            is_token_authenticated=is_token,
        )
        entity = request_of(api_key, version, values) if isinstance(values, dict) else values
        body = as_read(api_key, version, entity)
        answers: list[Any] = []
        self.listener.handle(context, body, answers.append)
        self.world.commit()
        assert len(answers) == 1
        if isinstance(answers[0], EncodedBody):
            frame = encode_response_header(api_key, version, 17) + answers[0].data
            return decode_response(api_key, version, frame)[1]
        return answers[0]

    def forward(
        self,
        api_key: ApiKey,
        values: dict[str, Any],
        version: int | None = None,
        *,
        principal: str = ALICE,
        broker: str = ADMIN,
        is_token: bool = False,
        header_fields: tuple[tuple[int, bytes], ...] = (),
    ) -> Any:
        """The answer inside the envelope, or the envelope's error."""
        version = supported_versions(api_key)[1] if version is None else version
        entity = request_of(api_key, version, values)
        warm_version(api_key, version)  # else the answer waits for that
        envelope = {
            "request_data": encode_request(api_key, version, 99, "client", entity),
            "request_principal": encode_principal(principal, is_token_authenticated=is_token),
            "client_host_address": encode_address(HERE),
        }
        answer = self.ask(ApiKey.ENVELOPE, envelope, principal=broker, header_fields=header_fields)
        if answer.response_data is None:
            return answer.error_code
        return decode_response(api_key, version, answer.response_data)[1]

    def _handle_raft(self, context: RequestContext, request: Any, reply: Reply) -> None:
        """Says that all went well."""
        self.raft_requests.append(context)
        api_key, version = ApiKey(context.header.api_key), context.header.api_version
        asked = ControllerRequest(api_key=api_key, api_version=version, body=request)
        reply(refusal(asked, ApiError(ErrorCode.none)))
