"""Forwarded requests that are sent twice, and the audit records which the first attempt left."""

from collections.abc import Sequence
from typing import Any

from kquorum.broker.repeated_requests import RepeatedRequests
from kquorum.metadata.controller.log_writer import audit_record
from kquorum.metadata.controller.refusals import refusal
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.create_topics import CreatableTopicConfigs
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from kquorum.wire.schema import MetadataRecord
from tests.support.api_calls import request_of
from tests.support.images import after, broker_record, image_of, partition_record, topic_records

NEW = topic_records(2, "new", partition_record(2, 0, (101,)))


BEFORE = image_of(
    broker_record(101),
    broker_record(102),
    *topic_records(1, "orders", partition_record(1, 0, (101,))),
)


CONFIGS = (CreatableTopicConfigs(name="retention.ms", value="1", config_source=5),)


FORWARDING_ID = bytes(range(16))


SECRET_KEY = "of all nodes"


def note_of(request: ControllerRequest, *, is_whole: bool = True) -> MetadataRecord:
    return audit_record(request, reason="done", previous_note_hash=b"", covered_records=1, is_whole=is_whole)


def asked(
    api_key: ApiKey, values: dict[str, Any], forwarding_id: bytes = FORWARDING_ID, version: int | None = None
) -> ControllerRequest:
    version = supported_versions(api_key)[1] if version is None else version
    return ControllerRequest(
        api_key=api_key,
        api_version=version,
        body=request_of(api_key, version, values),
        principal="User:alice",
        client_id="the-client",
        client_host="127.0.0.1",
        correlation_id=7,
        forwarding_id=forwarding_id,
    )


def requests() -> RepeatedRequests:
    return RepeatedRequests(lambda _image, _name: CONFIGS, token_secret_key=SECRET_KEY)


def second_answer(
    request: ControllerRequest,
    error: ErrorCode,
    records: Sequence[MetadataRecord],
    *,
    noted: ControllerRequest | None = None,
    is_in_doubt: bool = True,
    is_whole: bool = True,
    before: MetadataImage = BEFORE,
) -> Any:
    """What the client gets when its first attempt wrote `records`, and the second is refused with `error`."""
    repeated = requests()
    with repeated.watch(FORWARDING_ID, request) as watched:
        if is_in_doubt:
            watched.doubt()
        repeated.observe(0, *after(before, note_of(noted or request, is_whole=is_whole), *records))
        response = refusal(request, ApiError(error, "no"))
        return repeated.first_answer(response, watched)
