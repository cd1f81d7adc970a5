"""The directory manager finds each replica that lies in no directory of its broker, and has it put into one."""

from collections import Counter
from random import Random
from uuid import UUID

import pytest

from kquorum.broker.directory_manager import (
    BATCHING_MS,
    MAX_ASSIGNMENTS_PER_REQUEST,
    RETRY_BACKOFF_MAX_MS,
    RETRY_BACKOFF_MS,
    DirectoryManager,
)
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.directories import LOST, MIGRATING, UNASSIGNED
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.metadata_version import DIRECTORIES
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from kquorum.wire.metadata_records.topics import (
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.schema import MetadataRecord
from tests.support.api_calls import as_read, response_of
from tests.support.images import after, log_dir, topic_id

BROKER, EPOCH = 1, 10
FIRST, SECOND, GONE = UUID(int=501), UUID(int=502), UUID(int=777)
OTHERS = log_dir(2)
# The directory, then the topic, then the partition.
Asked = tuple[UUID, int, int]


def level(metadata_version: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name="metadata.version", feature_level=metadata_version)


def partition(number: int, index: int, **directories: UUID) -> PartitionRecord:
    """With a replica on each broker named, as `b1=`."""
    replicas = tuple(int(each[1:]) for each in directories)
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id(number),
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leader_epoch=3,
        partition_epoch=5,
        directories=tuple(directories.values()),
    )


def topic(number: int, *places: dict[str, UUID]) -> list[MetadataRecord]:
    partitions = [partition(number, index, **place) for index, place in enumerate(places)]
    return [TopicRecord(name=f"t{number}", topic_id=topic_id(number)), *partitions]


def move(number: int, index: int, *directories: UUID) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=index, topic_id=topic_id(number), directories=directories)


class World:
    """Broker 1's manager, and the image it was told of last."""

    def __init__(
        self, *records: MetadataRecord, own: tuple[UUID, ...] = (FIRST,), at: int = DIRECTORIES
    ) -> None:
        self.manager = DirectoryManager(BROKER, own)
        self.image = MetadataImage.empty()
        self.tell(0, level(at), *records)

    def tell(self, now_ms: int, *records: MetadataRecord) -> None:
        delta, self.image = after(self.image, *records)
        self.manager.handle_image(now_ms, delta, self.image)

    def asked(self, now_ms: int, broker_epoch: int = EPOCH) -> list[Asked]:
        """In order; empty when nothing is due."""
        request = self.manager.maybe_next_request(now_ms, broker_epoch)
        if request is None:
            return []
        assert as_read(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, request) == request
        assert (request.broker_id, request.broker_epoch) == (BROKER, broker_epoch)
        return sorted(
            (directory.id_, each.topic_id.int - topic_id(0).int, one.partition_index)
            for directory in request.directories
            for each in directory.topics
            for one in each.partitions
        )

    def answer(
        self, now_ms: int, asked: list[Asked], *refused: Asked, top: ErrorCode = ErrorCode.none
    ) -> None:
        code = ErrorCode.unknown_topic_or_partition
        directories = [
            {
                "id_": directory,
                "topics": [
                    {
                        "topic_id": topic_id(number),
                        "partitions": [
                            {
                                "partition_index": index,
                                "error_code": code
                                if (directory, number, index) in refused
                                else ErrorCode.none,
                            }
                        ],
                    }
                ],
            }
            for directory, number, index in asked
        ]
        values = {"throttle_time": 0, "error_code": top, "directories": directories}
        self.manager.handle_reply(now_ms, response_of(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, values))


@pytest.mark.parametrize("elsewhere", [GONE, LOST, UNASSIGNED, MIGRATING, OTHERS])
def test_only_own_replicas_that_lie_elsewhere_are_asked_for(elsewhere: UUID) -> None:
    world = World(
        *topic(1, {"b1": FIRST, "b2": OTHERS}, {"b2": GONE}, {"b2": OTHERS, "b1": elsewhere}),
        *topic(2, {"b3": GONE, "b2": OTHERS, "b1": elsewhere}, {"b1": FIRST}),
        *topic(3, {"b2": GONE}),
    )
    assert world.manager.next_deadline_ms() == BATCHING_MS
    assert world.asked(BATCHING_MS - 1) == []
    asked = world.asked(BATCHING_MS)
    assert asked == [(FIRST, 1, 2), (FIRST, 2, 0)]
    assert world.manager.next_deadline_ms() is None, "one is under way"
    assert world.asked(99_999) == []
    world.answer(150, asked)
    assert world.manager._elsewhere == {}
    assert world.manager.next_deadline_ms() is None


def test_nothing_is_sent_unregistered_or_where_partitions_have_no_directories() -> None:
    world = World(*topic(1, {"b1": GONE}))
    assert world.asked(1000, broker_epoch=-1) == []
    assert world.asked(1000, broker_epoch=77) == [(FIRST, 1, 0)]
    old = World(*topic(1, {"b1": MIGRATING}), at=DIRECTORIES - 2)
    assert old.manager.next_deadline_ms() is None
    assert old.asked(1000) == []
    old.tell(2000, level(DIRECTORIES))
    assert old.asked(3000) == [(FIRST, 1, 0)]


def test_pages_of_so_many_one_after_the_other() -> None:
    count = MAX_ASSIGNMENTS_PER_REQUEST + 7
    world = World(*topic(1, *({"b1": GONE} for _ in range(count))))
    first = world.asked(1000)
    assert len(first) == MAX_ASSIGNMENTS_PER_REQUEST
    world.answer(1010, first)
    rest = world.asked(1010)
    assert sorted(index for _, _, index in first + rest) == list(range(count))


def test_a_failure_is_followed_by_longer_and_longer_pauses() -> None:
    world = World(*topic(1, {"b1": GONE}))
    now_ms, pauses = 1000, []
    for turn in range(12):
        asked = world.asked(now_ms)
        assert asked == [(FIRST, 1, 0)]
        if turn % 2:
            world.manager.handle_failure(now_ms)
        else:
            world.answer(now_ms, [], top=ErrorCode.stale_broker_epoch)
        due_ms = world.manager.next_deadline_ms()
        assert due_ms is not None
        assert world.asked(due_ms - 1) == []
        pauses.append(due_ms - now_ms)
        now_ms = due_ms
    assert pauses[:4] == [RETRY_BACKOFF_MS << turn for turn in range(4)]
    assert pauses[-1] == RETRY_BACKOFF_MAX_MS
    world.answer(now_ms, world.asked(now_ms))
    world.tell(now_ms, *topic(2, {"b1": GONE}))
    assert world.asked(now_ms + BATCHING_MS) == [(FIRST, 2, 0)], "what succeeded ends the pauses"


def test_what_was_refused_or_not_answered_is_asked_for_again() -> None:
    world = World(*topic(1, {"b1": GONE}, {"b1": GONE}, {"b1": GONE}))
    asked = world.asked(1000)
    world.answer(1000, asked[:2], asked[1])
    assert world.asked(1000) == []
    assert world.asked(1000 + RETRY_BACKOFF_MS) == asked[1:]


def test_the_image_ends_a_wish_and_begins_it_again() -> None:
    world = World(*topic(1, {"b1": GONE}, {"b1": GONE}), *topic(2, {"b1": GONE}))
    world.tell(10, move(1, 1, FIRST), RemoveTopicRecord(topic_id=topic_id(2)))
    asked = world.asked(1000)
    assert asked == [(FIRST, 1, 0)]
    world.answer(1000, asked)
    world.tell(1000, move(1, 0, FIRST))
    assert world.manager._elsewhere == {}
    world.tell(2000, move(1, 1, GONE))
    assert world.asked(3000) == [(FIRST, 1, 1)]


def test_of_several_directories_the_one_with_the_fewest_gets_the_next() -> None:
    own = (FIRST, SECOND)
    world = World(*topic(1, *[{"b1": FIRST}] * 3, {"b1": SECOND}), *topic(2, *[{"b1": GONE}] * 6), own=own)
    assert Counter(each for each, *_ in world.asked(1000)) == {FIRST: 2, SECOND: 4}
    world.manager.handle_failure(1000)
    world.tell(1000, *(move(1, index, SECOND) for index in range(3)))
    assert Counter(each for each, *_ in world.asked(2000)) == {FIRST: 5, SECOND: 1}
    world.manager.handle_failure(2000)
    world.tell(2000, RemoveTopicRecord(topic_id=topic_id(1)))
    assert Counter(each for each, *_ in world.asked(3000)) == {FIRST: 3, SECOND: 3}


def test_nothing_goes_into_a_directory_that_failed_and_nothing_leaves_it() -> None:
    world = World(*topic(1, {"b1": FIRST}, {"b1": GONE}, {"b1": UNASSIGNED}), own=(FIRST, SECOND))
    world.manager.set_offline((SECOND,))
    assert world.asked(1000) == [(FIRST, 1, 1), (FIRST, 1, 2)]
    world.manager.handle_failure(1000)
    world.manager.set_offline((SECOND, FIRST))
    assert world.manager.next_deadline_ms() is None
    assert world.asked(9000) == []


@pytest.mark.parametrize("seed", range(40))
def test_any_history_leaves_exactly_what_the_image_shows(seed: int) -> None:
    """Against a plain look at every partition; images come in pieces, and now and then a whole one."""
    random = Random(seed)
    own = (FIRST, SECOND)
    world = World(own=own)
    places = (FIRST, SECOND, GONE, UNASSIGNED, OTHERS)
    for step in range(30):
        now_ms = step * 1000
        there = [each.id.int - topic_id(0).int for each in world.image.topics.by_id.values()]
        if random.random() < 0.3:
            places_of_new = [
                {
                    f"b{broker}": random.choice(places)
                    for broker in random.sample(range(1, 5), random.randint(1, 3))
                }
                for _ in range(random.randint(1, 6))
            ]
            world.tell(now_ms, *topic(100 + step, *places_of_new))
        elif there and random.random() < 0.15:
            world.tell(now_ms, RemoveTopicRecord(topic_id=topic_id(random.choice(there))))
        elif there and random.random() < 0.8:
            changes = {}
            for _ in range(4):
                number = random.choice(there)
                table = world.image.topics.by_id[topic_id(number)].partitions
                index = random.choice(table.ids.tolist())
                state = table.get(index)
                assert state is not None
                changes[number, index] = [random.choice(places) for _ in state.replicas]
            world.tell(now_ms, *(move(*key, *chosen) for key, chosen in changes.items()))
        elif random.random() < 0.5:
            target = World(*topic(900 + step, {"b1": random.choice(places)}), own=own).image
            delta = MetadataDelta(world.image)
            delta.become(target)
            world.image = target
            world.manager.handle_image(now_ms, delta, target)
        seen = _places(world.image)
        assert sum(map(len, world.manager._elsewhere.values())) == sum(
            each not in own for each in seen.values()
        )
        assert world.manager._counts.tolist() == [sum(x == each for x in seen.values()) for each in own]
    expected = sorted(key for key, each in _places(world.image).items() if each not in own)
    assert sorted((number, index) for _, number, index in world.asked(10**6)) == expected


def _places(image: MetadataImage) -> dict[tuple[int, int], UUID]:
    def of(state: PartitionState) -> UUID:
        return state.directories[state.replicas.index(BROKER)]

    return {
        (each.id.int - topic_id(0).int, index): of(state)
        for each in image.topics.by_id.values()
        for index, state in each.partitions.items()
        if BROKER in state.replicas
    }


def manager_with_logs(places: dict[tuple[int, int], UUID]) -> tuple[World, list[tuple[int, int, UUID]]]:
    """A manager that knows where the logs lie; what it says was assigned."""
    assigned: list[tuple[int, int, UUID]] = []
    world = World(own=(FIRST, SECOND))
    world.manager = DirectoryManager(
        BROKER,
        (FIRST, SECOND),
        located=lambda topic, index: places.get((topic.int - topic_id(0).int, index)),
        on_assigned=lambda topic, index, where: assigned.append((topic.int - topic_id(0).int, index, where)),
    )
    world.manager.handle_image(0, MetadataDelta(MetadataImage.empty()), world.image)
    return world, assigned


def test_a_replica_is_assigned_to_where_its_log_lies_and_waits_until_it_is_open() -> None:
    """Not to the directory with the fewest: the controller would take the wrong replicas away when one fails."""
    places: dict[tuple[int, int], UUID] = {}
    world, _ = manager_with_logs(places)
    world.tell(0, *topic(1, {"b1": UNASSIGNED}, {"b1": UNASSIGNED}, {"b1": UNASSIGNED}))
    assert world.asked(BATCHING_MS) == []
    places |= {(1, 0): SECOND, (1, 1): SECOND}
    later_ms = BATCHING_MS + RETRY_BACKOFF_MAX_MS
    assert world.asked(later_ms) == [(SECOND, 1, 0), (SECOND, 1, 1)]
    world.answer(later_ms, [(SECOND, 1, 0), (SECOND, 1, 1)])
    places[1, 2] = FIRST
    assert world.asked(2 * later_ms) == [(FIRST, 1, 2)]


def test_a_directory_that_is_asked_for_is_assigned_and_told() -> None:
    world, assigned = manager_with_logs({})
    world.tell(0, *topic(1, {"b1": FIRST}, {"b1": FIRST}))
    poked: list[None] = []
    world.manager.poke = lambda: poked.append(None)
    world.manager.assign(topic_id(1), 0, SECOND)
    assert poked == [None]
    assert world.asked(BATCHING_MS) == [(SECOND, 1, 0)]
    # A newer wish while the request is under way: its answer is not that wish's.
    world.manager.assign(topic_id(1), 0, FIRST)
    world.answer(BATCHING_MS, [(SECOND, 1, 0)])
    assert assigned == []
    assert world.asked(2 * BATCHING_MS) == [(FIRST, 1, 0)]
    world.answer(2 * BATCHING_MS, [(FIRST, 1, 0)], (FIRST, 1, 0))
    assert world.asked(2 * BATCHING_MS) == [], "it backs off"
    assert world.asked(RETRY_BACKOFF_MAX_MS) == [(FIRST, 1, 0)]
    world.answer(RETRY_BACKOFF_MAX_MS, [(FIRST, 1, 0)])
    assert assigned == [(1, 0, FIRST)]
    assert world.asked(2 * RETRY_BACKOFF_MAX_MS) == []


def test_a_wish_for_a_replica_that_has_gone_is_dropped() -> None:
    world, assigned = manager_with_logs({})
    world.tell(0, *topic(1, {"b1": FIRST}), *topic(2, {"b2": OTHERS}))
    world.manager.assign(topic_id(1), 9, SECOND)
    world.manager.assign(topic_id(2), 0, SECOND)
    world.manager.assign(topic_id(3), 0, SECOND)
    world.manager.assign(topic_id(1), 0, GONE)
    assert world.asked(BATCHING_MS) == []
    assert assigned == []


def test_a_replica_without_space_is_lost_and_not_assigned_back_before_there_is_some() -> None:
    places: dict[tuple[int, int], UUID] = {}
    world, assigned = manager_with_logs(places)
    world.tell(0, *topic(1, {"b1": FIRST, "b2": OTHERS}))
    world.manager.assign(topic_id(1), 0, LOST)
    assert world.asked(BATCHING_MS) == [(LOST, 1, 0)]
    world.answer(BATCHING_MS, [(LOST, 1, 0)])
    assert assigned == [(1, 0, LOST)]
    world.tell(2 * BATCHING_MS, move(1, 0, LOST, OTHERS))
    assert world.asked(RETRY_BACKOFF_MAX_MS) == [], "its place is not told yet"
    places[1, 0] = FIRST
    assert world.asked(2 * RETRY_BACKOFF_MAX_MS) == [(FIRST, 1, 0)]
