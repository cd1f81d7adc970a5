"""What a broker's own configs decide of its answers and of the topics that it has created for clients."""

import pytest

from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.broker.listening_broker import Broker, metadata, with_broker
from tests.support.images import broker_record, image_of, partition_record, topic_records
from tests.support.running_controllers import RunningController, eventually


@pytest.mark.parametrize(("configs", "told"), [({}, 3), ({"max.request.partition.size.limit": "2"}, 2)])
def test_a_page_of_partitions_is_as_long_as_the_config_says(configs: dict[str, str], told: int) -> None:
    async def test(node: Broker, _controller: RunningController) -> None:
        image = image_of(
            broker_record(1),
            *topic_records(1, "long", *(partition_record(1, each, (1,)) for each in range(3))),
        )
        node.cache.swap(image)
        asked = {"topics": [{"name": "long"}], "response_partition_limit": 2000, "cursor": None}
        answer = await node.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, asked)
        assert len(answer.topics[0].partitions) == told
        assert (answer.next_cursor is None) == (told == 3)

    with_broker(test, node_configs=configs)


_INTERNAL_TOPICS = {
    "__consumer_offsets": (
        50,
        3,
        {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"},
    ),
    "__transaction_state": (
        50,
        3,
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "2",
            "segment.bytes": "104857600",
            "unclean.leader.election.enable": "false",
        },
    ),
    "__share_group_state": (
        50,
        3,
        {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": "2",
            "segment.bytes": "104857600",
        },
    ),
}


@pytest.mark.parametrize(
    ("name", "configs", "expected"),
    [
        *((name, {}, shape) for name, shape in _INTERNAL_TOPICS.items()),
        (
            "__consumer_offsets",
            {
                "num.partitions": "8",
                "offsets.topic.num.partitions": "7",
                "offsets.topic.replication.factor": "1",
                "offsets.topic.segment.bytes": "4096",
            },
            (7, 1, {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "4096"}),
        ),
        ("orders-to-be", {}, (-1, -1, {})),
        ("orders-to-be", {"num.partitions": "8"}, (8, -1, {})),
        ("orders-to-be", {"default.replication.factor": "2"}, (-1, 2, {})),
    ],
)
def test_what_is_created_by_itself_has_the_shape_that_kafkas_brokers_give_it(
    name: str, configs: dict[str, str], expected: tuple[int, int, dict[str, str]]
) -> None:
    asked: list[ControllerRequest] = []

    async def test(node: Broker, _controller: RunningController) -> None:
        await node.ask(ApiKey.METADATA, metadata(name, allow_creation=True))
        await eventually(lambda: asked)
        ((topic,),) = [request.body.topics for request in asked]
        told = {each.name: each.value for each in topic.configs}
        assert (topic.num_partitions, topic.replication_factor, told) == expected

    with_broker(test, asked.append, auto_create=True, node_configs=configs)
