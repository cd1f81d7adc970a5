"""What compaction keeps of batches: the behaviours that Kafka tests of its cleaner, its offset map and its records."""

from collections.abc import Sequence

import pytest

from kquorum.broker.log.compaction import CleanedTransactions, CopyPass, KeyPass, LastRecord, OffsetMap
from kquorum.broker.log.transactions import AbortedEntry
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.data_batch import (
    Record,
    check_data_batch,
    read_data_header,
    read_data_records,
    write_data_batch,
    write_transaction_marker,
)
from kquorum.wire.legacy_messages import read_legacy_records
from kquorum.wire.transaction_markers import TransactionMarker
from tests.support.wire.legacy import legacy_message

NOW_MS = 1_700_000_000_000
RETENTION_MS = 1000


def batch(first: int, *pairs: tuple[str | None, str | None], **fields: object) -> bytes:
    """Records from the offset on, a millisecond apart."""
    records = [
        Record(
            first + index,
            NOW_MS + index,
            None if key is None else key.encode(),
            None if value is None else value.encode(),
            (("h", b"x"),),
        )
        for index, (key, value) in enumerate(pairs)
    ]
    return write_data_batch(records, **fields)  # type: ignore[arg-type]


def marker_at(offset: int, *, commit: bool, producer_id: int = 7, epoch: int = 0) -> bytes:
    return write_transaction_marker(
        TransactionMarker(commit, 0),
        producer_id=producer_id,
        producer_epoch=epoch,
        timestamp_ms=NOW_MS,
        offset=offset,
    )


def pass_over(
    batches: Sequence[bytes], *, aborted: Sequence[AbortedEntry] = (), now_ms: int = NOW_MS, **fields: object
) -> tuple[list[bytes], CopyPass]:
    """Both passes over these batches; what is left of each, without those that went."""
    end = read_data_header(batches[-1]).next_offset
    offsets = OffsetMap(1000)
    keys = KeyPass(offsets, 0, aborted)
    for each in batches:
        assert keys.add(read_data_header(each), each)
    values: dict[str, object] = {
        "offsets": offsets,
        "last_records": {},
        "end_offset": end + 1,
        "now_ms": now_ms,
        "delete_retention_ms": RETENTION_MS,
        "transactions": CleanedTransactions(aborted),
    }
    copying = CopyPass(**{**values, **fields})  # type: ignore[arg-type]
    kept = [copying.kept(read_data_header(each), each) for each in batches]
    return [bytes(each) for each in kept if each is not None], copying


def offsets_of(batches: Sequence[bytes]) -> list[int]:
    return [
        each.offset
        for content in batches
        for each in read_data_records(content, 0, read_data_header(content))
    ]


def ends_of(batches: Sequence[bytes]) -> list[int]:
    return [read_data_header(each).last_offset for each in batches]


# The map


def test_every_key_finds_its_last_offset_and_no_other_key_does() -> None:
    offsets = OffsetMap(10_000, slots=2)
    for number in range(3000):
        offsets.put(b"%d" % (number % 1000), number)
    assert len(offsets) == 1000
    assert [offsets.get(b"%d" % key) for key in range(1000)] == list(range(2000, 3000))
    assert offsets.get(b"unknown") == -1


def test_a_map_is_full_at_nine_tenths_of_its_slots() -> None:
    offsets = OffsetMap(10)
    for number in range(9):
        assert not offsets.is_full
        offsets.put(b"%d" % number, number)
    assert offsets.is_full


def test_an_offset_of_zero_and_one_beyond_31_bits_are_kept() -> None:
    offsets = OffsetMap(10)
    offsets.put(b"a", 0)
    offsets.put(b"b", 2**40)
    assert (offsets.get(b"a"), offsets.get(b"b")) == (0, 2**40)


def test_the_first_pass_stops_before_the_batch_that_the_map_cannot_take() -> None:
    offsets = OffsetMap(3)
    keys = KeyPass(offsets, 0, ())
    first, second = batch(0, ("a", "1"), ("b", "1")), batch(2, ("c", "1"))
    assert keys.add(read_data_header(first), first)
    assert not keys.add(read_data_header(second), second)
    assert offsets.latest_offset == 1


def test_a_batch_larger_than_the_map_is_taken_all_the_same_when_it_is_the_first() -> None:
    offsets = OffsetMap(2)
    first = batch(0, *((str(number), "1") for number in range(20)))
    assert KeyPass(offsets, 0, ()).add(read_data_header(first), first)
    assert (offsets.latest_offset, offsets.get(b"19")) == (19, 19)


def test_records_below_the_first_dirty_offset_and_of_aborted_transactions_are_no_newest_ones() -> None:
    offsets = OffsetMap(100)
    aborted = AbortedEntry(7, 4, 6, 7)
    keys = KeyPass(offsets, 2, [aborted])
    for each in (
        batch(0, ("a", "1"), ("b", "1"), ("c", "1")),
        batch(
            4, ("d", "1"), ("c", "2"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
        ),
        marker_at(6, commit=False),
    ):
        assert keys.add(read_data_header(each), each)
    assert [offsets.get(key) for key in (b"a", b"b", b"c", b"d")] == [-1, -1, 2, -1]
    assert offsets.latest_offset == 6


def test_missing_offsets_at_the_end_of_a_segment_count_as_cleaned() -> None:
    """KAFKA-8764: else the cleaner would come back for them for ever."""
    offsets = OffsetMap(100)
    keys = KeyPass(offsets, 0, ())
    only = batch(0, ("a", "1"))
    keys.add(read_data_header(only), only)
    keys.end_segment(50)
    assert offsets.latest_offset == 49


# Records


def test_of_each_key_the_newest_record_stays_with_its_offset_time_and_headers() -> None:
    kept, _ = pass_over([batch(0, ("a", "1"), ("b", "1"), ("a", "2")), batch(3, ("c", "1"), ("b", "2"))])
    assert offsets_of(kept) == [2, 3, 4]
    record = read_data_records(kept[0], 0, check_data_batch(kept[0]))[0]
    assert record == Record(2, NOW_MS + 2, b"a", b"2", (("h", b"x"),))


def test_a_batch_keeps_its_extent_when_records_go() -> None:
    fields = {"producer_id": 5, "producer_epoch": 2, "base_sequence": 10, "leader_epoch": 9}
    kept, _ = pass_over([batch(0, ("a", "1"), ("b", "1"), ("a", "2"), **fields), batch(3, ("b", "2"))])
    header = check_data_batch(kept[0])
    assert (header.base_offset, header.last_offset, header.record_count) == (0, 2, 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 2, 10)
    assert (header.last_sequence, header.partition_leader_epoch) == (12, 9)


def test_a_batch_of_which_nothing_goes_stays_byte_for_byte() -> None:
    batches = [batch(0, ("a", "1"), codec=CompressionCodec.GZIP), batch(1, ("b", "1"))]
    assert pass_over(batches)[0] == batches


@pytest.mark.parametrize("codec", list(CompressionCodec))
def test_a_batch_keeps_its_codec(codec: CompressionCodec) -> None:
    kept, _ = pass_over([batch(0, ("a", "1"), ("b", "1"), codec=codec), batch(2, ("a", "2"))])
    header = check_data_batch(kept[0])
    assert (header.codec, offsets_of(kept)) == (codec, [1, 2])


def test_the_time_of_the_broker_stays() -> None:
    kept, _ = pass_over(
        [batch(0, ("a", "1"), ("b", "1"), log_append_time_ms=NOW_MS + 77), batch(2, ("a", "2"))]
    )
    header = check_data_batch(kept[0])
    assert (header.is_log_append_time, header.max_timestamp_ms) == (True, NOW_MS + 77)
    assert read_data_records(kept[0], 0, header)[0].timestamp_ms == NOW_MS + 77


def test_records_without_a_key_go_and_are_counted() -> None:
    kept, copying = pass_over([batch(0, ("a", "1"), (None, "x"), (None, "y"))])
    assert (offsets_of(kept), copying.without_key) == ([0], 2)


def test_records_above_what_the_map_holds_stay() -> None:
    """A round that ends inside a segment copies what lies behind its end."""
    offsets = OffsetMap(100)
    first, second = batch(0, ("a", "1"), ("a", "2")), batch(2, ("a", "3"), (None, "x"))
    KeyPass(offsets, 0, ()).add(read_data_header(first), first)
    copying = CopyPass(
        offsets=offsets, last_records={}, end_offset=9, now_ms=NOW_MS, delete_retention_ms=RETENTION_MS
    )
    kept = [copying.kept(read_data_header(each), each) for each in (first, second)]
    assert offsets_of([bytes(each) for each in kept if each is not None]) == [1, 2, 3]


# Tombstones


def test_a_tombstone_gets_its_horizon_in_the_first_round_and_goes_in_one_behind_it() -> None:
    first, _ = pass_over([batch(0, ("a", "1"), ("a", None), ("b", "1"))])
    header = check_data_batch(first[0])
    assert (offsets_of(first), header.delete_horizon_ms) == ([1, 2], NOW_MS + RETENTION_MS)
    assert [each.timestamp_ms for each in read_data_records(first[0], 0, header)] == [NOW_MS + 1, NOW_MS + 2]
    still, _ = pass_over(first, now_ms=NOW_MS + RETENTION_MS - 1)
    assert still == first
    gone, _ = pass_over(first, now_ms=NOW_MS + RETENTION_MS)
    assert offsets_of(gone) == [2]
    assert check_data_batch(gone[0]).delete_horizon_ms == NOW_MS + RETENTION_MS


def test_the_time_of_a_tombstone_itself_does_not_matter() -> None:
    old = write_data_batch([Record(0, 1, b"a", None)])
    assert offsets_of(pass_over([old])[0]) == [0]


# Batches that stay without records


def test_the_last_batch_of_a_producer_stays_without_its_records() -> None:
    fields = {"producer_id": 5, "producer_epoch": 2, "base_sequence": 10, "leader_epoch": 4}
    kept, _ = pass_over(
        [batch(0, ("a", "1"), ("a", "2"), **fields), batch(2, ("a", "3"))], last_records={5: LastRecord(1, 2)}
    )
    header = check_data_batch(kept[0])
    assert (len(kept[0]), header.record_count, header.base_timestamp_ms) == (61, 0, -1)
    assert (header.base_offset, header.last_offset, header.last_sequence) == (0, 1, 11)
    assert (header.producer_id, header.producer_epoch, header.partition_leader_epoch) == (5, 2, 4)
    assert header.max_timestamp_ms == NOW_MS + 1


def test_an_empty_batch_goes_when_the_producer_wrote_on() -> None:
    fields = {"producer_id": 5, "producer_epoch": 2, "base_sequence": 10}
    empty, _ = pass_over(
        [batch(0, ("a", "1"), **fields), batch(1, ("a", "2"))], last_records={5: LastRecord(0, 2)}
    )
    again, _ = pass_over(empty, last_records={5: LastRecord(0, 2)})
    assert again == empty
    assert ends_of(pass_over(empty, last_records={5: LastRecord(9, 2)})[0]) == [1]


def test_the_last_batch_of_a_round_stays_without_its_records() -> None:
    """KAFKA-17076: the log's end must be known when all that is left of it lies before."""
    kept, _ = pass_over([batch(0, ("a", None), delete_horizon_ms=NOW_MS - 1)], end_offset=1)
    header = check_data_batch(kept[0])
    assert (header.record_count, header.next_offset) == (0, 1)


def test_a_producer_of_which_only_a_marker_is_known_keeps_it() -> None:
    control = marker_at(0, commit=True, producer_id=5, epoch=3)
    aged, _ = pass_over([control])
    late = NOW_MS + RETENTION_MS
    kept, _ = pass_over(aged, now_ms=late, last_records={5: LastRecord(None, 3)})
    assert [(check_data_batch(each).is_control, check_data_batch(each).record_count) for each in kept] == [
        (True, 0)
    ]
    assert pass_over(aged, now_ms=late, last_records={5: LastRecord(None, 4)})[0] == []


def test_an_empty_control_batch_goes_without_an_error() -> None:
    aged, _ = pass_over([marker_at(0, commit=True, producer_id=5)])
    empty, _ = pass_over(aged, now_ms=NOW_MS + RETENTION_MS, last_records={5: LastRecord(None, 0)})
    assert pass_over(empty, last_records={})[0] == []


# Transactions

IN_TRANSACTION = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}


def test_aborted_records_go_at_once_and_the_marker_after_two_more_rounds() -> None:
    aborted = [AbortedEntry(7, 0, 2, 3)]
    batches = [
        batch(0, ("a", "1"), ("b", "1"), **IN_TRANSACTION),
        marker_at(2, commit=False),
        batch(3, ("c", "1")),
    ]
    first, copying = pass_over(batches, aborted=aborted)
    # The pass met data of the transaction, so its marker and its entry in the index stay as they are.
    assert (ends_of(first), copying.transactions.take_kept()) == ([2, 3], aborted)
    assert check_data_batch(first[0]).delete_horizon_ms is None
    second, copying = pass_over(first, aborted=aborted)
    assert (ends_of(second), copying.transactions.take_kept()) == ([2, 3], [])
    assert check_data_batch(second[0]).delete_horizon_ms == NOW_MS + RETENTION_MS
    third, _ = pass_over(second, now_ms=NOW_MS + RETENTION_MS)
    assert ends_of(third) == [3]


def test_a_commit_marker_goes_two_rounds_after_the_last_record_of_its_transaction() -> None:
    batches = [batch(0, ("a", "1"), **IN_TRANSACTION), marker_at(1, commit=True), batch(2, ("a", "2"))]
    first, _ = pass_over(batches)
    assert ends_of(first) == [1, 2]
    assert check_data_batch(first[0]).delete_horizon_ms is None
    second, _ = pass_over(first)
    assert check_data_batch(second[0]).delete_horizon_ms == NOW_MS + RETENTION_MS
    assert ends_of(pass_over(second, now_ms=NOW_MS + RETENTION_MS)[0]) == [2]


def test_a_marker_stays_while_a_record_of_its_transaction_does() -> None:
    batches = [batch(0, ("a", "1"), **IN_TRANSACTION), marker_at(1, commit=True)]
    for _ in range(3):
        batches, _ = pass_over(batches, now_ms=NOW_MS + 10 * RETENTION_MS)
    assert ends_of(batches) == [0, 1]


def test_a_marker_of_an_aborted_transaction_stays_while_the_producers_last_batch_does() -> None:
    aborted = [AbortedEntry(7, 0, 1, 2)]
    batches = [batch(0, ("a", "1"), **IN_TRANSACTION), marker_at(1, commit=False)]
    for _ in range(3):
        batches, copying = pass_over(
            batches, aborted=aborted, now_ms=NOW_MS + 10 * RETENTION_MS, last_records={7: LastRecord(0, 0)}
        )
        assert (ends_of(batches), copying.transactions.take_kept()) == ([0, 1], aborted)
        assert offsets_of(batches) == [1]
    batches, copying = pass_over(batches, aborted=aborted, last_records={7: LastRecord(9, 0)})
    assert (ends_of(batches), copying.transactions.take_kept()) == ([1], aborted)


def test_transactions_of_one_producer_that_end_differently_are_told_apart() -> None:
    def of(first: int, sequence: int) -> bytes:
        return batch(first, (f"k{first}", "1"), **{**IN_TRANSACTION, "base_sequence": sequence})

    batches = [
        of(0, 0),
        marker_at(1, commit=False),
        of(2, 1),
        marker_at(3, commit=True),
        of(4, 2),
        marker_at(5, commit=False),
    ]
    kept, copying = pass_over(batches, aborted=[AbortedEntry(7, 0, 1, 2), AbortedEntry(7, 4, 5, 6)])
    assert ends_of(kept) == [1, 2, 3, 5]
    assert [each.last_offset for each in copying.transactions.take_kept()] == [1, 5]


def test_a_key_that_looks_like_that_of_a_marker_is_a_key() -> None:
    records = [Record(0, NOW_MS, b"\0\0\0\1", b"1"), Record(1, NOW_MS, b"\0\0\0\1", b"2")]
    kept, _ = pass_over([write_data_batch(records), marker_at(2, commit=True)])
    assert offsets_of(kept) == [1, 2]


# Formats before 2


def test_old_messages_become_batches_of_the_current_format() -> None:
    old = [legacy_message(4, b"a", b"1"), legacy_message(5, b"a", b"2"), legacy_message(6, b"b", None)]
    kept, _ = pass_over(old)
    assert [check_data_batch(each).magic for each in kept] == [2, 2]
    assert offsets_of(kept) == [5, 6]
    assert read_legacy_records(old[1], 0, read_data_header(old[1]), 1_000)[0].value == b"2"
    assert check_data_batch(kept[1]).delete_horizon_ms == NOW_MS + RETENTION_MS


def test_the_age_of_the_segment_decides_of_the_tombstones_of_old_messages() -> None:
    old = [legacy_message(4, b"a", None)]
    assert offsets_of(pass_over(old, keeps_legacy_tombstones=True)[0]) == [4]
    assert pass_over(old, keeps_legacy_tombstones=False)[0] == []
