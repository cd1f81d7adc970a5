"""AlterReplicaLogDirs, by Kafka's AlterReplicaLogDirsRequestTest and KafkaApisTest."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from kquorum.broker.apis.alter_replica_log_dirs import API
from kquorum.broker.data_plane import DirectoryUsage
from kquorum.broker.quota.rate import Windows
from kquorum.broker.quota.replication import ReplicationThrottle
from kquorum.broker.replica.log_moves import LogMoves
from kquorum.broker.replica.partition import TopicPartition
from kquorum.metadata.authorizer.codes import Operation
from kquorum.network.requests import RequestContext
from kquorum.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import RequestHeader
from tests.support.api_calls import as_read, read_answer
from tests.support.broker.data_world import BROKER, ORDERS, DataWorld
from tests.support.images import LISTENER, log_dir
from tests.support.memory_partition_log import MemoryPartitionLog

HERE, THERE, FAILED = log_dir(BROKER), UUID(int=901), UUID(int=902)
USAGES = {
    HERE: DirectoryUsage("/data/here"),
    THERE: DirectoryUsage("/data/there"),
    FAILED: DirectoryUsage("/data/failed", is_offline=True),
}


class Futures:
    """MovingLogs in memory."""

    def __init__(self) -> None:
        self.made: dict[TopicPartition, MemoryPartitionLog] = {}

    def future(self, topic_partition: TopicPartition) -> MemoryPartitionLog | None:
        return self.made.get(topic_partition)

    def open_future(
        self, topic_partition: TopicPartition, topic_id: UUID, directory_id: UUID
    ) -> MemoryPartitionLog:
        made = MemoryPartitionLog(*topic_partition, topic_id=topic_id, directory_id=directory_id)
        return self.made.setdefault(topic_partition, made)

    def delete_future(self, topic_partition: TopicPartition) -> None:
        del self.made[topic_partition]

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a request does not call {name}")


class Moving(DataWorld):
    def __init__(self, **services: Any) -> None:
        super().__init__(**services)
        self.futures = Futures()
        nothing_to_ask: Any = None
        self.moves = self.plane.moves = LogMoves(
            self.futures, ReplicationThrottle(BROKER, Windows()), nothing_to_ask, lambda: True
        )

    def directories(self) -> Mapping[UUID, DirectoryUsage]:
        return USAGES

    def alter(
        self, *dirs: tuple[str, str, tuple[int, ...]], version: int = 2
    ) -> dict[tuple[str, int], ErrorCode]:
        request = AlterReplicaLogDirsRequest(
            dirs=tuple(
                AlterReplicaLogDir(
                    path=path, topics=(AlterReplicaLogDirTopic(name=topic, partitions=partitions),)
                )
                for path, topic, partitions in dirs
            )
        )
        header = RequestHeader(ApiKey.ALTER_REPLICA_LOG_DIRS, version, 1, "tool")
        context = RequestContext(1, "127.0.0.1", LISTENER, header)
        advance = API.begin(context, as_read(ApiKey.ALTER_REPLICA_LOG_DIRS, version, request), self.services)
        body = None
        while body is None:
            body = advance()
        answer = read_answer(ApiKey.ALTER_REPLICA_LOG_DIRS, version, body)
        return {
            (topic.topic_name, each.partition_index): each.error_code
            for topic in answer.results
            for each in topic.partitions
        }


@pytest.mark.parametrize("version", [1, 2])
def test_moves_begin_and_the_answer_is_by_topic(version: int) -> None:
    world = Moving()
    told = world.alter(("/data/there/", ORDERS, (0, 1)), ("/data/here", ORDERS, (2,)), version=version)
    assert told == {(ORDERS, index): ErrorCode.none for index in (0, 1, 2)}
    assert sorted(world.moves.moves) == [TopicPartition(ORDERS, 0), TopicPartition(ORDERS, 1)]
    assert world.futures.made[TopicPartition(ORDERS, 0)].directory_id == THERE


def test_directories_that_are_none_or_have_failed_are_refused() -> None:
    world = Moving()
    assert world.alter(("/data/nowhere", ORDERS, (0,)), ("/data/failed", ORDERS, (1,))) == {
        (ORDERS, 0): ErrorCode.log_dir_not_found,
        (ORDERS, 1): ErrorCode.kafka_storage_error,
    }
    assert not world.moves.moves


def test_a_replica_that_is_not_here_is_remembered() -> None:
    world = Moving()
    assert world.alter(("/data/there", ORDERS, (3,)), ("/data/there", "unknown", (0,))) == {
        (ORDERS, 3): ErrorCode.replica_not_available,
        ("unknown", 0): ErrorCode.unknown_topic_or_partition,
    }
    assert world.moves.preferred(TopicPartition(ORDERS, 3)) == THERE


def test_an_offline_replica_cannot_be_moved() -> None:
    world = Moving()
    world.replicas.mark_offline(TopicPartition(ORDERS, 0))
    assert world.alter(("/data/there", ORDERS, (0,))) == {(ORDERS, 0): ErrorCode.kafka_storage_error}


def test_a_topic_whose_folder_would_have_too_long_a_name_is_refused() -> None:
    name = "t" * 230
    assert Moving().alter(("/data/there", name, (0,))) == {(name, 0): ErrorCode.invalid_topic_exception}


def test_a_move_back_ends_the_move() -> None:
    world = Moving()
    world.alter(("/data/there", ORDERS, (0,)))
    assert world.alter(("/data/here", ORDERS, (0,))) == {(ORDERS, 0): ErrorCode.none}
    assert not world.moves.moves
    assert not world.futures.made


class Denying:
    """An authorizer that allows nothing on the cluster."""

    def __init__(self) -> None:
        self.asked: list[Operation] = []

    def access(self, *_: Any) -> "Denying":
        return self

    def allows_on_cluster(self, operation: Operation) -> bool:
        self.asked.append(operation)
        return False


def test_alter_on_the_cluster_is_needed() -> None:
    denying = Denying()
    world = Moving(authorizer=denying)
    assert world.alter(("/data/there", ORDERS, (0,))) == {(ORDERS, 0): ErrorCode.cluster_authorization_failed}
    assert denying.asked == [Operation.ALTER]
    assert not world.moves.moves
