"""DescribeUserScramCredentials (KIP-554): which users have credentials, and for which mechanism; never the keys."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from kquorum.metadata.controller.requests import cut_message
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.describe.slices import Elements, Steps, ordered
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.security import ScramUser
from kquorum.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kquorum.wire.messages.error_codes import ErrorCode

# SCRAM-SHA-256 and SCRAM-SHA-512.
MECHANISMS: Final = (1, 2)


def describe_user_scram_credentials(question: DescribeRequest) -> Elements:
    """No list of users, and an empty one too, asks for all of them."""
    request: DescribeUserScramCredentialsRequest = question.body
    mentions = Counter(each.name for each in request.users or ())
    steps = _asked(question.image, mentions) if mentions else _all(question.image)
    return Elements(DescribeUserScramCredentialsResponse(error_message=""), "results", steps)


def _asked(image: MetadataImage, mentions: Mapping[str, int]) -> Steps[DescribeUserScramCredentialsResult]:
    for name, count in mentions.items():
        users = [ScramUser(mechanism, name) for mechanism in MECHANISMS]
        yield _result(name, [_info(image, user) for user in users if user in image.security.scram], count)


def _all(image: MetadataImage) -> Steps[DescribeUserScramCredentialsResult]:
    """Users by name, and the mechanisms of each by number."""
    infos: list[CredentialInfo] = []
    name = ""
    for user in ordered(image.security.scram, key=lambda user: (user.name, user.mechanism)):
        if user is None:
            yield None
            continue
        if infos and user.name != name:
            yield _result(name, infos, 1)
            infos = []
        name = user.name
        infos.append(_info(image, user))
    if infos:
        yield _result(name, infos, 1)


def _info(image: MetadataImage, user: ScramUser) -> CredentialInfo:
    return CredentialInfo(mechanism=user.mechanism, iterations=image.security.scram[user].iterations)


def _result(name: str, infos: Sequence[CredentialInfo], mentions: int) -> DescribeUserScramCredentialsResult:
    code, message = ErrorCode.none, ""
    if mentions > 1:
        code = ErrorCode.duplicate_resource
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
    elif not infos:
        code = ErrorCode.resource_not_found
        message = f"Attempt to describe a user credential that does not exist: {name}"
    shown = infos if mentions == 1 else ()
    return DescribeUserScramCredentialsResult(
        user=name, error_code=code, error_message=cut_message(message), credential_infos=tuple(shown)
    )
