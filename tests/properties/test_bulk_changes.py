"""What is decided of many partitions at once, by columns, against the rules for single partitions."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions import batched_update
from kquorum.metadata.controller.partitions import broker_movement as affected_module
from kquorum.metadata.controller.partitions.batched_update import (
    BatchedPartitionUpdate,
    BrokerRemoval,
    Departure,
)
from kquorum.metadata.controller.partitions.broker_movement import Movement, affected_partitions
from kquorum.metadata.controller.partitions.change_batch import Limits, PartitionChangeBatch, run_of
from kquorum.metadata.controller.partitions.partition_change import leader_and_isr_records
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.metadata_version import partition_record_version
from kquorum.metadata.image.partition_state import NO_LEADER, PartitionState
from kquorum.wire.metadata_records import topics
from kquorum.wire.record_frame import encode_record
from tests.support.bulk_worlds import BROKERS, SEEDS, changed, directory_of, replayed, world_of

Sizes = tuple[int, int, int]

SIZES = st.tuples(*[st.integers(1, 30)] * 3)


def _departures(broker_id: int) -> st.SearchStrategy[Departure]:
    directories = [directory_of(broker_id), directory_of(0), directory_of(broker_id + 50), UUID(int=5555)]
    failed = st.frozensets(st.sampled_from(directories), min_size=1)
    return st.one_of(
        st.builds(Departure, broker_id=st.just(broker_id), is_for_good=st.sampled_from([True, True, False])),
        st.builds(Departure, broker_id=st.just(broker_id), failed_directories=failed),
    )


DEPARTURES = st.sampled_from(BROKERS).flatmap(_departures)


def _movement_of(departure: Departure, is_last_kept: bool) -> Movement:
    return Movement(
        broker_id=departure.broker_id,
        is_leaving=True,
        is_for_good=departure.is_for_good,
        failed_directories=departure.failed_directories,
        is_last_kept=is_last_kept,
    )


MOVEMENTS = st.one_of(
    st.builds(Movement, broker_id=st.sampled_from(BROKERS), is_leaving=st.booleans()),
    st.builds(_movement_of, DEPARTURES, st.booleans()),
)


def is_affected(state: PartitionState, movement: Movement) -> bool:
    broker_id, failed = movement.broker_id, movement.failed_directories
    if not movement.is_leaving:
        return state.leader == NO_LEADER
    is_last = set(state.isr) == {broker_id} and state.leader == NO_LEADER
    is_member = broker_id in state.isr and not (movement.is_last_kept and is_last)
    if failed:
        return is_member and broker_id in state.replicas and state.directory_of(broker_id) in failed
    return is_member or (movement.is_for_good and broker_id in state.elr)


def concerned_one_by_one(image: MetadataImage, movement: Movement) -> affected_module.Found:
    """Topic by topic in the order of the image, partition by partition."""
    found = []
    for topic in image.topics.by_id.values():
        ids = [each for each, state in topic.partitions.items() if is_affected(state, movement)]
        if ids:
            found.append((topic, np.array(ids, dtype=np.int32)))
    return found


def one_by_one(context: DecisionContext, movement: Movement) -> list[topics.PartitionChangeRecord]:
    """The rules for single partitions."""
    broker_id, failed = movement.broker_id, movement.failed_directories
    affected = concerned_one_by_one(context.image, movement)
    if not movement.is_leaving:
        return list(leader_and_isr_records(context, affected, broker_to_add=broker_id))
    if movement.is_for_good:
        return list(leader_and_isr_records(context, affected, unclean_broker=broker_id))

    def is_failed(state: PartitionState) -> bool:
        return not failed or state.directory_of(broker_id) in failed

    return list(leader_and_isr_records(context, affected, broker_to_remove=broker_id, is_affected=is_failed))


def check_run(seed: int, movement: Movement) -> None:
    world, context = world_of(seed)
    records = one_by_one(context, movement)
    parts = [(topic, topic.partitions) for topic in context.image.topics.by_id.values()]
    run, cut = run_of(context, parts, movement, Limits())
    version = partition_record_version(context.metadata_version)
    assert cut is None
    assert list(run.values) == [encode_record(record, version) for record in records]
    bulk = world.controller._timeline.decide([run], 7)
    plain = world.controller._timeline.decide(records, 7)
    assert bulk.image == plain.image
    assert bulk.end_offset == plain.end_offset
    assert changed(bulk.delta) == changed(plain.delta)
    assert bulk.delta.record_count == plain.delta.record_count
    assert dict(bulk.image.topics.led_counts) == dict(plain.image.topics.led_counts)


@given(SEEDS, MOVEMENTS)
@settings(deadline=None, max_examples=100)
def test_a_run_is_what_single_decisions_make(seed: int, movement: Movement) -> None:
    check_run(seed, movement)


@pytest.mark.slow
@given(SEEDS, MOVEMENTS)
@settings(deadline=None, max_examples=1500)
def test_many_runs_are_what_single_decisions_make(seed: int, movement: Movement) -> None:
    check_run(seed, movement)


@given(SEEDS, MOVEMENTS, st.integers(1, 3), st.none() | st.integers(0, 20))
@settings(deadline=None, max_examples=50)
def test_concerned_partitions_are_found(
    seed: int, movement: Movement, topics_at_once: int, most: int | None
) -> None:
    _, context = world_of(seed)
    if not movement.is_leaving:
        return
    expected = [(topic.id, ids.tolist()) for topic, ids in concerned_one_by_one(context.image, movement)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(affected_module, "TOPICS_AT_ONCE", topics_at_once)
        found = affected_partitions(context.image.topics, movement, most)
    assert [(topic.id, ids.tolist()) for topic, ids in found] == expected[: len(found)]
    if len(found) < len(expected):
        assert most is not None
        assert sum(ids.size for _, ids in found) > most


@given(SEEDS, st.sampled_from(BROKERS), SIZES, st.integers(1, 3))
@settings(deadline=None, max_examples=60)
def test_slices_come_to_the_same_as_all_at_once(
    seed: int, broker_id: int, sizes: Sizes, topics_at_once: int
) -> None:
    _, context = world_of(seed)
    broker = context.image.cluster.brokers.get(broker_id)
    if broker is None:
        return
    expected = one_by_one(context, Movement(broker_id=broker_id, is_leaving=True))
    values: list[bytes] = []
    with sliced_by(sizes, topics_at_once):
        sliced = BatchedPartitionUpdate(context, broker, Movement(broker_id=broker_id, is_leaving=True))
        while not sliced.is_done:
            run = sliced.next_run(context)
            assert len(run) <= sizes[0]
            values += run.values
    version = partition_record_version(context.metadata_version)
    assert values == [encode_record(record, version) for record in expected]


@given(SEEDS, DEPARTURES, SIZES, st.integers(1, 3))
@settings(deadline=None, max_examples=60)
def test_nothing_is_left_behind_by_a_removal(
    seed: int, departure: Departure, sizes: Sizes, topics_at_once: int
) -> None:
    """Else the request would wait for another removal, and another."""
    _, context = world_of(seed)
    movement = departure.movement(context)
    expected = replayed(context.image, one_by_one(context, movement)).apply(Provenance())
    with sliced_by(sizes, topics_at_once):
        removal = BrokerRemoval(context, departure)
        while not removal.is_done:
            run = removal.next_run(context)
            context = replace(context, image=image_after(context.image, run))
    assert context.image.topics == expected.topics
    assert affected_partitions(context.image.topics, movement) == []


@contextmanager
def sliced_by(sizes: Sizes, topics_at_once: int) -> Iterator[None]:
    names = ("PARTITIONS_PER_SLICE", "ONE_BY_ONE_PER_SLICE", "LOOKED_AT_PER_SLICE")
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(names, sizes, strict=True):
            patch.setattr(batched_update, name, size)
        patch.setattr(batched_update, "TOPICS_PER_SLICE", topics_at_once)
        yield


def image_after(image: MetadataImage, run: PartitionChangeBatch) -> MetadataImage:
    delta = MetadataDelta(image)
    run.replay(delta, 0)
    return delta.apply(Provenance())
