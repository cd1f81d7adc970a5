"""DescribeLogDirs of a broker without data: every version can be encoded, and directories are named."""

from uuid import UUID

import pytest

from kquorum.broker.apis.describe_log_dirs import described_log_dirs
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.api_calls import read_answer

FIRST, SECOND = UUID(int=1 << 70), UUID(int=2 << 70)
LOG_DIRS = {FIRST: "/data/first", SECOND: "/data/second"}
BROKER = BrokerRegistration(
    id=7, epoch=70, incarnation_id=UUID(int=9), log_dirs=(FIRST, SECOND), cordoned_log_dirs=(SECOND,)
)


def versions(api_key: ApiKey) -> range:
    lowest, highest = supported_versions(api_key)
    return range(lowest, highest + 1)


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_LOG_DIRS))
def test_each_directory_is_reported_without_logs(version: int) -> None:
    answer = read_answer(ApiKey.DESCRIBE_LOG_DIRS, version, described_log_dirs(LOG_DIRS, BROKER))
    assert [(each.error_code, each.log_dir, each.topics) for each in answer.results] == [
        (ErrorCode.none, "/data/first", ()),
        (ErrorCode.none, "/data/second", ()),
    ]


def test_a_cordoned_directory_is_reported_as_cordoned() -> None:
    newest = versions(ApiKey.DESCRIBE_LOG_DIRS)[-1]
    answer = read_answer(ApiKey.DESCRIBE_LOG_DIRS, newest, described_log_dirs(LOG_DIRS, BROKER))
    assert [each.is_cordoned for each in answer.results] == [False, True]


def test_before_the_broker_knows_of_itself_nothing_is_cordoned() -> None:
    newest = versions(ApiKey.DESCRIBE_LOG_DIRS)[-1]
    answer = read_answer(ApiKey.DESCRIBE_LOG_DIRS, newest, described_log_dirs(LOG_DIRS, None))
    assert [each.is_cordoned for each in answer.results] == [False, False]
