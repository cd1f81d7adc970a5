"""A request is read as the message of its API, and the table of APIs is kio's."""

import pytest
from kio.schema.index import schema_name_map

from kquorum.wire.errors import TooManyElements, UnsupportedVersion
from kquorum.wire.messages.index import MESSAGES
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import api_version, message_types
from kquorum.wire.protocol.bodies import prepare, read_request
from tests.support.kio.classes import request_class, response_class
from tests.support.kio.codec import encode
from tests.support.kio.plans import plan_of
from tests.support.wire_values import fullest


@pytest.mark.parametrize("api_key", [ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.CREATE_TOPICS])
def test_the_body_is_what_its_handler_takes(api_key: ApiKey) -> None:
    version = api_version(api_key, MESSAGES[api_key].versions[1]).version
    cls = request_class(api_key, version)
    data = encode(fullest(plan_of(cls)))
    prepare(api_key, version)
    body, elements = read_request(api_key, version, b"??" + data + b"more", 2, 1000)
    assert type(body) is message_types(api_key)[0]
    assert read_request(api_key, version, data, 0, elements)[1] == elements > 0
    with pytest.raises(TooManyElements):
        read_request(api_key, version, data, 0, elements - 1)


@pytest.mark.parametrize("api_key", [ApiKey.PRODUCE, ApiKey.CREATE_TOPICS])
def test_a_version_that_there_is_not_is_refused(api_key: int) -> None:
    with pytest.raises(UnsupportedVersion):
        read_request(api_key, 99, b"", 0, 1)


def test_the_table_says_what_kio_says() -> None:
    for api_key, names in MESSAGES.items():
        versions = schema_name_map[names.module]
        assert names.versions == (min(versions), max(versions))
        request, response = message_types(api_key)
        assert (request.api_key, response.api_key) == (api_key, api_key)
        assert request.response_type is response
        for version in versions:
            api, of_kio = api_version(api_key, version), request_class(api_key, version)
            assert api.flexible is of_kio.__flexible__ is response.is_flexible(version)
            assert api.request_header_version == of_kio.__header_schema__.__version__
            header = response_class(api_key, version).__header_schema__
            assert api.response_header_version == header.__version__
