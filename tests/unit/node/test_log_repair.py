"""What a node does about damaged files before its replica begins."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from kquorum.node.log_repair import LogRepair, look_at_folder
from kquorum.node.metadata_folder import make_metadata_folder
from kquorum.raft.adapters.errors import QuorumStateDamaged
from kquorum.raft.adapters.file_log import FOLDER_NAME, FileLog
from kquorum.raft.adapters.quorum_state_file import FILE_NAME as QUORUM_STATE
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import NO_VOTERS, ReplicaKey, Voter, VoterSet
from kquorum.storage.errors import LogCorrupted
from tests.support.raft.log_folders import FIRST, batches, write_log
from tests.support.storage.log_parts import batch

KEY = ReplicaKey(1, UUID(int=1))
THREE = VoterSet.of(*(Voter(ReplicaKey(node_id)) for node_id in (1, 2, 3)))
ALONE = VoterSet.of(Voter(ReplicaKey(1)))


def node(tmp_path: Path, voters: int = 3, *, is_controller: bool = True, epoch: int = 1) -> tuple[Any, Path]:
    """A config, as far as it is read, and the folder of its log, with records of epoch 1 in it."""
    ids = tuple(range(1, voters + 1))
    make_metadata_folder(tmp_path, static_ids=ids, voters=None)
    folder = tmp_path / FOLDER_NAME
    write_log(folder, batches(0, 20))
    QuorumStateFile(folder, ids).write(QuorumState(leader_epoch=epoch, leader_id=ids[-1]))
    config = SimpleNamespace(
        is_controller=is_controller,
        metadata_log_dir=tmp_path,
        controller_quorum_voters=tuple(SimpleNamespace(id=node_id) for node_id in ids),
    )
    return config, folder


def damage_log(folder: Path) -> None:
    content = bytearray((folder / FIRST).read_bytes())
    content[5 * len(batch(0).data) + 70] ^= 1
    (folder / FIRST).write_bytes(content)


def repair_of(
    config: Any, folder: Path, voters: VoterSet = THREE, *, is_lost: bool = False
) -> tuple[LogRepair, FileLog]:
    log = FileLog(folder, on_damage="report")
    return LogRepair(log, voters, config, KEY, is_lost=is_lost), log


# The log


def test_a_sound_log_needs_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config, folder = node(tmp_path)
    repair, log = repair_of(config, folder)
    assert (repair.damaged_until, repair.has_lost_its_state, repair.why_it_does_not_vote()) == (
        None,
        False,
        "",
    )
    assert caplog.records == []
    log.close()


@pytest.mark.parametrize("is_controller", [True, False])
def test_a_damaged_log_is_reported_and_takes_appends_from_its_sound_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, is_controller: bool
) -> None:
    config, folder = node(tmp_path, is_controller=is_controller)
    damage_log(folder)
    repair, log = repair_of(config, folder)
    (record,) = caplog.records
    for words in (str(folder / FIRST), "offset 5", ".damaged", "fetched again from offset 5"):
        assert words in record.getMessage()
    assert repair.damaged_until == 20
    assert "does not stand" in repair.why_it_does_not_vote()
    log.append(batches(5, 8))
    assert log.end_offset == 8
    log.close()


def test_the_damage_is_remembered_until_the_core_is_content(tmp_path: Path) -> None:
    config, folder = node(tmp_path)
    damage_log(folder)
    repair, log = repair_of(config, folder)
    log.append(batches(5, 8))
    log.close()
    repair, log = repair_of(config, folder)
    assert repair.damaged_until == 20, "begun and not finished"
    log.append(batches(8, 12))
    repair.handle_caught_up(lambda job, then: then(job()))  # type: ignore[func-returns-value]
    assert (repair.damaged_until, repair.why_it_does_not_vote()) == (None, "")
    log.close()
    log = FileLog(folder)
    assert log.end_offset == 12, "what was never committed does not come back"
    log.close()


def test_a_sole_voter_is_refused(tmp_path: Path) -> None:
    config, folder = node(tmp_path, voters=1)
    damage_log(folder)
    before = (folder / FIRST).read_bytes()
    with pytest.raises(
        LogCorrupted, match=r"nothing was changed.*this node is the only voter, so no other node has"
    ):
        repair_of(config, folder, ALONE)
    assert (folder / FIRST).read_bytes() == before


def test_one_that_is_no_voter_yet_goes_on(tmp_path: Path) -> None:
    """A controller of a dynamic quorum, which has yet to be added."""
    config, folder = node(tmp_path)
    damage_log(folder)
    repair, log = repair_of(config, folder, NO_VOTERS)
    assert repair.damaged_until == 20
    log.close()


# The election state


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"[]", b'{"data_version":9}', b'{"data_version":0}']
)
def test_a_damaged_election_state_is_kept_and_counts_as_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    config, folder = node(tmp_path)
    (folder / QUORUM_STATE).write_bytes(content)
    assert look_at_folder(config)
    assert (folder / f"{QUORUM_STATE}.damaged").read_bytes() == content
    assert not (folder / QUORUM_STATE).exists()
    (record,) = caplog.records
    assert "is damaged" in record.getMessage()
    assert "neither vote nor stand" in record.getMessage()
    assert look_at_folder(config), "and so it does at the next start"
    repair, log = repair_of(config, folder, is_lost=True)
    assert "lost what it had voted" in repair.why_it_does_not_vote()
    log.close()


def test_one_that_may_not_be_read_is_left_alone(tmp_path: Path) -> None:
    config, folder = node(tmp_path)
    (folder / QUORUM_STATE).unlink()
    (folder / QUORUM_STATE).mkdir()
    with pytest.raises(QuorumStateDamaged, match="cannot be read"):
        look_at_folder(config)
    assert (folder / QUORUM_STATE).exists()


def test_a_broker_has_no_votes_to_lose(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config, folder = node(tmp_path, is_controller=False)
    (folder / QUORUM_STATE).write_bytes(b"{")
    assert not look_at_folder(config)
    assert "a broker does not vote" in caplog.text


def test_an_old_copy_of_the_election_state_counts_as_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config, folder = node(tmp_path, epoch=0)
    repair, log = repair_of(config, folder)
    assert repair.has_lost_its_state
    assert "it says epoch 0, but the log holds records of epoch 1" in caplog.text
    assert not (folder / QUORUM_STATE).exists()
    log.close()


def test_a_sole_voter_dies_between_its_log_and_its_election_state(tmp_path: Path) -> None:
    """It is elected and writes in one turn, so the log may be ahead, and it can have voted for no other."""
    config, folder = node(tmp_path, voters=1, epoch=0)
    repair, log = repair_of(config, folder, ALONE)
    assert not repair.has_lost_its_state
    assert (folder / QUORUM_STATE).exists()
    log.close()


def test_trust_in_the_votes_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config, folder = node(tmp_path)
    repair, log = repair_of(config, folder, is_lost=True)
    with caplog.at_level("INFO"):
        repair.handle_caught_up(lambda _, __: pytest.fail("there is nothing to repair"))
    assert "this node votes again" in caplog.text
    assert not repair.has_lost_its_state
    log.close()
