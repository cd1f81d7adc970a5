"""The hash of an image: by increments as from scratch, equal for equal images, other for others."""

import random
from dataclasses import replace
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.partitions import EMPTY_PARTITIONS, PADDING, PartitionTable, table_of
from kquorum.metadata.state_hash.image_hash import MODULUS, hash_after, hash_of_image
from kquorum.metadata.state_hash.partition_hash import Rows, hash_of_rows, seed_of
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.image_records import image_from_values, image_records
from tests.support.metadata.image_histories import HISTORIES, STEPS, accepted, partition_states

TOPIC = UUID(int=77)
SEED = seed_of(TOPIC)


@given(HISTORIES, st.integers(1, 9))
@settings(deadline=None, max_examples=50)
def test_increments_lead_where_scratch_leads(history: list[MetadataRecord], size: int) -> None:
    image, state_hash = MetadataImage.empty(), 0
    for start in range(0, len(history), size):
        delta, _ = accepted(image, history[start : start + size])
        image = delta.apply(Provenance())
        state_hash = hash_after(state_hash, delta, image)
        assert state_hash == hash_of_image(image)


@given(HISTORIES, st.integers(1, 3))
@settings(deadline=None, max_examples=50)
def test_joined_deltas_lead_where_they_lead_one_by_one(history: list[MetadataRecord], size: int) -> None:
    """What a controller publishes of a batch (`MetadataDelta.absorb`)."""
    image = before = MetadataImage.empty()
    joined: MetadataDelta | None = None
    for start in range(0, len(history), size):
        delta, _ = accepted(image, history[start : start + size])
        notes = [*(joined.audit_notes if joined else ()), *delta.audit_notes]
        count = (joined.record_count if joined else 0) + delta.record_count
        after = delta.apply(Provenance())
        if joined is None or not joined.absorb(delta):
            before, joined = image, delta
            notes, count = delta.audit_notes, delta.record_count
        image = after
        assert joined.image is before
        assert joined.apply(Provenance()) == image
        assert hash_after(hash_of_image(before), joined, image) == hash_of_image(image)
        assert (joined.audit_notes, joined.record_count) == (notes, count)


@given(HISTORIES, HISTORIES)
@settings(deadline=None, max_examples=50)
def test_equal_hashes_mean_equal_images(one: list[MetadataRecord], other: list[MetadataRecord]) -> None:
    images = [accepted(MetadataImage.empty(), history)[0].apply(Provenance()) for history in (one, other)]
    assert (hash_of_image(images[0]) == hash_of_image(images[1])) == (images[0] == images[1])


@given(HISTORIES)
@settings(deadline=None, max_examples=50)
def test_every_change_that_makes_another_image_makes_another_hash(history: list[MetadataRecord]) -> None:
    image = MetadataImage.empty()
    for record in history:
        delta = MetadataDelta(image)
        try:
            delta.replay(record, 0)
        except ReplayError:
            continue
        after = delta.apply(Provenance())
        assert (hash_of_image(after) == hash_of_image(image)) == (after == image), record
        image = after


@given(HISTORIES)
@settings(deadline=None, max_examples=50)
def test_a_snapshot_has_the_hash_of_its_log(history: list[MetadataRecord]) -> None:
    """The way by which a node came to its state leaves no trace: columns padded, directories numbered otherwise."""
    image = accepted(MetadataImage.empty(), history)[0].apply(Provenance())
    loaded = image_from_values((encode_record(each) for each in image_records(image)), image.provenance)
    assert hash_of_image(loaded) == hash_of_image(image)


@given(STEPS)
@settings(deadline=None, max_examples=50)
def test_many_rows_are_hashed_like_one_by_one(steps: list[dict[int, PartitionState]]) -> None:
    table: PartitionTable = EMPTY_PARTITIONS
    for changes in steps:
        table = table.with_rows(table_of(changes))
    copies = [Rows(SEED, table, None)] * 13
    together = hash_of_rows(copies)
    alone = sum(
        hash_of_rows([Rows(SEED, table, table.ids[place : place + 1] * 0 + place)])
        for place in range(len(table))
    )
    assert (together - 13 * alone) % MODULUS == 0


@given(partition_states(), partition_states())
def test_what_moves_between_partitions_does_not_cancel_out(
    one: PartitionState, other: PartitionState
) -> None:
    both = hash_of_rows([Rows(SEED, table_of({0: one, 1: other}), None)])
    swapped = hash_of_rows([Rows(SEED, table_of({0: other, 1: one}), None)])
    plain = [
        replace(each, removing_replicas=(), adding_replicas=(), elr=(), last_known_elr=())
        for each in (one, other)
    ]
    assert (both == swapped) == (plain[0] == plain[1])


def test_large_tables_are_cut_in_pieces() -> None:
    """Above the size at which pieces are cut; with a bit flipped anywhere, the hash is another."""
    random_source = random.Random(7)
    delta = MetadataDelta(MetadataImage.empty())
    delta.replay(TopicRecord(name="t", topic_id=TOPIC), 0)
    for number in range(20_000):
        replicas = tuple(random_source.sample(range(9), 3))
        delta.replay(
            PartitionRecord(
                partition_id=number, topic_id=TOPIC, replicas=replicas, isr=replicas[:2], leader=replicas[0]
            ),
            number,
        )
    image = delta.apply(Provenance())
    known = hash_of_image(image)
    change = MetadataDelta(image)
    for number in range(0, 20_000, 1000):
        change.replay(PartitionChangeRecord(partition_id=number, topic_id=TOPIC, isr=(1,)), number)
    after = change.apply(Provenance())
    assert hash_after(known, change, after) == hash_of_image(after) != known


def test_padding_is_what_adds_nothing() -> None:
    """The place of padding below all numbers is what the hash of lists rests on."""
    assert PADDING == -(2**31)
