"""The keeper between a replica, its state machine and the disk."""

import errno
import logging
import threading
from dataclasses import replace
from typing import Any

import pytest

from kquorum.metadata.adapters import snapshot_manager
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.snapshot import FIRST_RETRY_MS
from kquorum.raft.voters import voters_record
from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.reader import SnapshotReader
from kquorum.storage.errors import FsyncFailed
from tests.support.fault_file_system import refused
from tests.support.metadata.snapshot_parts import FOLDER, QUORUM, START_MS, run
from tests.support.metadata.snapshot_rig import NOTE, SETTINGS, Rig, image_at
from tests.support.raft.driver_parts import until


def test_a_snapshot_holds_the_image_the_voters_and_the_last_note(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        rig = Rig()
        rig.keeper.start()
        rig.publish(image_at(40), b"an older note", NOTE)
        rig.publish(image_at(50))
        rig.commit()
        await rig.written(50)
        loaded = rig.load(50)
        assert (loaded.image, loaded.last_audit_note) == (image_at(50), NOTE)
        assert rig.replica.quorum_offsets == [50]
        reader = SnapshotReader(rig.disk.read(FOLDER / rig.names[0]))
        assert (reader.kraft_version, reader.voters) == (1, voters_record(QUORUM.voters))
        assert reader.last_contained_log_timestamp_ms == START_MS
        await rig.keeper.close()

    caplog.set_level(logging.INFO)
    run(test())
    assert "wrote snapshot 00000000000000000050-0000000002.checkpoint (33 records, " in caplog.text
    assert "because max bytes were exceeded) in " in caplog.text


def test_of_a_log_without_metadata_there_is_no_snapshot() -> None:
    """A leader's first record may be all there is when bytes enough have come; what follows is a transaction."""

    async def test() -> None:
        rig = Rig()
        rig.keeper.start()
        rig.publish(replace(MetadataImage.empty(), provenance=image_at(1).provenance))
        rig.commit()
        rig.publish(image_at(40))
        rig.commit(1)
        await rig.written(40)
        assert rig.replica.quorum_offsets == [40]
        await rig.keeper.close()

    run(test())


def test_the_log_is_cut_as_soon_as_there_is_a_newer_one() -> None:
    async def test() -> None:
        rig = Rig(replace(SETTINGS, retention_bytes=0))
        rig.keeper.start()
        for end_offset in (40, 50):
            assert rig.replica.asked == []
            rig.publish(image_at(end_offset))
            rig.commit()
            await rig.written(end_offset)
        await until(lambda: rig.replica.asked == [50])
        await rig.keeper.close()

    run(test())


def test_what_was_loaded_begins_the_count_and_the_chain_of_notes() -> None:
    async def test() -> None:
        rig = Rig()
        rig.keeper.start()
        rig.publish(image_at(10), b"forgotten")
        rig.commit(900)
        rig.keeper.handle_snapshot(rig.now_ms, image_at(50), NOTE)
        rig.commit(900)
        assert rig.replica.quorum_offsets == []
        rig.publish(image_at(60))
        rig.commit(900)
        await rig.written(60)
        assert rig.load(60).last_audit_note == NOTE
        await rig.keeper.close()

    run(test())


def test_an_image_inside_a_batch_is_never_written() -> None:
    async def test() -> None:
        rig = Rig()
        rig.keeper.start()
        rig.publish(image_at(40, aligned=False))
        rig.commit()
        assert rig.replica.quorum_offsets == []
        rig.publish(image_at(41))
        rig.commit(1)
        await rig.written(41)
        assert rig.names == [SnapshotId(41, 2).file_name]
        await rig.keeper.close()

    run(test())


def test_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    write = snapshot_manager.write_snapshot

    def held(*arguments: Any, **options: Any) -> Any:
        assert gate.wait(60)
        return write(*arguments, **options)

    monkeypatch.setattr(snapshot_manager, "write_snapshot", held)

    async def test() -> None:
        rig = Rig()
        rig.keeper.start()
        for end_offset in (40, 50, 60):
            rig.publish(image_at(end_offset))
            rig.commit()
        assert rig.replica.quorum_offsets == [40]
        gate.set()
        await rig.written(40)
        rig.commit(1)
        await rig.written(60)
        assert rig.replica.quorum_offsets == [40, 60]
        await rig.keeper.close()

    run(test())


def test_a_full_disk_keeps_nothing_and_it_is_tried_again_later(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        rig = Rig()
        rig.disk.capacity = 100
        rig.keeper.start()
        rig.publish(image_at(40))
        rig.commit()
        await until(lambda: "could not be written" in caplog.text)
        assert (rig.names, rig.fatal, rig.replica.received) == ([], [], [])
        rig.disk.capacity = 1 << 30
        rig.commit()
        assert rig.replica.quorum_offsets == [40], "not yet"
        rig.now_ms += FIRST_RETRY_MS
        rig.commit(1)
        await rig.written(40)
        await rig.keeper.close()

    run(test())
    assert "No space left on device" in caplog.text
    assert "it is tried again in 10 s" in caplog.text
    assert "Traceback" not in caplog.text
    assert "the node stops" not in caplog.text


def test_a_disk_without_room_for_another_one_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        rig = Rig()
        rig.disk.put(FOLDER / SnapshotId(20, 1).file_name, bytes(60_000))
        rig.disk.capacity = 119_999
        rig.keeper.start()
        rig.publish(image_at(40))
        rig.commit()
        await until(lambda: "could not be written" in caplog.text)
        await rig.keeper.close()

    run(test())
    assert "59999 bytes are free, and the last one has 60000" in caplog.text


@pytest.mark.parametrize(("nth", "left"), [(1, 0), (2, 1)])
def test_a_flush_that_fails_ends_the_node(nth: int, left: int) -> None:
    """Of the file, and of the folder after the rename."""

    async def test() -> None:
        rig = Rig()
        flushes = 0

        def on_call(_count: int, name: str) -> None:
            nonlocal flushes
            flushes += name == "fsync"
            if name == "fsync" and flushes == nth:
                raise refused(errno.EIO)

        rig.disk.on_call = on_call
        rig.keeper.start()
        rig.publish(image_at(40))
        rig.commit()
        await until(lambda: rig.fatal)
        assert [type(error) for error in rig.fatal] == [FsyncFailed]
        assert (len(rig.names), rig.replica.received) == (left, [])
        await rig.keeper.close()

    run(test())


def test_an_internal_error_is_logged_with_its_trace_and_is_not_fatal(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_options: object) -> None:
        raise ValueError("a field has no room in this version")

    monkeypatch.setattr(snapshot_manager, "snapshot_batches", broken)

    async def test() -> None:
        rig = Rig()
        rig.keeper.start()
        rig.publish(image_at(40))
        rig.commit()
        await until(lambda: "ValueError: a field has no room" in caplog.text)
        assert (rig.fatal, rig.names) == ([], [])
        await rig.keeper.close()

    run(test())
    assert "Traceback" in caplog.text


def test_closing_gives_up_what_is_being_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest that the writer takes does not end by itself in this test."""
    resting = threading.Event()

    class LongPace(snapshot_manager.Pace):
        def __init__(self) -> None:
            super().__init__(work_s=0.0, rest_per_work=1e9)

        def rest(self) -> None:
            resting.set()
            super().rest()

    monkeypatch.setattr(snapshot_manager, "Pace", LongPace)

    async def test() -> None:
        rig = Rig()
        rig.keeper.start()
        rig.publish(image_at(40))
        rig.commit()
        await until(resting.is_set)
        await rig.keeper.close()
        assert (rig.names, rig.fatal, rig.replica.received) == ([], [], [])
        rig.commit()

    run(test())


def test_one_that_a_fetched_one_has_overtaken_is_removed() -> None:
    async def test() -> None:
        rig = Rig()
        rig.keeper.start()
        rig.publish(image_at(40))
        rig.commit()
        rig.replica.log_start_offset = 90
        await until(lambda: rig.replica.quorum_offsets == [40] and rig.disk.calls > 10 and not rig.names)
        assert rig.replica.received == []
        await rig.keeper.close()

    run(test())


def test_one_of_that_name_is_as_good(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        rig = Rig()
        rig.disk.put(FOLDER / SnapshotId(40, 2).file_name, b"fetched meanwhile")
        rig.keeper.start()
        rig.publish(image_at(40))
        rig.commit()
        await rig.written(40)
        await rig.keeper.close()

    caplog.set_level(logging.INFO)
    run(test())
    assert "wrote snapshot" not in caplog.text


def test_a_damaged_one_is_replaced_at_the_next_commit() -> None:
    async def test() -> None:
        rig = Rig()
        rig.keeper.start()
        rig.publish(image_at(40))
        rig.commit(1)
        rig.keeper.handle_unsound()
        assert rig.replica.quorum_offsets == []
        rig.commit(1)
        await rig.written(40)
        await rig.keeper.close()

    run(test())
