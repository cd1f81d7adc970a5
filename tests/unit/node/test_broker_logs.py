"""The logs of new partitions are made in a thread."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from kquorum.broker.adapters.log.log_dir import LogDir
from kquorum.broker.adapters.log.log_manager import LogManager
from kquorum.broker.log.log_config import LogConfig
from kquorum.broker.replica.partition import TopicPartition
from kquorum.node.broker_logs import BrokerLogs

NOW_MS = 1_000
TOPIC_ID, DIRECTORY_ID = UUID(int=7), UUID(int=1)
PARTITIONS = [TopicPartition("topic", number) for number in range(20)]


async def loaded_logs(folder: Path) -> BrokerLogs:
    manager = LogManager([LogDir(folder, DIRECTORY_ID)], config_of=lambda _topic: LogConfig())
    logs = BrokerLogs(manager, lambda: NOW_MS)
    await logs.load(lambda _topic, _partition, _topic_id: False)
    return logs


def begin(logs: BrokerLogs, topic_partition: TopicPartition) -> bool:
    return logs.begin_opening(
        topic_partition, TOPIC_ID, directory_id=DIRECTORY_ID, is_new=True, leader_epoch=None
    )


def test_all_are_made_apart_and_the_owner_hears_of_each_once(tmp_path: Path) -> None:
    async def run() -> list[TopicPartition]:
        logs = await loaded_logs(tmp_path)
        heard: list[TopicPartition] = []
        has_all = asyncio.Event()

        def hear(made: Sequence[TopicPartition]) -> None:
            heard.extend(made)
            assert all(logs.manager.get(*each) is not None for each in made)
            if len(heard) == len(PARTITIONS):
                has_all.set()

        logs.on_made = hear
        assert not any(begin(logs, each) for each in PARTITIONS)
        assert not logs.manager.logs
        async with asyncio.timeout(30):
            await has_all.wait()
        assert all(begin(logs, each) for each in PARTITIONS)
        await logs.close(1)
        return heard

    assert asyncio.run(run()) == PARTITIONS


def test_a_stop_waits_for_what_was_begun_and_makes_no_more(tmp_path: Path) -> None:
    async def run() -> int:
        logs = await loaded_logs(tmp_path)
        begin(logs, PARTITIONS[0])
        await asyncio.sleep(0)  # the task begins
        for each in PARTITIONS[1:]:
            begin(logs, each)
        await logs.close(1)
        return len(logs.manager.opening)

    assert asyncio.run(run()) == len(PARTITIONS) - 1
    assert [folder.name for folder in tmp_path.glob("topic-*")] == ["topic-0"]
