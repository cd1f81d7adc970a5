"""Delegation tokens (KIP-48, KIP-373): who may ask for one, and who may see whose.

Whether or not there is an authorizer, tokens are only for authenticated clients, on a connection that proves it:
not on PLAINTEXT, not on TLS without a client's certificate, and not by means of another token. That the connection was
good enough is for the broker to see: an envelope does not tell of it.
"""

from dataclasses import replace

from kquorum.metadata.authorizer.access import Access
from kquorum.metadata.authorizer.codes import FAILED, Operation, ResourceType
from kquorum.metadata.authorizer.verdict import Verdict
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.controller.security.delegation_tokens import token_owner
from kquorum.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode

ANONYMOUS = "User:ANONYMOUS"
PLAINTEXT, SSL = 0, 1


def may_ask_for_tokens(request: ControllerRequest) -> bool:
    if request.is_token_authenticated:
        return False
    if request.is_forwarded:
        return True
    if request.security_protocol == SSL:
        return request.principal != ANONYMOUS
    return request.security_protocol != PLAINTEXT


def judge_token_request(_access: Access, request: ControllerRequest) -> Verdict:
    """Of Renew and Expire: that the token is one's own to renew is seen when it is found."""
    if may_ask_for_tokens(request):
        return Verdict(request.body)
    reason = (
        "Delegation tokens take a connection with SASL, or with TLS and a client's certificate, that was not itself "
        "made with a token."
    )
    return Verdict(request.body, refusal=ApiError(ErrorCode.delegation_token_request_not_allowed, reason))


def judge_create_token(access: Access, request: ControllerRequest) -> Verdict:
    """For oneself always; for another with CREATE_TOKENS on that user."""
    verdict = judge_token_request(access, request)
    owner = ":".join(token_owner(request))
    if verdict.refusal is not None or owner == request.principal:
        return verdict
    if access.allows(Operation.CREATE_TOKENS, ResourceType.USER, owner):
        return verdict
    reason = f"{request.principal} lacks CREATE_TOKENS on {owner}."
    return Verdict(request.body, refusal=ApiError(FAILED[ResourceType.USER], reason))


def judge_describe_tokens(access: Access, request: ControllerRequest) -> Verdict:
    """One's own, those one may renew, and others with DESCRIBE on the token or DESCRIBE_TOKENS on its owner."""
    verdict = judge_token_request(access, request)
    if verdict.refusal is not None or access.is_unlimited:
        return verdict

    def complete(response: DescribeDelegationTokenResponse) -> DescribeDelegationTokenResponse:
        return replace(response, tokens=tuple([each for each in response.tokens if _may_see(access, each)]))

    return Verdict(request.body, complete)


def _may_see(access: Access, token: DescribedDelegationToken) -> bool:
    owner = f"{token.principal_type}:{token.principal_name}"
    requester = f"{token.token_requester_principal_type}:{token.token_requester_principal_name}"
    renewers = [f"{each.principal_type}:{each.principal_name}" for each in token.renewers]
    return (
        access.principal in (owner, requester, *renewers)
        or access.allows(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id, is_asked=False)
        or access.allows(Operation.DESCRIBE_TOKENS, ResourceType.USER, owner, is_asked=False)
    )
