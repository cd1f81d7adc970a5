"""Topic configs: only names and values that a Kafka broker would take."""

import pytest

from metadata.controller.requests import ApiError
from metadata.controller.topic_configs import check_topic_config


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", "-1"),
        ("cleanup.policy", "compact,delete"),
        ("min.cleanable.dirty.ratio", "0.5"),
        ("preallocate", "TRUE"),
        ("compression.gzip.level", "-1"),
        ("leader.replication.throttled.replicas", "*"),
        ("follower.replication.throttled.replicas", "0:1,1:2"),
    ],
)
def test_what_kafka_takes_is_taken(name: str, value: str) -> None:
    check_topic_config(name, value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("no.such.config", "1", "Unknown topic config name: no.such.config"),
        ("", "1", "Unknown topic config name: "),
        (
            "retention.ms",
            "abc",
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        ("min.insync.replicas", "0", "at least 1"),
        ("max.message.bytes", "2147483648", "no more than 2147483647"),
        ("cleanup.policy", "keep", "must be one of: compact, delete"),
        ("compression.type", "rar", "must be one of"),
        ("preallocate", "yes", "either true or false"),
        ("min.cleanable.dirty.ratio", "1.5", "between 0 and 1"),
        ("min.cleanable.dirty.ratio", "much", "Not a number of type DOUBLE"),
        ("leader.replication.throttled.replicas", "0-1", "[partitionId]:[brokerId]"),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(name: str, value: str, words: str) -> None:
    with pytest.raises(ApiError) as refused:
        check_topic_config(name, value)
    assert words in str(refused.value)
