"""What CreateTopics says of a new topic's configs, and refuses."""

import pytest

from kquorum.metadata.controller.requests import ApiError
from kquorum.metadata.controller.topics.topic_configs import check_new_topic_configs, effective_topic_configs
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.configs import ConfigRecord
from tests.support.images import image_of, partition_record, topic_records

IMAGE = image_of(
    *topic_records(1, "alpha", partition_record(1, 0, (1,))),
    ConfigRecord(resource_type=2, resource_name="alpha", name="segment.ms", value="3"),
    ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="5"),
    ConfigRecord(resource_type=4, resource_name="9", name="message.max.bytes", value="7"),
    ConfigRecord(resource_type=4, resource_name="8", name="message.max.bytes", value="8"),
)


def test_every_config_is_reported_with_the_value_in_effect_and_its_source() -> None:
    entries = effective_topic_configs(IMAGE, "alpha", 9, {"log.cleanup.policy": "compact"})
    names = [entry.name for entry in entries]
    assert names == sorted(names)
    assert len(names) == 33
    assert "internal.segment.bytes" not in names
    found = {entry.name: (entry.value, entry.config_source) for entry in entries}
    assert found["segment.ms"] == ("3", 1)
    assert found["max.message.bytes"] == ("7", 2)
    assert found["retention.ms"] == ("5", 3)
    assert found["cleanup.policy"] == ("compact", 4)
    assert found["flush.ms"] == (str(2**63 - 1), 5)


def test_a_topic_that_is_not_there_yet_brings_its_own() -> None:
    entries = effective_topic_configs(IMAGE, "alpha", 9, {}, own={"retention.ms": "1"})
    found = {entry.name: (entry.value, entry.config_source) for entry in entries}
    assert found["retention.ms"] == ("1", 1)
    assert found["segment.ms"] == ("604800000", 5)


def test_lawless_configs_are_refused_in_kafkas_words() -> None:
    check_new_topic_configs(MetadataImage.empty(), {"retention.ms": "-1"}, 1, {})
    with pytest.raises(ApiError, match="Unknown topic config name") as refused:
        check_new_topic_configs(MetadataImage.empty(), {"no.such": "1"}, 1, {})
    assert refused.value.code is ErrorCode.invalid_config
