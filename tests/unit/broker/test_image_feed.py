"""From the log to what clients read: one image after the other, each whole, whichever publisher it has."""

from dataclasses import replace

from kquorum.broker.image_feed import ImageFeed
from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.broker.state_machine import BrokerStateMachine
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.snapshot import LoadedSnapshot
from kquorum.wire.log_batch import LogBatch, build_batch
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.controller_world import World, topic

BEGIN, END, ABORT = BeginTransactionRecord(name="t"), EndTransactionRecord(), AbortTransactionRecord()


def level(name: str) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=name, feature_level=1)


def batch(base_offset: int, *records: MetadataRecord) -> LogBatch:
    values = [(None, encode_record(record)) for record in records]
    return build_batch(base_offset, 1, 1000 + base_offset, values)


def told(image: MetadataImage) -> set[str]:
    return set(image.features.finalized)


def machine_after(*batches: LogBatch) -> tuple[BrokerStateMachine, MetadataCache]:
    cache = MetadataCache()
    machine = BrokerStateMachine(cache)
    for each in batches:
        machine.handle_commit(0, [each])
    return machine, cache


def test_a_reader_has_the_old_image_or_the_new_one_and_nothing_between() -> None:
    cache = MetadataCache()
    machine = BrokerStateMachine(cache)
    seen: list[tuple[MetadataImage, MetadataImage, int]] = []
    machine.observers.append(
        lambda _now_ms, _delta, image: seen.append((cache.image, image, machine.applied_offset))
    )
    machine.handle_commit(0, [batch(0, level("a"))])
    held = cache.image
    machine.handle_commit(0, [batch(1, level("b"), level("c")), batch(3, level("d"))])
    assert told(held) == {"a"}, "who is reading an image goes on reading that one"
    assert told(cache.image) == {"a", "b", "c", "d"}, "both batches at once"
    assert all(cached is image for cached, image, _ in seen), (
        "the cache is swapped before the listeners are called"
    )
    assert [applied for _, _, applied in seen] == [-1, 0], (
        "and an offset counts as applied after all were told"
    )
    assert machine.applied_offset == 3


def test_a_transaction_is_held_back_however_many_commits_it_takes() -> None:
    machine, cache = machine_after(batch(0, level("a")), batch(1, BEGIN, level("b")), batch(3, level("c")))
    assert told(cache.image) == {"a"}
    assert machine.applied_offset == 0, "a broker must not say that it has what clients cannot see"
    machine.handle_commit(0, [batch(4, END)])
    assert (told(cache.image), machine.applied_offset) == ({"a", "b", "c"}, 4)


def test_an_aborted_transaction_was_never_there() -> None:
    machine, cache = machine_after(batch(0, level("a")), batch(1, BEGIN, level("b")), batch(3, ABORT))
    assert (told(cache.image), machine.applied_offset) == ({"a"}, 3)


def test_a_restart_begins_with_the_local_snapshot_and_goes_on_in_the_log() -> None:
    before, _ = machine_after(batch(0, level("a")), batch(1, level("b")))
    machine, cache = machine_after()
    machine.handle_snapshot(0, LoadedSnapshot(before.image, None, before.state_hash))
    assert (told(cache.image), machine.applied_offset) == ({"a", "b"}, 1)
    machine.handle_commit(0, [batch(2, level("c"))])
    assert (told(cache.image), machine.applied_offset) == ({"a", "b", "c"}, 2)
    straight, _ = machine_after(batch(0, level("a")), batch(1, level("b")), batch(2, level("c")))
    assert machine.image == straight.image
    assert machine.state_hash == straight.state_hash


def test_beside_a_controller_a_broker_serves_what_is_committed_and_not_what_is_proposed() -> None:
    world = World().lead()
    feed = ImageFeed(MetadataCache())
    world.controller.publishers.append(lambda image, delta: feed.publish(world.now_ms, delta, image))
    world.add_brokers(1)
    served = feed.cache.image
    answers = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("orders")], timeout=1000)
    assert "orders" in world.controller.image.topics.by_name
    assert feed.cache.image is served
    world.commit()
    assert answers[0].topics[0].error_code is ErrorCode.none
    assert "orders" in feed.cache.image.topics.by_name
    assert feed.cache.image is world.controller.committed_image
    assert feed.applied_offset == world.controller.committed_image.provenance.last_contained_offset


def test_an_image_from_elsewhere_counts_as_applied_once_published() -> None:
    feed = ImageFeed(MetadataCache())
    assert feed.applied_offset == -1
    machine, _ = machine_after(batch(0, level("a")))
    at = Provenance(last_contained_offset=41)
    feed.publish(0, machine.loader.full_delta(), replace(machine.image, provenance=at))
    assert feed.applied_offset == 41
