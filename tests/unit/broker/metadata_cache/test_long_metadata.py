"""A Metadata answer that takes several slices, over a real socket."""

import asyncio
from typing import Any

import pytest

from kquorum.broker.metadata_cache import responses
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.broker.listening_broker import Broker, metadata, with_broker
from tests.support.images import broker_record, image_of, partition_record, topic_records
from tests.support.running_controllers import RunningController

TOPICS = 30
IMAGE = image_of(
    broker_record(101),
    *(
        record
        for number in range(TOPICS)
        for record in topic_records(number, f"t{number:02}", partition_record(number, 0, (101,)))
    ),
)


def test_it_comes_in_its_place_and_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "SLICE_PARTITIONS", 40)

    async def test(node: Broker, _controller: RunningController) -> None:
        node.cache.swap(IMAGE)
        asked = [node.ask(ApiKey.METADATA, metadata()), node.ask(ApiKey.LIST_GROUPS, {})]
        asked = [asyncio.ensure_future(each) for each in (*asked, node.ask(ApiKey.METADATA, metadata()))]
        answers: list[Any] = await asyncio.gather(*asked)
        for answer in (answers[0], answers[2]):
            assert [topic.name for topic in answer.topics] == [f"t{number:02}" for number in range(TOPICS)]
            assert all(topic.partitions[0].leader_id == 101 for topic in answer.topics)

    with_broker(test)
