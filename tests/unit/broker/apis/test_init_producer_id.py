"""InitProducerId for idempotent producers: ids from blocks that the controller allots, each given once."""

import asyncio
from typing import Any

import pytest

from kquorum.broker.apis.init_producer_id import handle_init_producer_id
from kquorum.broker.producer_ids import RETRY_BACKOFF_MS, ProducerIds
from kquorum.network.requests import RequestContext
from kquorum.wire.messages.allocate_producer_ids import AllocateProducerIdsResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.init_producer_id import InitProducerIdRequest
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import RequestHeader
from tests.support.broker.data_world import DataWorld

CONTEXT = RequestContext(1, "127.0.0.1", "PLAINTEXT", RequestHeader(ApiKey.INIT_PRODUCER_ID, 5, 1, None))


def allot(ids: ProducerIds, start: int, length: int = 10, error: ErrorCode = ErrorCode.none) -> None:
    assert ids.maybe_next_request(0, 7) is not None
    ids.handle_reply(
        0, AllocateProducerIdsResponse(error_code=error, producer_id_start=start, producer_id_len=length)
    )


def asked(world: DataWorld, **fields: Any) -> Any:
    request = InitProducerIdRequest(**{"transactional_id": None, "transaction_timeout_ms": 0} | fields)
    return asyncio.run(handle_init_producer_id(CONTEXT, request, world.services))


def test_each_producer_gets_an_id_of_its_own() -> None:
    world = DataWorld()
    assert world.plane.producer_ids.take() is None
    allot(world.plane.producer_ids, 4000)
    told = [asked(world) for _ in range(2)]
    assert [(each.error_code, each.producer_id, each.producer_epoch) for each in told] == [
        (ErrorCode.none, 4000, 0),
        (ErrorCode.none, 4001, 0),
    ]


def test_the_first_producer_waits_for_the_block() -> None:
    async def run() -> Any:
        world = DataWorld()
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        task = asyncio.ensure_future(handle_init_producer_id(CONTEXT, request, world.services))
        await asyncio.sleep(0)
        assert not task.done()
        allot(world.plane.producer_ids, 70)
        return await task

    assert asyncio.run(run()).producer_id == 70


def test_a_producer_that_goes_away_waits_no_longer() -> None:
    """However long the controllers are away, and however often a producer asks."""

    async def run() -> None:
        world = DataWorld()
        ids = world.plane.producer_ids
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        tasks = [
            asyncio.ensure_future(handle_init_producer_id(CONTEXT, request, world.services)) for _ in range(3)
        ]
        await asyncio.sleep(0)
        assert ids.waiting_count == 3
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert ids.waiting_count == 0

    asyncio.run(run())


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"transactional_id": "mine"}, "invalid_transaction_timeout"),
        ({"transactional_id": "mine", "transaction_timeout_ms": 1}, "invalid_transaction_timeout"),
        ({"transactional_id": ""}, "invalid_request"),
        ({"producer_id": 5}, "invalid_request"),
    ],
)
def test_other_requests_are_refused(fields: dict[str, Any], expected: str) -> None:
    told = asked(DataWorld(), **fields)
    assert (told.error_code.name, told.producer_id) == (expected, -1)


def test_the_next_block_is_asked_for_when_a_tenth_is_left() -> None:
    ids = ProducerIds(1)
    ids.take()
    allot(ids, 0, 20)
    assert [ids.take() for _ in range(18)] == list(range(18))
    assert ids.maybe_next_request(0, 7) is None
    assert ids.take() == 18
    allot(ids, 1000, 20)
    assert [ids.take(), ids.take()] == [19, 1000]


def test_a_refusal_is_asked_again_after_a_pause_and_one_request_is_under_way_at_a_time() -> None:
    ids = ProducerIds(1)
    assert ids.next_deadline_ms() is None
    ids.take()
    assert ids.maybe_next_request(0, -1) is None
    assert ids.maybe_next_request(0, 7) is not None
    assert ids.maybe_next_request(0, 7) is None
    ids.handle_failure(100)
    assert ids.next_deadline_ms() == 100 + RETRY_BACKOFF_MS
    assert ids.maybe_next_request(100, 7) is None
    assert ids.maybe_next_request(100 + RETRY_BACKOFF_MS, 7) is not None
