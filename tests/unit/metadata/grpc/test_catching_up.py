"""A long catch-up is sent in steps; only the last step is a complete state."""

import asyncio

import pytest

from kquorum.metadata.grpc.broker import watch
from kquorum.metadata.grpc.broker.requests import alter_partition_message
from kquorum.metadata.grpc.feed import ChangeFeed
from kquorum.metadata.grpc.source import CommittedLog
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.proto import broker_pb2 as pb
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.api_calls import response_of
from tests.support.grpc_source import topic_id
from tests.support.metadata.grpc_filled_source import change, filled_source


@pytest.mark.parametrize(("per_step", "steps"), [(2_000, 1), (3, 3)])
def test_what_was_missed_comes_in_steps(monkeypatch: pytest.MonkeyPatch, per_step: int, steps: int) -> None:
    monkeypatch.setattr(watch, "CHANGES_PER_STEP", per_step)
    source = filled_source()
    resume = source.end
    for leader in (2, 1, 2, 1, 2, 1, 2):
        source.commit(change(1, leader=leader))

    async def main() -> list[pb.WatchResponse]:
        log = CommittedLog(source)
        request = pb.WatchRequest(broker_id=1, from_offset=resume)
        stream = watch.watch(request, log, ChangeFeed(log), 100)
        told = [await anext(stream) for _ in range(steps)]
        await stream.aclose()
        return told

    told = asyncio.run(asyncio.wait_for(main(), 20))
    assert [each.is_complete for each in told] == [False] * (steps - 1) + [True]
    assert told[-1].offset == source.end - 1
    assert told[-1].partitions[0].leader == 2
    assert [each.leader_epoch for message in told for each in message.partitions] == (
        [7] if steps == 1 else [3, 6, 7]
    )


@pytest.mark.parametrize(("state", "is_recovering"), [(0, False), (1, True)])
def test_the_outcome_of_an_alteration_says_whether_the_leader_recovers(
    state: int, is_recovering: bool
) -> None:
    partition = {
        "partition_index": 3,
        "error_code": ErrorCode.none,
        "leader_id": 5,
        "leader_epoch": 6,
        "isr": (5, 7),
        "leader_recovery_state": state,
        "partition_epoch": 8,
    }
    values = {
        "throttle_time_ms": 0,
        "error_code": ErrorCode.none,
        "topics": [{"topic_id": topic_id(1), "partitions": [partition]}],
    }
    version = supported_versions(ApiKey.ALTER_PARTITION)[1]
    response = response_of(ApiKey.ALTER_PARTITION, version, values)
    (outcome,) = alter_partition_message(response).partitions
    assert outcome.is_recovering is is_recovering
    assert (outcome.partition_id, outcome.leader, outcome.leader_epoch) == (3, 5, 6)
    assert (list(outcome.isr), outcome.partition_epoch) == ([5, 7], 8)
