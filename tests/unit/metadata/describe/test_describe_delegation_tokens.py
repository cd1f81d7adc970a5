"""Tokens are looked up by owner, however many owners a request names."""

from dataclasses import replace
from typing import Any

from kquorum.metadata.delegation_tokens import HMAC_KEY_CONFIG
from kquorum.metadata.describe.delegation_tokens import describe_delegation_token
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.security import DelegationToken
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.api_calls import request_of
from tests.support.calls import calls_of

TOKENS, OWNERS = 200, 1_900


def image() -> MetadataImage:
    empty = MetadataImage.empty()
    tokens = {
        f"token-{number}": DelegationToken(
            token_id=f"token-{number}",
            owner=f"User:u{number}",
            requester="User:admin",
            renewers=("User:r",),
            issue_timestamp_ms=1,
            expiration_timestamp_ms=2,
            max_timestamp_ms=3,
        )
        for number in range(TOKENS)
    }
    return replace(empty, security=replace(empty.security, delegation_tokens=tokens))


def test_many_owners_and_many_tokens_are_no_product_of_both() -> None:
    """It took a controller 65 ms, in which nothing else happened."""
    version = supported_versions(ApiKey.DESCRIBE_DELEGATION_TOKEN)[1]
    owners = [{"principal_type": "User", "principal_name": f"n{number}"} for number in range(OWNERS)]
    owners[-1]["principal_name"] = "u7"
    question = DescribeRequest(
        body=request_of(ApiKey.DESCRIBE_DELEGATION_TOKEN, version, {"owners": owners}),
        version=version,
        image=image(),
        principal="User:admin",
        node_id=1,
        is_controller=True,
        node_configs={HMAC_KEY_CONFIG: "secret"},
    )
    answers: list[Any] = []
    calls = calls_of(lambda: answers.append(describe_delegation_token(question)))
    assert [token.token_id for token in answers[0].tokens] == ["token-7"]
    assert calls < 10 * (TOKENS + OWNERS)
