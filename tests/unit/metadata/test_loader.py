"""Committed batches to images; transactions above all."""

from typing import Any

import pytest

from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.loader import MetadataLoader
from kquorum.metadata.log_check.state_replay import ReadBatch
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.log_batch import LogBatch, build_batch
from kquorum.wire.metadata_records.configs import ClientQuotaRecord, EntityData
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
)
from kquorum.wire.metadata_records.security import UserScramCredentialRecord
from kquorum.wire.record_batch import HEADER_BYTES
from kquorum.wire.record_columns import WORTH_COLUMNS
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.metadata.snapshot_parts import level

BEGIN, END, ABORT = BeginTransactionRecord(name="t"), EndTransactionRecord(), AbortTransactionRecord()


class Log:
    """Builds batches one behind the other and notes what a loader publishes of them."""

    def __init__(self, **options: Any) -> None:
        self.loader = MetadataLoader(**options)
        self.published: list[tuple[int, bool, set[str]]] = []
        self.loader.publishers.append(lambda _delta, image: self.published.append(summary(image)))
        self._next_offset = 0

    def batch(self, *records: MetadataRecord) -> LogBatch:
        values = [(None, encode_record(record)) for record in records]
        batch = build_batch(self._next_offset, 3, 1000 + self._next_offset, values)
        self._next_offset = batch.next_offset
        return batch

    def control(self) -> LogBatch:
        batch = build_batch(self._next_offset, 3, 1000, [(b"\0\0\0\2", b"\0\0\0")], control=True)
        self._next_offset = batch.next_offset
        return batch

    def load(self, *records: MetadataRecord) -> None:
        self.loader.handle_commit([self.batch(*records)])


def summary(image: MetadataImage) -> tuple[int, bool, set[str]]:
    provenance = image.provenance
    return provenance.last_contained_offset, provenance.is_batch_aligned, set(image.features.finalized)


def test_one_image_for_one_call() -> None:
    log = Log()
    log.loader.handle_commit([log.batch(level("a")), log.control(), log.batch(level("b"), level("c"))])
    assert log.published == [(3, True, {"a", "b", "c"})]
    provenance = log.loader.image.provenance
    assert (provenance.last_contained_epoch, provenance.timestamp_ms) == (3, 1002)


def test_transaction_over_several_calls_is_published_at_its_end() -> None:
    log = Log()
    log.load(level("a"))
    log.load(BEGIN, level("b"))
    log.load(level("c"))
    assert log.loader.last_applied_offset == 0
    assert log.loader.transaction_start_offset == 1
    log.load(level("d"), END)
    assert log.published == [(0, True, {"a"}), (5, True, {"a", "b", "c", "d"})]


def test_transaction_in_one_batch_publishes_what_came_before_it_unaligned() -> None:
    log = Log()
    log.load(level("a"), BEGIN, level("b"), END)
    assert log.published == [(0, False, {"a"}), (3, True, {"a", "b"})]


def test_aborted_transaction_leaves_only_its_offset() -> None:
    log = Log()
    log.load(level("a"))
    log.load(BEGIN, level("b"))
    log.load(level("c"), ABORT)
    assert log.published == [(0, True, {"a"}), (4, True, {"a"})]


def test_what_follows_an_abort_in_its_batch_is_not_mixed_with_what_it_aborted() -> None:
    log = Log()
    log.load(BEGIN, level("lost"), ABORT, level("kept"))
    assert log.published[-1] == (3, True, {"kept"})


def test_new_transaction_right_behind_an_abort() -> None:
    log = Log()
    log.load(BEGIN, level("lost"), ABORT, BEGIN, level("kept"), END)
    assert log.published[-1] == (5, True, {"kept"})
    assert all("lost" not in features for _, _, features in log.published)


def test_several_transactions_in_one_batch() -> None:
    log = Log()
    log.load(BEGIN, level("a"), END, NoOpRecord(), BEGIN, level("b"), END)
    assert log.published == [(3, False, {"a"}), (6, True, {"a", "b"})]


def test_control_batch_moves_the_offset_and_nothing_else() -> None:
    log = Log()
    log.loader.handle_commit([log.control()])
    assert log.published == [(0, True, set())]
    assert not log.loader.has_data


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ((END,), "offset 0: .*no transaction is open"),
        ((ABORT,), "offset 0: .*no transaction is open"),
        ((BEGIN, BEGIN), "offset 1: .*open since 0"),
    ],
)
def test_misplaced_markers(records: tuple[MetadataRecord, ...], words: str) -> None:
    with pytest.raises(ReplayError, match=words):
        Log().load(*records)


def test_with_a_fault_handler_the_bad_record_is_skipped() -> None:
    faults: list[ReplayError] = []
    log = Log(on_fault=faults.append)
    log.load(END, level("a"))
    garbage = build_batch(2, 3, 1000, [(None, b"\x01\x7f\x00\x00"), (None, encode_record(level("b")))])
    log.loader.handle_commit([garbage])
    assert [fault.offset for fault in faults] == [0, 2]
    assert set(log.loader.image.features.finalized) == {"a", "b"}


def test_unreadable_record_names_its_offset() -> None:
    with pytest.raises(ReplayError, match=r"offset 0: .*127"):
        MetadataLoader().handle_commit([build_batch(0, 1, 1, [(None, b"\x01\x7f\x00\x00")])])


def test_snapshot_replaces_all_and_forgets_the_open_transaction() -> None:
    log = Log()
    log.load(level("a"), level("b"))
    log.load(BEGIN, level("lost"))
    other = Log()
    other.load(level("b", 2), level("c"))
    deltas: list[set[str]] = []
    log.loader.publishers.append(lambda delta, _image: deltas.append(delta.changed_features))
    log.loader.handle_snapshot(other.loader.image)
    assert log.loader.image == other.loader.image
    assert log.loader.transaction_start_offset is None
    assert deltas == [{"a", "b", "c"}]


def test_full_delta_leads_from_nothing_to_the_present() -> None:
    log = Log()
    log.load(level("a"))
    delta = log.loader.full_delta()
    assert delta.changed_features == {"a"}
    assert delta.apply(log.loader.image.provenance) == log.loader.image


def test_a_large_compressed_batch_whose_records_were_split_is_replayed_from_them() -> None:
    """As `log verify` does, which keeps but the header of a batch."""
    values = [(None, encode_record(level(f"feature-{number}"))) for number in range(2 * WORTH_COLUMNS)]
    whole = build_batch(0, 3, 1000, values, codec=CompressionCodec.LZ4)
    split = ReadBatch(
        base_offset=0,
        last_offset=whole.last_offset,
        leader_epoch=3,
        is_control=False,
        data=whole.data[:HEADER_BYTES],
        split_records=whole.records,
    )
    of_whole, of_split = MetadataLoader(), MetadataLoader()
    of_whole.handle_commit([whole])
    of_split.handle_commit([split])
    assert of_split.image == of_whole.image
    assert len(of_split.image.features.finalized) == len(values)


def test_what_cannot_be_read_is_not_quoted() -> None:
    """It may be a credential of a version that is not known here, and what is wrong goes into logs and to clients."""
    known = encode_record(
        UserScramCredentialRecord(
            name="alice", mechanism=1, salt=b"NaCl", stored_key=b"hush", server_key=b"hush", iterations=4096
        )
    )
    newer = known[:2] + bytes([9]) + known[3:]
    log = Log()
    with pytest.raises(ReplayError) as raised:
        log.loader.handle_commit([build_batch(0, 3, 1000, [(None, newer)])])
    assert "offset 0" in str(raised.value)
    assert f"{len(newer)} bytes" in str(raised.value)
    assert "hush" not in str(raised.value)


def test_a_quota_whose_entity_names_a_type_twice_is_that_of_the_last_name() -> None:
    """As Kafka replays it; neither writes one."""
    named = (("user", None), ("user", "alice"), ("client-id", None))
    entity = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in named)
    log = Log()
    log.load(ClientQuotaRecord(entity=entity, key="request_percentage", value=2.0, remove=False))
    entities = log.loader.image.client_quotas.entities
    assert {key: dict(quotas) for key, quotas in entities.items()} == {
        (("client-id", None), ("user", "alice")): {"request_percentage": 2.0}
    }
