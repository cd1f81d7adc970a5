"""A log that is sound only up to a point below a whole snapshot goes on from the snapshot."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kquorum.node.log_repair import LogRepair
from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import ReplicaKey, Voter, VoterSet
from kquorum.storage.errors import LogCorrupted
from tests.support.raft.log_folders import FIRST, batches, read_all, write_log, write_snapshot
from tests.support.storage.log_parts import batch

KEY = ReplicaKey(1, UUID(int=1))
ALONE = VoterSet.of(Voter(ReplicaKey(1)))
THREE = VoterSet.of(*(Voter(ReplicaKey(node_id)) for node_id in (1, 2, 3)))


class Config:
    is_controller = True

    def __init__(self, folder: Path) -> None:
        self.metadata_log_dir = folder


def damaged_log(tmp_path: Path, *, at: tuple[int, ...] = (5, 15)) -> tuple[Path, Any]:
    """20 records, some of them damaged, and a snapshot that ends at offset 12."""
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    write_log(folder, batches(0, 20))
    write_snapshot(folder, 12)
    content = bytearray((folder / FIRST).read_bytes())
    for offset in at:
        content[offset * len(batch(0).data) + 70] ^= 1
    (folder / FIRST).write_bytes(content)
    QuorumStateFile(folder, (1, 2, 3)).write(QuorumState(leader_epoch=1, leader_id=2))
    return folder, Config(tmp_path)


def test_the_log_starts_again_at_the_snapshot_and_stays_damaged_until_it_is_fetched(tmp_path: Path) -> None:
    folder, config = damaged_log(tmp_path)
    for _ in range(2):
        log = FileLog(folder, on_damage="report")
        assert log.damage is not None
        repair = LogRepair(log, THREE, config, KEY, is_lost=False)
        assert (repair.damaged_until, log.log_start_offset, log.end_offset) == (20, 12, 12)
        log.close()
    log = FileLog(folder, on_damage="report")
    repair = LogRepair(log, THREE, config, KEY, is_lost=False)
    log.append(batches(12, 20))
    repair.handle_caught_up(lambda job, then: then(job()))  # type: ignore[func-returns-value]
    assert repair.damaged_until is None
    log.close()
    log = FileLog(folder)
    assert (log.damage, log.log_start_offset, log.end_offset) == (None, 12, 20)
    log.close()


@pytest.mark.parametrize("voters", [ALONE, THREE])
def test_damage_below_the_snapshot_alone_loses_nothing(tmp_path: Path, voters: VoterSet) -> None:
    """The log goes on from the snapshot with the sound records behind it: not even a sole voter lacks anything."""
    folder, config = damaged_log(tmp_path, at=(5,))
    log = FileLog(folder, on_damage="report")
    repair = LogRepair(log, voters, config, KEY, is_lost=False)
    assert (repair.damaged_until, log.log_start_offset, log.end_offset) == (None, 12, 20)
    assert read_all(log) == batches(12, 20)
    log.close()


def test_a_sole_voter_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    folder, config = damaged_log(tmp_path)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    log = FileLog(folder, on_damage="report")
    with pytest.raises(LogCorrupted, match="offset 5"):
        LogRepair(log, ALONE, config, KEY, is_lost=False)
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {name: after[name] for name in before if name.endswith((".log", ".checkpoint", "state"))} == {
        name: content for name, content in before.items() if name.endswith((".log", ".checkpoint", "state"))
    }
