"""DescribeLogDirs: every directory is named, with the sizes of the logs in it, in every version."""

from uuid import UUID

import pytest

from kquorum.broker.apis.describe_log_dirs import described_log_dirs
from kquorum.broker.data_plane import DirectoryUsage, FutureLog
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.api_calls import read_answer
from tests.support.broker.disk_logs import of_leader
from tests.support.memory_partition_log import MemoryPartitionLog

FIRST, SECOND = UUID(int=1 << 70), UUID(int=2 << 70)
LOG_DIRS = {FIRST: DirectoryUsage("/data/first"), SECOND: DirectoryUsage("/data/second")}
ALL = DescribeLogDirsRequest(topics=None)
BROKER = BrokerRegistration(
    id=7, epoch=70, incarnation_id=UUID(int=9), log_dirs=(FIRST, SECOND), cordoned_log_dirs=(SECOND,)
)


def versions(api_key: ApiKey) -> range:
    lowest, highest = supported_versions(api_key)
    return range(lowest, highest + 1)


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_LOG_DIRS))
def test_each_directory_is_reported_without_logs(version: int) -> None:
    answer = read_answer(ApiKey.DESCRIBE_LOG_DIRS, version, described_log_dirs(ALL, LOG_DIRS, BROKER))
    assert [(each.error_code, each.log_dir, each.topics) for each in answer.results] == [
        (ErrorCode.none, "/data/first", ()),
        (ErrorCode.none, "/data/second", ()),
    ]


def test_a_cordoned_directory_is_reported_as_cordoned() -> None:
    newest = versions(ApiKey.DESCRIBE_LOG_DIRS)[-1]
    answer = read_answer(ApiKey.DESCRIBE_LOG_DIRS, newest, described_log_dirs(ALL, LOG_DIRS, BROKER))
    assert [each.is_cordoned for each in answer.results] == [False, True]


def test_before_the_broker_knows_of_itself_nothing_is_cordoned() -> None:
    newest = versions(ApiKey.DESCRIBE_LOG_DIRS)[-1]
    answer = read_answer(ApiKey.DESCRIBE_LOG_DIRS, newest, described_log_dirs(ALL, LOG_DIRS, None))
    assert [each.is_cordoned for each in answer.results] == [False, False]


@pytest.mark.parametrize(("asked", "told"), [(None, [0, 1]), ((1,), [1]), ((7,), [])])
def test_logs_are_told_with_their_sizes(asked: tuple[int, ...] | None, told: list[int]) -> None:
    logs = [MemoryPartitionLog("orders", index) for index in (0, 1)]
    for log in logs:
        log.append_as_follower(of_leader(0, "a"), leader_epoch=0, now_ms=0)
    usage = DirectoryUsage("/data/first", total_bytes=100, usable_bytes=40, logs=tuple(logs))
    topics = None if asked is None else (DescribableLogDirTopic(topic="orders", partitions=asked),)
    answer = read_answer(
        ApiKey.DESCRIBE_LOG_DIRS,
        versions(ApiKey.DESCRIBE_LOG_DIRS)[-1],
        described_log_dirs(DescribeLogDirsRequest(topics=topics), {FIRST: usage}, BROKER),
    )
    [result] = answer.results
    assert (result.total_bytes, result.usable_bytes) == (100, 40)
    found = [each for topic in result.topics for each in topic.partitions]
    assert [each.partition_index for each in found] == told
    assert all(each.partition_size == len(of_leader(0, "a")) for each in found)


def test_a_failed_directory_is_told_as_such() -> None:
    usages = {FIRST: DirectoryUsage("/data/first", is_offline=True)}
    newest = versions(ApiKey.DESCRIBE_LOG_DIRS)[-1]
    answer = read_answer(ApiKey.DESCRIBE_LOG_DIRS, newest, described_log_dirs(ALL, usages, BROKER))
    assert [each.error_code for each in answer.results] == [ErrorCode.kafka_storage_error]


def test_a_copy_that_is_being_made_is_told_with_its_lag() -> None:
    log, copy = MemoryPartitionLog("orders", 0), MemoryPartitionLog("orders", 0)
    log.append_as_follower(of_leader(0, "a", "b"), leader_epoch=0, now_ms=0)
    usages = {
        FIRST: DirectoryUsage("/data/first", logs=(log,)),
        SECOND: DirectoryUsage("/data/second", futures=(FutureLog(copy, 2),)),
    }
    answer = read_answer(ApiKey.DESCRIBE_LOG_DIRS, 4, described_log_dirs(ALL, usages, BROKER))
    told = [each.topics[0].partitions[0] for each in answer.results]
    assert [(each.is_future_key, each.offset_lag) for each in told] == [(False, 0), (True, 2)]
