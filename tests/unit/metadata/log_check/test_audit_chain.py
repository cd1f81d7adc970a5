"""The chain of audit notes as `log verify` checks it, on logs that the controller itself wrote."""

from collections.abc import Sequence

import pytest

from kquorum.metadata.controller.log_writer import audit_record
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.log_check.audit_chain import AuditChain, AuditFault
from kquorum.wire.audit_note import AUDIT_NOTE_TAG, note_hash
from kquorum.wire.log_batch import LogBatch, build_batch
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.record_frame import decode_record, encode_record
from tests.support.controller_world import World
from tests.support.metadata.large_writes import send_large, small_world

REQUEST = ControllerRequest(api_key=ApiKey.DELETE_TOPICS, api_version=6, body=None)


def checked(
    batches: Sequence[LogBatch], last_note: bytes | None = None, *, is_known: bool = True
) -> tuple[int, list[AuditFault]]:
    faults: list[AuditFault] = []
    chain = AuditChain(faults.append)
    if is_known:
        chain.begin(last_note)
    for position, batch in enumerate(batches):
        if not batch.is_control:
            chain.take("00.log", position, batch.records)
    return chain.note_count, faults


def three_changes() -> list[LogBatch]:
    world = World().lead().add_brokers(0)
    for name in ("a", "b", "c"):
        world.create({"name": name, "num_partitions": 3})
    return world.raft.batches


def noted(batches: Sequence[LogBatch]) -> list[int]:
    """Indexes of the batches that carry notes."""
    return [
        index for index, batch in enumerate(batches) if not batch.is_control and note_in(batch) is not None
    ]


def note_in(batch: LogBatch) -> bytes | None:
    for record in batch.records:
        decoded = decode_record(record.value or b"")
        if isinstance(decoded, NoOpRecord):
            for tag, value in decoded.unknown_tagged_fields:
                if tag == AUDIT_NOTE_TAG:
                    return value
    return None


def rewritten(batch: LogBatch, values: Sequence[bytes]) -> LogBatch:
    return build_batch(batch.base_offset, batch.leader_epoch, 0, [(None, value) for value in values])


def note(previous: bytes, covered: int) -> bytes:
    record = audit_record(
        REQUEST, reason="delete topics: a", previous_note_hash=previous, covered_records=covered
    )
    return encode_record(record)


def test_what_the_controller_writes_is_a_whole_chain() -> None:
    count, faults = checked(three_changes())
    assert count == 3
    assert faults == []


def test_transactions_and_shared_batches_are_too() -> None:
    world = small_world()
    world.raft.is_grouping = True
    world.send(ApiKey.CREATE_TOPICS, 7, topics=[], timeout=1000)
    for name in ("large", "larger"):
        send_large(world, name)
    world.commit()
    count, faults = checked(world.raft.batches)
    assert (count, faults) == (2, [])


def test_notes_of_an_aborted_transaction_are_no_links() -> None:
    world = small_world()
    world.create({"name": "a"})
    send_large(world)
    world.commit(2)
    world.follow(1, 2)
    world.raft.truncate_uncommitted()
    world.lead(3)
    world.create({"name": "b"})
    count, faults = checked(world.raft.batches)
    assert (count, faults) == (3, [])


def test_a_removed_note_breaks_the_link_of_the_next_and_both_are_named() -> None:
    batches = three_changes()
    first, second, third = noted(batches)
    values = [record.value or b"" for record in batches[second].records]
    batches[second] = rewritten(batches[second], [encode_record(NoOpRecord()), *values[1:]])
    count, faults = checked(batches)
    assert count == 2
    (fault,) = faults
    assert fault.offset == batches[third].base_offset
    assert f"the note at offset {batches[first].base_offset}" in fault.reason
    assert fault.position == third


def test_a_changed_note_breaks_the_link_of_the_next() -> None:
    batches = three_changes()
    _, second, third = noted(batches)
    values = [record.value or b"" for record in batches[second].records]
    previous = note_in(batches[noted(batches)[0]])
    assert previous is not None
    batches[second] = rewritten(batches[second], [note(note_hash(previous), len(values) - 1), *values[1:]])
    _, faults = checked(batches)
    assert [fault.offset for fault in faults] == [batches[third].base_offset]


@pytest.mark.parametrize(("covered", "there"), [(5, 4), (3, 4)])
def test_a_note_must_cover_what_is_behind_it(covered: int, there: int) -> None:
    """More than there are is seen at once; fewer leaves records without a note, which is lawful by itself."""
    batches = three_changes()
    first = noted(batches)[0]
    values = [record.value or b"" for record in batches[first].records]
    assert len(values) == there + 1
    batches[first] = rewritten(batches[first], [note(b"", covered), *values[1:]])
    _, faults = checked(batches[: first + 1])
    if covered > there:
        assert "covers 5 records, but only 4" in faults[0].reason
        assert faults[0].offset == batches[first].base_offset
    else:
        assert faults == []


def test_a_note_that_covers_another_note_or_nothing_is_a_fault() -> None:
    twice = build_batch(
        0, 1, 0, [(None, note(b"", 2)), (None, note(b"", 1)), (None, encode_record(NoOpRecord()))]
    )
    _, faults = checked([twice], is_known=False)
    assert "but only 0 come before the next note" in faults[0].reason
    alone = build_batch(0, 1, 0, [(None, note(b"", 0))])
    _, faults = checked([alone])
    assert [fault.reason for fault in faults] == ["the audit note covers no records"]


def test_a_log_begins_with_what_a_snapshot_carries_or_with_its_first_note() -> None:
    batches = three_changes()
    first, second, _ = noted(batches)
    before = note_in(batches[first])
    assert before is not None
    rest = batches[second:]
    assert checked(rest, before) == (2, [])
    assert checked(rest, is_known=False) == (2, [])
    _, faults = checked(rest, b"another note")
    assert [fault.offset for fault in faults] == [batches[second].base_offset]
    _, faults = checked(rest, None)
    assert "it is the first: notes are missing" in faults[0].reason


def test_a_note_that_says_it_is_the_first_in_the_middle_is_a_fault() -> None:
    batch = build_batch(9, 1, 0, [(None, note(b"", 1)), (None, encode_record(NoOpRecord()))])
    _, faults = checked([batch], b"some note")
    assert "says that it is the first" in faults[0].reason


def test_garbage_in_place_of_a_note_is_a_fault() -> None:
    record = NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, b"\xff\xff"),))
    batch = build_batch(3, 1, 0, [(None, encode_record(record))])
    _, faults = checked([batch])
    assert [(fault.offset, fault.reason) for fault in faults] == [(3, "the audit note cannot be read")]
