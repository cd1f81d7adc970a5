"""DescribeUserScramCredentials (KIP-554): which users have credentials, and for which mechanism; never the keys."""

from collections import Counter

from kquorum.metadata.controller.requests import cut_message
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kquorum.wire.messages.error_codes import ErrorCode


def describe_user_scram_credentials(question: DescribeRequest) -> DescribeUserScramCredentialsResponse:
    """No list of users, and an empty one too, asks for all of them."""
    request: DescribeUserScramCredentialsRequest = question.body
    found: dict[str, list[CredentialInfo]] = {}
    for user, credential in sorted(question.image.security.scram.items()):
        info = CredentialInfo(mechanism=user.mechanism, iterations=credential.iterations)
        found.setdefault(user.name, []).append(info)
    mentions = Counter(each.name for each in request.users or ())
    if not mentions:
        mentions = Counter(sorted(found))
    return DescribeUserScramCredentialsResponse(
        error_message="",
        results=tuple([_result(name, found.get(name), count) for name, count in mentions.items()]),
    )


def _result(
    name: str, infos: list[CredentialInfo] | None, mentions: int
) -> DescribeUserScramCredentialsResult:
    code, message = ErrorCode.none, ""
    if mentions > 1:
        code = ErrorCode.duplicate_resource
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
    elif infos is None:
        code = ErrorCode.resource_not_found
        message = f"Attempt to describe a user credential that does not exist: {name}"
    shown = infos if infos is not None and mentions == 1 else ()
    return DescribeUserScramCredentialsResult(
        user=name, error_code=code, error_message=cut_message(message), credential_infos=tuple(shown)
    )
