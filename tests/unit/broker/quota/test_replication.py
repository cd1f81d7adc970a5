"""Which replicas are throttled and when, by Kafka's ReplicationQuotaManagerTest."""

import pytest
from immutables import Map

from kquorum.broker.quota.rate import Windows
from kquorum.broker.quota.replication import ReplicationThrottle, ReplicationThrottles
from kquorum.metadata.configs.resolution import NodeConfigs
from kquorum.metadata.image.configs import BROKER, TOPIC, ConfigResource
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.metadata_records.configs import ConfigRecord
from tests.support.images import after

ME = 1
NO_LIMIT = 2**63 - 1


def throttle() -> ReplicationThrottle:
    return ReplicationThrottle(ME, Windows(number=10, size_ms=1_000))


@pytest.mark.parametrize(
    ("text", "throttled"),
    [
        ("", []),
        ("*", [0, 1, 2]),
        ("0:1,2:1", [0, 2]),
        ("0:2,1:1,2:3", [1]),
        ("0:1, 1:1", [0, 1]),
        ("0:11", []),
        ("no pair, 1:1", [1]),
        # The controller accepts it, and a broker that could not read it would not start again.
        (f"{'9' * 5_000}:1,1:1,2:{'9' * 5_000}", [1]),
    ],
)
def test_replicas_of_this_broker_that_the_config_names_are_throttled(text: str, throttled: list[int]) -> None:
    made = throttle()
    made.set_replicas("orders", text)
    assert [index for index in range(3) if made.is_throttled(("orders", index))] == throttled
    assert not made.is_throttled(("another", 0))
    made.set_replicas("orders", "")
    assert not any(made.is_throttled(("orders", index)) for index in range(3))


def test_a_quota_is_exceeded_and_is_back_below_its_bound_as_time_passes() -> None:
    made = throttle()
    made.limit = 100
    made.record(0, 1)
    assert not made.is_exceeded(0)
    made.record(0, 99)
    assert not made.is_exceeded(0)
    made.record(0, 1)
    assert made.is_exceeded(0)
    assert not made.is_exceeded(1_010)
    made.record(1_010, 102)
    assert made.is_exceeded(1_010)
    assert made.per_second(1_010) == pytest.approx(203 / 1.01)
    assert not made.is_exceeded(60_000)


def test_without_a_limit_nothing_is_exceeded() -> None:
    made = throttle()
    made.record(0, 10**15)
    assert not made.is_exceeded(0)


def config(kind: int, name: str, key: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def configs(image: MetadataImage) -> NodeConfigs:
    return NodeConfigs.of(image, ME, {})


def test_the_configs_of_topics_and_brokers_are_in_force_as_they_change() -> None:
    delta, image = after(
        MetadataImage.empty(),
        config(TOPIC, "orders", "leader.replication.throttled.replicas", "0:1"),
        config(TOPIC, "orders", "follower.replication.throttled.replicas", "*"),
        config(BROKER, "", "leader.replication.throttled.rate", "500"),
    )
    made = ReplicationThrottles(ME, Windows())
    made.begin(image, configs(image))
    assert (made.leader.limit, made.follower.limit) == (500, NO_LIMIT)
    assert [made.leader.is_throttled(("orders", index)) for index in (0, 1)] == [True, False]
    assert made.follower.is_throttled(("orders", 1))

    delta, image = after(
        image,
        config(TOPIC, "orders", "follower.replication.throttled.replicas", None),
        config(BROKER, "1", "leader.replication.throttled.rate", "700"),
        config(BROKER, "2", "follower.replication.throttled.rate", "1"),
    )
    made.change(image, delta.changed_configs, configs(image))
    assert (made.leader.limit, made.follower.limit) == (700, NO_LIMIT), "this broker's own counts"
    assert made.leader.is_throttled(("orders", 0))
    assert not made.follower.is_throttled(("orders", 1))

    delta, image = after(image, *[config(*each, None) for each in resources_of(image)])
    made.change(image, delta.changed_configs, configs(image))
    assert made.leader.limit == NO_LIMIT
    assert not made.leader.is_throttled(("orders", 0))


def resources_of(image: MetadataImage) -> list[tuple[int, str, str]]:
    resources: Map[ConfigResource, Map[str, str]] = image.configs.resources
    return [(resource.type, resource.name, key) for resource, values in resources.items() for key in values]
