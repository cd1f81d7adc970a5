"""DescribeConfigs of many resources, a slice after the other: a topic's configs take a millisecond, and an
administrator's tool may ask for those of all topics at once."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from metadata.describe.configs import describe_configs
from metadata.describe.describe_request import DescribeRequest
from wire.message_codec import encode
from wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from wire.protocol.arrays import array_length
from wire.protocol.headers import EncodedBody

RESOURCES_AT_ONCE: Final = 20
_THROTTLE_TIME_BYTES: Final = 4


def describe_configs_in_slices(question: DescribeRequest) -> Iterator[EncodedBody | None]:
    """None after each slice, and last the response. All of it is of the question's one image."""
    request: DescribeConfigsRequest = question.body
    resources = request.resources
    is_flexible = DescribeConfigsResponse.is_flexible(question.version)
    start = end = b""
    results: list[bytes] = []
    for first in range(0, max(len(resources), 1), RESOURCES_AT_ONCE):
        if first:
            yield None
        asked = resources[first : first + RESOURCES_AT_ONCE]
        response = describe_configs(replace(question, body=replace(request, resources=asked)))
        encoded = encode(response, question.version)
        begin = _THROTTLE_TIME_BYTES + len(array_length(len(asked), is_flexible=is_flexible))
        tags = len(encoded) - (1 if is_flexible else 0)
        start, end = encoded[:_THROTTLE_TIME_BYTES], encoded[tags:]
        results.append(encoded[begin:tags])
    yield EncodedBody(b"".join((start, array_length(len(resources), is_flexible=is_flexible), *results, end)))
