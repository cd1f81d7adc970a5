"""Where requests pass on their way from a listener to their handler."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from kquorum.metadata.authorizer.access import Access, Denial
from kquorum.metadata.authorizer.authorization import Authorization
from kquorum.metadata.authorizer.authorizer import Authorizer, NotLoadedError
from kquorum.metadata.authorizer.codes import CLUSTER_NAME, FAILED, Operation, ResourceType
from kquorum.metadata.authorizer.denial_log import DenialLog
from kquorum.metadata.authorizer.verdict import Verdict
from kquorum.metadata.controller import refusals
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.topics import TopicsImage
from kquorum.wire.message_schema import Response
from kquorum.wire.protocol.api_keys import ApiKey


@dataclass(slots=True, init=False)
class AuthorizationResult:
    """What becomes of a request: it is answered here, or goes on with the verdict's body, and what is answered to that
    is completed by the verdict."""

    verdict: Final[Verdict]
    answer: Final[Response | None]

    def __init__(
        self,
        verdict: Verdict,
        answer: Response | None = None,
    ) -> None:
        self.verdict = verdict
        self.answer = answer


class RequestAuthorizer:
    """Without an authorizer all pass, but for requests of delegation tokens on connections that may not ask for any.

    `voters`: the principals that may send what voters send to each other, beside what the authorizer says; empty for
    all, as in Kafka.
    """

    def __init__(
        self,
        authorizer: Authorizer | None,
        denials: DenialLog | None = None,
        voters: frozenset[str] = frozenset(),
    ) -> None:
        self._authorizer = authorizer
        self._denials = denials
        self._voters = voters

    @property
    def is_open(self) -> bool:
        """Whether there is no authorizer."""
        return self._authorizer is None

    def access(
        self,
        api_key: ApiKey,
        image: MetadataImage,
        principal: str,
        host: str,
        topics: TopicsImage | None = None,
    ) -> Access:
        """`topics`: those of the image if not others."""
        note = (lambda _denial: None) if self._denials is None else partial(self._denials.note, api_key)
        return Access(
            authorizer=self._authorizer,
            acls=image.security.acls,
            topics=image.topics if topics is None else topics,
            principal=principal,
            host=host,
            note_denial=note,
        )

    def judges_header(self, authorization: Authorization) -> bool:
        """Whether `judge_header` may refuse a request by this rule."""
        if authorization.needs_body:
            return False
        return self._authorizer is not None or not authorization.needs_authorizer

    def judge_header(
        self,
        authorization: Authorization,
        request: ControllerRequest,
        image: MetadataImage,
        topics: TopicsImage | None = None,
    ) -> Response | None:
        """The refusal of a request whose body is not read yet; None where the rule needs the body."""
        if not self.judges_header(authorization):
            return None
        return self.judge(authorization, request, image, topics).answer

    def judge(
        self,
        authorization: Authorization,
        request: ControllerRequest,
        image: MetadataImage,
        topics: TopicsImage | None = None,
    ) -> AuthorizationResult:
        """`authorization` is that of the request's API; `image` is committed; `topics` are those known to the handler
        of the request."""
        access = self.access(request.api_key, image, request.principal, request.client_host, topics)
        if authorization.is_for_voters and self._voters and request.principal not in self._voters:
            return _no_voter(request, access)
        if self._authorizer is None and authorization.needs_authorizer:
            return AuthorizationResult(Verdict(request.body))
        try:
            verdict = authorization.rule(access, request)
        except NotLoadedError:
            return _not_loaded(request)
        if verdict.refusal is not None:
            return AuthorizationResult(verdict, refusals.refusal(request, verdict.refusal))
        return AuthorizationResult(verdict)

    def judge_in_slices(
        self,
        authorization: Authorization,
        request: ControllerRequest,
        image: MetadataImage,
        topics: TopicsImage | None = None,
    ) -> Iterator[AuthorizationResult | None]:
        """What `judge` answers, after None for each slice of work; all by the ACLs of one image."""
        if authorization.slices is None:
            yield self.judge(authorization, request, image, topics)
            return
        if self._authorizer is None and authorization.needs_authorizer:
            yield AuthorizationResult(Verdict(request.body))
            return
        access = self.access(request.api_key, image, request.principal, request.client_host, topics)
        try:
            for verdict in authorization.slices(access, request):
                yield None if verdict is None else AuthorizationResult(verdict)
        except NotLoadedError:
            yield _not_loaded(request)


def _no_voter(request: ControllerRequest, access: Access) -> AuthorizationResult:
    denial = Denial(
        request.principal,
        request.client_host,
        Operation.CLUSTER_ACTION,
        ResourceType.CLUSTER,
        CLUSTER_NAME,
    )
    access.note_denial(denial)
    reason = f"{request.principal} is not in kquorum.voter.principals."
    error = ApiError(FAILED[ResourceType.CLUSTER], reason)
    return AuthorizationResult(Verdict(request.body), refusals.refusal(request, error))


def _not_loaded(request: ControllerRequest) -> AuthorizationResult:
    answer = refusals.refusal(request, refusals.not_loaded(request))
    return AuthorizationResult(Verdict(request.body), answer)
