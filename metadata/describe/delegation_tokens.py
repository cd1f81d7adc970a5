"""DescribeDelegationToken: tokens of these owners, with the password that the node derives (KIP-48)."""

from kquorum.metadata.delegation_tokens import (
    HMAC_KEY_CONFIG,
    owners_and_renewers,
    split_principal,
    token_hmac,
)
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.image.security import DelegationToken
from kquorum.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode


def describe_delegation_token(question: DescribeRequest) -> DescribeDelegationTokenResponse:
    """No list of owners asks for all tokens, an empty one for none."""
    request: DescribeDelegationTokenRequest = question.body
    secret_key = question.node_configs.get(HMAC_KEY_CONFIG)
    if not secret_key:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.delegation_token_auth_disabled)
    owners = request.owners
    asked = None if owners is None else {f"{owner.principal_type}:{owner.principal_name}" for owner in owners}
    found = [
        _described(token, secret_key)
        for _, token in sorted(question.image.security.delegation_tokens.items())
        if asked is None or not asked.isdisjoint(owners_and_renewers(token))
    ]
    return DescribeDelegationTokenResponse(tokens=tuple(found))


def _described(token: DelegationToken, secret_key: str) -> DescribedDelegationToken:
    owner_type, owner_name = split_principal(token.owner)
    requester_type, requester_name = split_principal(token.requester)
    return DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp=token.issue_timestamp_ms,
        expiry_timestamp=token.expiration_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        token_id=token.token_id,
        hmac=token_hmac(secret_key, token.token_id),
        renewers=tuple(
            [
                DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
                for kind, name in map(split_principal, token.renewers)
            ]
        ),
    )
