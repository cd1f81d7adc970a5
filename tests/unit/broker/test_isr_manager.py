"""The ISR manager asks for what is missing, once at a time, and never for a replica that may not be in sync."""

from dataclasses import asdict
from random import Random
from typing import Any

import numpy as np
import pytest

from kquorum.broker.isr_columns import incomplete
from kquorum.broker.isr_manager import RETRY_BACKOFF_MAX_MS, RETRY_BACKOFF_MS, SHRINK_PAUSE_MS, IsrManager
from kquorum.metadata.image.directories import MIGRATING
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.partitions import table_of
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.cluster import BrokerRegistrationChangeRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, RemoveTopicRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.schema import MetadataRecord
from tests.support.api_calls import as_read, response_of
from tests.support.images import (
    after,
    broker_record,
    fencing,
    isr_change,
    partition_record,
    topic_id,
    topic_records,
)

EPOCH = 10


class World:
    """Broker 1's manager, and the image it was told of last."""

    def __init__(self, *records: MetadataRecord) -> None:
        self.manager = IsrManager(1)
        self.image = MetadataImage.empty()
        self.tell(0, *records)

    def tell(self, now_ms: int, *records: MetadataRecord) -> None:
        delta, self.image = after(self.image, *records)
        self.manager.handle_image(now_ms, delta, self.image)

    def asked(self, now_ms: int) -> dict[int, list[int]]:
        """The ISR asked for, by partition; empty when nothing is due."""
        asked = self.manager.maybe_next_request(now_ms, EPOCH)
        if asked is None:
            return {}
        in_ids, in_epochs = (
            as_read(ApiKey.ALTER_PARTITION, version, asked.make(version)) for version in (2, 3)
        )
        wished = {
            change.partition_index: [member.broker_id for member in change.new_isr_with_epochs]
            for change in in_epochs.topics[0].partitions
        }
        assert wished == {
            change.partition_index: list(change.new_isr) for change in in_ids.topics[0].partitions
        }
        return wished

    def answer(self, now_ms: int, errors: dict[int, ErrorCode], top: ErrorCode = ErrorCode.none) -> None:
        partitions = [
            {
                "partition_index": index,
                "error_code": error,
                "leader_id": 1,
                "leader_epoch": 3,
                "isr": (1, 2),
                "leader_recovery_state": 0,
                "partition_epoch": 6,
            }
            for index, error in errors.items()
        ]
        values = {"error_code": top, "topics": [{"topic_id": topic_id(1), "partitions": partitions}]}
        self.manager.handle_reply(now_ms, response_of(ApiKey.ALTER_PARTITION, 3, values))


def shrunken(*, second_fenced: bool = False) -> World:
    """Broker 1 leads partition 0, from whose ISR broker 2 is missing; 1 is complete; 2 is led by broker 2."""
    return World(
        broker_record(1),
        broker_record(2, fenced=second_fenced),
        *topic_records(
            1,
            "t",
            partition_record(1, 0, (1, 2), isr=(1,)),
            partition_record(1, 1, (1, 2)),
            partition_record(1, 2, (2, 1), isr=(2,)),
        ),
    )


def test_it_asks_for_the_missing_replica_of_what_it_leads_with_broker_epochs() -> None:
    world = shrunken()
    asked = world.manager.maybe_next_request(0, EPOCH)
    assert asked is not None
    request: Any = asked.make(3)
    assert (request.broker_id, request.broker_epoch) == (1, EPOCH)
    (change,) = request.topics[0].partitions
    assert (change.partition_index, change.leader_epoch, change.partition_epoch) == (0, 3, 5)
    assert [asdict(member) for member in change.new_isr_with_epochs] == [
        {"broker_id": 1, "broker_epoch": 10},
        {"broker_id": 2, "broker_epoch": 20},
    ]


def test_a_fenced_replica_is_not_asked_for_until_it_is_unfenced() -> None:
    world = shrunken(second_fenced=True)
    assert world.asked(0) == {}
    assert world.manager.next_deadline_ms() is None
    world.tell(500, fencing(2, fenced=False))
    assert world.asked(500) == {0: [1, 2]}


def test_nothing_is_asked_without_a_broker_epoch() -> None:
    assert shrunken().manager.maybe_next_request(0, -1) is None


def test_one_request_is_under_way_at_a_time() -> None:
    world = shrunken()
    assert world.asked(0)
    world.tell(1, isr_change(1, 1, (1,)))
    assert world.asked(1_000) == {}
    assert world.manager.next_deadline_ms() is None
    world.tell(2, isr_change(1, 0, (1, 2)))
    world.answer(2, {0: ErrorCode.none})
    assert world.asked(1 + SHRINK_PAUSE_MS) == {1: [1, 2]}


def test_what_the_controller_has_just_taken_out_is_not_asked_for_at_once() -> None:
    world = shrunken()
    world.tell(0, isr_change(1, 0, (1, 2)))
    world.tell(1, isr_change(1, 1, (1,)))
    assert world.asked(SHRINK_PAUSE_MS) == {}
    assert world.manager.next_deadline_ms() == 1 + SHRINK_PAUSE_MS
    world.tell(SHRINK_PAUSE_MS, fencing(2, fenced=True))
    assert world.manager.next_deadline_ms() is None
    assert world.asked(10 * SHRINK_PAUSE_MS) == {}
    world.tell(10 * SHRINK_PAUSE_MS, fencing(2, fenced=False))
    assert world.asked(10 * SHRINK_PAUSE_MS) == {1: [1, 2]}


def test_a_fenced_broker_ends_no_other_requests_pause() -> None:
    world = World(
        *(broker_record(each) for each in (1, 2, 3)),
        *topic_records(1, "t", partition_record(1, 0, (1, 2, 3))),
    )
    world.tell(1, isr_change(1, 0, (1,)))
    world.tell(2, fencing(2, fenced=True))
    assert world.asked(2) == {}
    assert world.asked(1 + SHRINK_PAUSE_MS) == {0: [1, 3]}


@pytest.mark.parametrize("seed", range(40))
def test_columns_find_what_a_look_at_each_partition_finds(seed: int) -> None:
    random_source = Random(seed)
    topics, expected = [], []
    active = frozenset(random_source.sample(range(6), 4))
    for number in range(3):
        states = {}
        for index in random_source.sample(range(20), random_source.randrange(12)):
            replicas = tuple(random_source.sample(range(6), random_source.randint(1, 4)))
            isr = tuple(random_source.sample(replicas, random_source.randint(0, len(replicas))))
            states[index] = PartitionState(
                replicas=replicas,
                directories=(MIGRATING,) * len(replicas),
                isr=isr,
                leader=random_source.randrange(3),
            )
        asked = (
            sorted(random_source.sample(sorted(states), len(states) // 2))
            if random_source.randrange(2)
            else None
        )
        table = table_of(states)
        ids = None if asked is None else np.array(asked, dtype=np.int32)
        topics.append((TopicImage(name=f"t{number}", id=topic_id(number), partitions=table), ids))
        expected.append(
            [
                index
                for index in sorted(states if asked is None else asked)
                if states[index].leader == 1 and active & set(states[index].replicas) - set(states[index].isr)
            ]
        )
    assert [found.tolist() for found in incomplete(topics, 1, active)] == expected


def test_a_change_that_shows_in_the_image_completes_the_request() -> None:
    world = shrunken()
    world.asked(0)
    world.answer(5, {0: ErrorCode.none})
    world.tell(6, isr_change(1, 0, (1, 2)))
    assert world.manager.next_deadline_ms() is None
    assert world.asked(1_000_000) == {}


def test_an_image_before_the_reply_ends_it_too() -> None:
    world = shrunken()
    world.asked(0)
    world.tell(1, isr_change(1, 0, (1, 2)))
    world.answer(2, {0: ErrorCode.none})
    assert world.asked(1_000_000) == {}


def test_refused_partitions_are_asked_for_again_with_growing_pauses() -> None:
    world = shrunken()
    now_ms, pauses = 0, []
    for _ in range(8):
        assert world.asked(now_ms) == {0: [1, 2]}
        world.answer(now_ms, {0: ErrorCode.ineligible_replica})
        deadline_ms = world.manager.next_deadline_ms()
        assert deadline_ms is not None
        pauses.append(deadline_ms - now_ms)
        assert world.asked(deadline_ms - 1) == {}
        now_ms = deadline_ms
    assert pauses[:3] == [RETRY_BACKOFF_MS, 2 * RETRY_BACKOFF_MS, 4 * RETRY_BACKOFF_MS]
    assert pauses[-1] == RETRY_BACKOFF_MAX_MS


def test_a_failed_request_and_a_refused_one_are_sent_again() -> None:
    world = shrunken()
    world.asked(0)
    world.manager.handle_failure(0)
    assert world.asked(RETRY_BACKOFF_MS) == {0: [1, 2]}
    world.answer(RETRY_BACKOFF_MS, {}, top=ErrorCode.stale_broker_epoch)
    assert world.manager.next_deadline_ms() == 3 * RETRY_BACKOFF_MS


def test_a_deleted_topic_and_a_lost_leadership_are_forgotten() -> None:
    world = shrunken()
    world.tell(1, RemoveTopicRecord(topic_id=topic_id(1)))
    assert world.manager.next_deadline_ms() is None
    world = shrunken()
    world.tell(1, PartitionChangeRecord(partition_id=0, topic_id=topic_id(1), leader=2))
    assert world.asked(1) == {}


def test_a_replica_in_controlled_shutdown_stays_out() -> None:
    world = shrunken()
    world.tell(1, BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=20, in_controlled_shutdown=1))
    assert world.asked(1) == {}
