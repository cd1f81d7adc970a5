"""DescribeUserScramCredentials of unknown names."""

import pytest

from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.describe.scram import describe_user_scram_credentials
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import read_answer, request_of
from tests.support.sliced_answers import whole

API = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS


@pytest.mark.parametrize("name", ["x" * 32_767, "é" * 16_383])
@pytest.mark.parametrize("mentions", [1, 2])
def test_the_longest_name_can_be_answered(name: str, mentions: int) -> None:
    """The message quotes it and must not become longer than a string may be."""
    asked = request_of(API, 0, {"users": [{"name": name}] * mentions})
    question = DescribeRequest(
        body=asked, version=0, image=MetadataImage.empty(), principal="User:a", node_id=1
    )
    response = whole(describe_user_scram_credentials(question), 0)
    (result,) = response.results
    assert result.user == name
    assert result.error_code in (ErrorCode.resource_not_found, ErrorCode.duplicate_resource)
    assert read_answer(API, 0, response) == response
