"""A few turns of the kill loop, and proof that its checks see what they are for. By hand: python -m tests.kill_loop."""

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from crc32c import crc32c

from kquorum.cli.commands.log.files import the_log
from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.storage.recovery_point import FILE_NAME as RECOVERY_POINT
from kquorum.wire.batch_walk import walk_batches
from kquorum.wire.log_scan import ScannedBatch
from kquorum.wire.record_batch import read_records
from tests.kill_loop.folders import check_folders, log_content
from tests.kill_loop.ledger import Fate, Ledger
from tests.kill_loop.loop import KillLoop, Options
from tests.kill_loop.words import Words, log_files

KILLS = 2
# Fields of a batch's header; the checksum covers what follows it.
_CRC, _CRC_POSITION, _COVERED = struct.Struct(">I"), 17, 21
_STAMPS, _STAMPS_POSITION = struct.Struct(">qq"), 27


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KillLoop]:
    options = Options(kills=KILLS, snapshot_bytes=8 * 1024, retention_bytes=24 * 1024)
    loop = KillLoop(tmp_path_factory.mktemp("kill"), options, print)
    loop.run()
    yield loop
    loop.cluster.destroy()


@pytest.fixture
def folders(ended: KillLoop, tmp_path: Path) -> dict[str, Path]:
    """Copies of what the two controllers with the longer logs left, to be spoiled."""
    copies = {}
    for name, data_folder in list(ended.data_folders().items())[1:3]:
        copies[name] = tmp_path / name.replace(" ", "-")
        shutil.copytree(data_folder, copies[name])
    return copies


def test_nothing_acknowledged_is_lost_and_every_start_is_clean(ended: KillLoop) -> None:
    outcome = ended.outcome
    assert outcome.violations == []
    assert sum(outcome.kills.values()) == KILLS
    assert outcome.requests["created"] > KILLS
    assert outcome.segments_seen > len(ended.cluster.node_ids), (
        "no log has rolled: nothing was killed in that"
    )


def committed_end(data_folder: Path) -> int:
    return log_content("", the_log(data_folder / FOLDER_NAME)).end_offset


def cut_from(data_folder: Path, topic: str) -> None:
    """Forget, as a disk that lied would, the batch that made this topic and all behind it; snapshots of it, too."""
    folder = data_folder / FOLDER_NAME
    (folder / RECOVERY_POINT).unlink()
    for path in sorted(folder.glob("*.log"), reverse=True):
        content = path.read_bytes()
        for batch in walk_batches(memoryview(content)):
            if isinstance(batch, ScannedBatch) and names(batch, topic.encode()):
                path.write_bytes(content[: batch.position])
                for snapshot in folder.glob("*.checkpoint"):
                    if int(snapshot.name[:20]) > batch.header.base_offset:
                        snapshot.unlink()
                return
        path.unlink()
    pytest.fail(f"{topic} is not in {folder}")


def names(batch: ScannedBatch, topic: bytes) -> bool:
    return any(topic in (record.value or b"") for record in read_records(batch.data, 0, batch.header))


def test_a_create_that_all_lost_is_seen(ended: KillLoop, folders: dict[str, Path]) -> None:
    for folder in folders.values():
        cut_from(folder, ended.last_topic)
    # Even if every log is as short as the others, so that they agree.
    found = check_folders(folders, ended.ledger, committed=0)
    lost = f"topic {ended.last_topic} was acknowledged as created, and is lost"
    assert {f"the log of {name}: {lost}" for name in folders} <= set(found)


def test_a_log_that_ends_before_what_was_committed_is_seen(ended: KillLoop, folders: dict[str, Path]) -> None:
    name, folder = next(iter(folders.items()))
    committed = ended.outcome.committed
    cut_from(folder, ended.last_topic)
    found = check_folders(folders, ended.ledger, committed)
    assert f"{name} ends at offset {committed_end(folder)}, though {committed} was committed" in found


def stamp_otherwise(data_folder: Path, base_offset: int) -> None:
    """The batch at this offset a millisecond later, with the checksum that belongs to it, and no index to tell."""
    for path in (data_folder / FOLDER_NAME).glob("*.log"):
        content = bytearray(path.read_bytes())
        for batch in walk_batches(memoryview(bytes(content))):
            if isinstance(batch, ScannedBatch) and batch.header.base_offset == base_offset:
                stamp = batch.header.max_timestamp_ms + 1
                start, end = batch.position, batch.position + batch.header.size_in_bytes
                _STAMPS.pack_into(content, start + _STAMPS_POSITION, stamp, stamp)
                _CRC.pack_into(content, start + _CRC_POSITION, crc32c(bytes(content[start + _COVERED : end])))
                path.write_bytes(content)
                path.with_suffix(".timeindex").unlink()
                return
    pytest.fail(f"there is no batch at {base_offset} in {data_folder}")


def test_a_sound_log_that_holds_another_batch_than_the_others_is_seen(
    ended: KillLoop, folders: dict[str, Path]
) -> None:
    committed = ended.outcome.committed
    content = log_content("", the_log(folders["node 2"] / FOLDER_NAME))
    offset = max(offset for offset in content.batches if offset < committed)
    stamp_otherwise(folders["node 2"], offset)
    found = check_folders(folders, ended.ledger, committed)
    assert found == [f"node 2 and node 3 differ in the batch at offset {offset} (1 batches in all)"]


def test_what_a_node_must_never_say_is_seen(tmp_path: Path) -> None:
    lines = (
        "2026-11-21 10:00:00.000 node 1 WARNING cli.quorum_member: 17 bytes of a torn write were cut off the log's end",
        "2026-11-21 10:00:01.000 node 1 WARNING broker.lifecycle: no active controller answered within 300 ms",
        "2026-11-21 10:00:01.000 node 1 WARNING storage.recovery: 0.log is corrupt at byte 4711",
        "2026-11-21 10:00:02.000 node 1 ERROR raft.driver: it failed",
        "Traceback (most recent call last):",
    )
    (tmp_path / "kquorum.log").write_text("\n".join(lines))
    words = Words(log_files(tmp_path))
    assert words.torn_bytes == [17]
    assert list(words.warnings.values()) == [1]
    places = [violation.split(" ")[0] for violation in words.violations]
    assert places == [f"{tmp_path.name}/kquorum.log:{line}:" for line in (3, 4, 5)]


def test_the_ledger_knows_what_must_be_there_and_what_must_not() -> None:
    ledger = Ledger()
    for name in ("kept", "lost", "gone", "back", "asked", "refused"):
        ledger.begin(name)
    for name in ("kept", "lost", "gone", "back"):
        ledger.created(name)
    for name in ("gone", "back"):
        ledger.begin(name)
        ledger.deleted(name)
    ledger.refused("refused", Fate.ABSENT)
    assert ledger.violations({"kept"}, "here") == [
        "here: topic lost was acknowledged as created, and is lost"
    ]
    assert ledger.violations({"kept", "lost", "asked"}, "here") == []
    assert ledger.violations({"kept", "lost", "back", "refused", "alien"}, "here") == [
        "here: topic back was deleted or never made, and is there",
        "here: topic refused was deleted or never made, and is there",
        "here: topic alien was never asked for",
    ]
