"""AllocateProducerIds: blocks that never overlap, whichever client asks, and whichever node leads."""

import pytest

from kquorum.metadata.image.errors import ReplayError
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.features import ProducerIdsRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.record_frame import encode_record
from tests.support.api_calls import Values
from tests.support.controller_world import World, kinds


def allocate(world: World, broker_id: int, epoch_offset: int = 0) -> Values:
    broker = world.controller.image.cluster.brokers.get(broker_id)
    epoch = (0 if broker is None else broker.epoch) + epoch_offset
    return world.ask(ApiKey.ALLOCATE_PRODUCER_IDS, 0, broker_id=broker_id, broker_epoch=epoch)


def at_producer_id(next_id: int) -> World:
    """A leader whose log names the next id already."""
    world = World().lead()
    world.commit()
    world.follow(1, 2)
    record = ProducerIdsRecord(broker_id=1, broker_epoch=100, next_producer_id=next_id)
    world.raft.append(world.now_ms, [(None, encode_record(record, 0))])
    world.commit()
    return world.lead(3).add_brokers(0)


def test_the_first_block() -> None:
    world = World().lead().add_brokers(1)
    start = world.raft.log_end_offset
    answer = allocate(world, 1)
    assert answer.error_code is ErrorCode.none
    assert (answer.producer_id_start, answer.producer_id_len) == (0, 1000)
    assert kinds(world, start) == ["ProducerIdsRecord"]
    (record,) = (each for each in world.raft.records(start) if isinstance(each, ProducerIdsRecord))
    epoch = world.controller.image.cluster.brokers[1].epoch
    assert (record.next_producer_id, record.broker_id, record.broker_epoch) == (1000, 1, epoch)


def test_a_hundred_blocks_for_four_brokers() -> None:
    world = World().lead().add_brokers(0, 1, 2, 3)
    starts = [allocate(world, turn % 4).producer_id_start for turn in range(100)]
    assert starts == list(range(0, 100_000, 1000))
    assert world.controller.committed_image.producer_ids.next_producer_id == 100_000


def test_blocks_go_on_where_the_log_says() -> None:
    world = at_producer_id(42)
    assert allocate(world, 0).producer_id_start == 42
    assert allocate(world, 0).producer_id_start == 1042


@pytest.mark.parametrize("next_id", [40, 42])
def test_a_log_that_goes_backwards_cannot_be_replayed(next_id: int) -> None:
    world = at_producer_id(42)
    record = ProducerIdsRecord(broker_id=1, broker_epoch=100, next_producer_id=next_id)
    world.follow(1, 4)
    world.raft.append(world.now_ms, [(None, encode_record(record, 0))])
    with pytest.raises(ReplayError, match="producer id"):
        world.commit()


def test_an_unknown_broker_and_a_stale_epoch() -> None:
    world = World().lead().add_brokers(1)
    end = world.raft.log_end_offset
    for answer in (allocate(world, 99), allocate(world, 1, -1), allocate(world, 1, 1)):
        assert answer.error_code is ErrorCode.stale_broker_epoch
        assert (answer.producer_id_start, answer.producer_id_len) == (0, 0)
    assert world.raft.log_end_offset == end


def test_a_fenced_broker_gets_its_block() -> None:
    world = World().lead()
    world.register(1)
    assert allocate(world, 1).error_code is ErrorCode.none


def test_the_last_block_and_none_after_it() -> None:
    world = at_producer_id(2**63 - 1 - 1000)
    assert allocate(world, 0).producer_id_start == 2**63 - 1001
    assert allocate(world, 0).error_code is ErrorCode.unknown_server_error
    assert allocate(at_producer_id(2**63 - 2), 0).error_code is ErrorCode.unknown_server_error


def test_uncommitted_blocks_are_not_given_twice_and_lost_ones_were_never_sent() -> None:
    world = World().lead().add_brokers(0)
    epoch = world.controller.image.cluster.brokers[0].epoch
    first, second = (
        world.send(ApiKey.ALLOCATE_PRODUCER_IDS, 0, broker_id=0, broker_epoch=epoch) for _ in range(2)
    )
    assert (first, second) == ([], [])
    world.commit(1)
    assert [answer.producer_id_start for answer in first] == [0]
    world.follow(1, 2)
    assert [answer.error_code for answer in second] == [ErrorCode.not_controller]
    world.raft.truncate_uncommitted()
    world.lead(3)
    assert allocate(world, 0).producer_id_start == 1000
