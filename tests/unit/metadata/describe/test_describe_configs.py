"""DescribeConfigs and ListConfigResources, as any node answers them from its image."""

from typing import Any

import pytest

from kquorum.metadata.configs.table import BROKER_CONFIGS, CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.image.configs import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from kquorum.wire import message_codec
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.api_calls import described, request_of
from tests.support.metadata.described_configs import IMAGE, SECRET, STATIC


def answer(api_key: ApiKey, version: int, node_id: int = 1, **values: Any) -> Any:
    """The response entity, encoded once to show that it can be sent."""
    question = DescribeRequest(
        body=request_of(api_key, version, values),
        version=version,
        image=IMAGE,
        principal="User:alice",
        node_id=node_id,
        node_configs=STATIC,
    )
    found = described(api_key, question)
    assert b"hush" not in message_codec.encode(found, version)
    return found


def result(
    kind: int, name: str, keys: tuple[str, ...] | None = None, version: int = 4, node_id: int = 1, **more: Any
) -> Any:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    values = {"include_synonyms": True, "include_documentation": True, **more}
    return answer(ApiKey.DESCRIBE_CONFIGS, version, node_id, resources=[resource], **values).results[0]


def one(kind: int, resource: str, key: str, version: int = 4, **more: Any) -> Any:
    (found,) = result(kind, resource, (key,), version, **more).configs
    return found


def synonyms(config: Any) -> list[tuple[str, str | None, int]]:
    return [(each.name, each.value, each.source) for each in config.synonyms]


@pytest.mark.parametrize("version", range(1, supported_versions(ApiKey.DESCRIBE_CONFIGS)[1] + 1))
@pytest.mark.parametrize(
    ("kind", "name"), [(TOPIC, "alpha"), (BROKER, "1"), (BROKER, ""), (GROUP, "g"), (CLIENT_METRICS, "m")]
)
def test_every_version_can_be_sent(version: int, kind: int, name: str) -> None:
    found = result(kind, name, version=version)
    assert found.error_code is ErrorCode.none
    assert len(found.configs) >= 3
    assert (int(found.resource_type), found.resource_name) == (kind, name)


def test_all_of_a_topics_configs_with_their_defaults() -> None:
    names = [each.name for each in result(TOPIC, "alpha").configs]
    assert names == sorted(names)
    assert len(names) == 34  # 33, and one unknown key
    assert "internal.segment.bytes" not in names


@pytest.mark.parametrize("keys", [None, ()])
def test_no_keys_asked_for_are_all(keys: tuple[str, ...] | None) -> None:
    assert len(result(TOPIC, "beta", keys).configs) == 33


def test_a_topics_own_value_and_what_it_would_have_without() -> None:
    found = one(TOPIC, "alpha", "retention.ms")
    assert (found.value, found.config_source, found.config_type) == ("5000", 1, 5)
    assert not found.is_sensitive
    assert not found.read_only
    assert "records are kept" in found.documentation
    # The brokers' own key for it comes first, then the others for the same.
    assert synonyms(found) == [
        ("retention.ms", " 5000 ", 1),
        ("log.retention.ms", "7", 3),
        ("log.retention.hours", "2", 4),
        ("log.retention.hours", "168", 5),
    ]


def test_a_topic_takes_after_the_cluster_the_config_file_and_kafka() -> None:
    assert (one(TOPIC, "beta", "retention.ms").value, one(TOPIC, "beta", "retention.ms").config_source) == (
        "7",
        3,
    )
    found = one(TOPIC, "beta", "segment.bytes")
    assert (found.value, found.config_source) == ("1073741824", 5)
    assert synonyms(found) == [("log.segment.bytes", "1073741824", 5)]
    tiered = one(TOPIC, "beta", "remote.storage.enable")
    assert (tiered.value, tiered.config_source, synonyms(tiered)) == ("false", 5, [])


def test_an_unknown_key_is_listed_without_a_type() -> None:
    found = one(TOPIC, "alpha", "from.the.future")
    assert (found.value, found.is_sensitive) == (None, True), "it may be a secret, and Kafka tells it as one"
    assert (found.config_source, found.config_type, found.documentation) == (1, 0, None)


def test_a_brokers_value_in_the_order_in_which_it_counts() -> None:
    found = one(BROKER, "1", "num.io.threads")
    assert (found.value, found.config_source, found.read_only, found.config_type) == ("5", 2, False, 3)
    assert [(value, source) for _, value, source in synonyms(found)] == [
        ("5", 2),
        ("4", 3),
        ("3", 4),
        ("8", 5),
    ]
    rack = one(BROKER, "1", "broker.rack")
    assert (rack.value, rack.config_source, rack.read_only, synonyms(rack)) == (None, 5, True, [])
    own = one(BROKER, "1", "node.id")
    assert (own.value, own.config_source, own.read_only) == ("1", 4, True)
    assert one(BROKER, "1", "my.own.key").config_type == 0


def test_a_broker_tells_all_it_knows() -> None:
    names = {each.name for each in result(BROKER, "1").configs}
    assert names >= {name for name, each in BROKER_CONFIGS.items() if not each.is_internal}
    assert {SECRET, "my.own.key", "my.plugin.password"} <= names


@pytest.mark.parametrize("name", [SECRET, "my.plugin.password", "my.own.key", "ssl.key.password"])
def test_a_secret_appears_in_no_output(name: str) -> None:
    found = one(BROKER, "1", name)
    assert (found.value, found.is_sensitive) == (None, True)
    assert [each.value for each in found.synonyms] == [None] * len(found.synonyms)


def test_of_all_brokers_only_what_is_set_for_them() -> None:
    found = {each.name: each for each in result(BROKER, "").configs}
    assert list(found) == ["log.retention.ms", "my.plugin.password", "num.io.threads"]
    assert synonyms(found["num.io.threads"]) == [("num.io.threads", "4", 3)]
    assert found["num.io.threads"].config_source == 3


def test_a_group_and_its_brokers_defaults() -> None:
    found = one(GROUP, "g", "consumer.session.timeout.ms")
    assert (found.value, found.config_source) == ("46000", 8)
    assert synonyms(found) == [
        ("consumer.session.timeout.ms", "46000", 8),
        ("group.consumer.session.timeout.ms", "45000", 5),
    ]
    inherited = one(GROUP, "unheard.of", "consumer.heartbeat.interval.ms")
    assert (inherited.value, inherited.config_source) == ("6000", 4)
    assert len(result(GROUP, "unheard.of").configs) == len(GROUP_CONFIGS)


def test_a_subscription_to_client_metrics() -> None:
    found = {each.name: (each.value, each.config_source) for each in result(CLIENT_METRICS, "m").configs}
    assert found == {"metrics": ("*", 7), "interval.ms": ("300000", 5), "match": ("", 5)}
    assert found.keys() == CLIENT_METRICS_CONFIGS.keys()
    told = {each.name: synonyms(each) for each in result(CLIENT_METRICS, "m").configs}
    assert told == {"metrics": [("metrics", "*", 7)], "interval.ms": [], "match": []}


def test_synonyms_and_documentation_only_on_request() -> None:
    found = one(TOPIC, "alpha", "retention.ms", include_synonyms=False, include_documentation=False)
    assert (found.synonyms, found.documentation) == ((), None)


@pytest.mark.parametrize(
    ("kind", "name", "error", "words"),
    [
        (TOPIC, "none", ErrorCode.unknown_topic_or_partition, ""),
        (TOPIC, "a b", ErrorCode.invalid_topic_exception, "Topic name is invalid"),
        (TOPIC, "", ErrorCode.invalid_topic_exception, "Topic name is invalid"),
        (BROKER, "one", ErrorCode.invalid_request, "Broker id must be an integer, but it is: one"),
        (
            BROKER,
            "2",
            ErrorCode.invalid_request,
            "Unexpected broker id, expected 1 or empty string, but received 2",
        ),
        (BROKER_LOGGER, "", ErrorCode.invalid_request, "Broker id must not be empty"),
        (BROKER_LOGGER, "2", ErrorCode.invalid_request, "Unexpected broker id, expected 1 but received 2"),
        (CLIENT_METRICS, "", ErrorCode.invalid_request, "Client metrics subscription name must not be empty"),
        (GROUP, "", ErrorCode.invalid_request, "Group name must not be empty"),
        (64, "x", ErrorCode.invalid_request, "Unsupported resource type: 64"),
    ],
)
def test_resources_that_cannot_be_described(
    kind: int, name: str, error: ErrorCode, words: str | None
) -> None:
    found = result(kind, name)
    assert (found.error_code, found.configs) == (error, ())
    assert words in found.error_message if words else found.error_message == ""


def test_a_nodes_log_levels_are_no_configs() -> None:
    assert result(BROKER_LOGGER, "1").error_code is ErrorCode.none
    assert result(BROKER_LOGGER, "1").configs == ()


def listed(version: int = 1, types: tuple[int, ...] = ()) -> Any:
    return answer(ApiKey.LIST_CONFIG_RESOURCES, version, resource_types=types)


def test_what_can_have_configs() -> None:
    found = [(int(each.resource_type), each.resource_name) for each in listed().config_resources]
    brokers = [(4, "1"), (4, "2"), (8, "1"), (8, "2")]
    assert found == [(2, "alpha"), (2, "beta"), *brokers, (16, "m"), (32, "g")], "broker 2 is fenced"
    asked = [
        (int(each.resource_type), each.resource_name) for each in listed(1, (GROUP, TOPIC)).config_resources
    ]
    assert asked == [(32, "g"), (2, "alpha"), (2, "beta")]


def test_the_older_version_knows_client_metrics_only() -> None:
    assert [each.resource_name for each in listed(0).config_resources] == ["m"]


def test_an_unknown_kind_of_resource_is_refused() -> None:
    refused = listed(1, (TOPIC, 64))
    assert (refused.error_code, refused.config_resources) == (ErrorCode.unsupported_version, ())
