"""`kquorum recover` on folders: a plan changes nothing, and a run leaves a log that a node goes on from."""

import json
import shutil
from pathlib import Path
from uuid import UUID

import pytest

from kquorum.cli.main import run
from kquorum.node.fence import EPOCH_JUMP, FILE_NAME
from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.voters import (
    NO_VOTERS,
    SUPPORTED_KRAFT_VERSIONS,
    Endpoint,
    ReplicaKey,
    Voter,
    VoterHistory,
    VotersAt,
    VoterSet,
    voters_record,
)
from kquorum.storage.folder_lock import FolderLock
from kquorum.storage.meta_properties import open_meta_properties
from kquorum.wire.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    encode_control_record,
)
from kquorum.wire.log_batch import build_batch
from kquorum.wire.uuids import uuid_to_text
from tests.support.metadata_folders import END_OFFSET

LISTENER = ("--listener", "CONTROLLER://host-1:9093")
ACCEPT = "--i-accept-the-loss"


@pytest.fixture
def node(folder: Path) -> Path:
    """The data folder of node 1, one of three voters."""
    return folder.parent


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def copy_for(folder: Path, node_id: int) -> Path:
    copy = folder.parent / f"copy-{node_id}"
    shutil.copytree(folder, copy)
    text = (copy / "meta.properties").read_text().replace("node.id=1", f"node.id={node_id}")
    (copy / "meta.properties").write_text(text)
    return copy


def test_a_plan_changes_nothing(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = bytes_of(node)
    assert run(["recover", "plan", str(node), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["lost_voters"] == ["2", "3"]
    assert (told["has_majority"], told["loses_nothing"]) == (False, False)
    assert told["folders"][0]["end_offset"] == END_OFFSET
    assert run(["recover", "plan", str(node)]) == 0
    assert "1 of 3 are left, 2 are needed" in capsys.readouterr().out
    assert bytes_of(node) == before


def test_a_run_needs_the_word_of_the_operator(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = bytes_of(node)
    assert run(["recover", "run", str(node), *LISTENER]) == 2
    assert "nothing was changed" in capsys.readouterr().err
    assert bytes_of(node) == before


def test_a_run_makes_the_node_the_only_voter(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reason = ("--reason", "two disks burnt")
    assert run(["recover", "run", str(node), *LISTENER, ACCEPT, *reason, "--json"]) == 0
    done = json.loads(capsys.readouterr().out)["recovered"]
    assert (done["node_id"], done["offset"], done["is_dynamic"]) == (1, END_OFFSET, True)
    epoch = done["epoch"]
    assert epoch == 2 + EPOCH_JUMP
    metadata = node / "__cluster_metadata-0"
    log = FileLog(metadata)
    try:
        assert (log.end_offset, log.summary().epochs[-1]) == (done["end_offset"], (epoch, END_OFFSET))
        voters = next(each for each in reversed(log.quorum_records()) if isinstance(each, VotersAt)).voters
    finally:
        log.close()
    assert voters.ids == (1,)
    (voter,) = voters
    assert [(each.listener, each.host, each.port) for each in voter.endpoints] == [
        ("CONTROLLER", "host-1", 9093)
    ]
    state = QuorumStateFile(metadata, (), 1).read()
    assert state is not None
    assert (state.leader_epoch, state.voted) == (epoch, None)
    capsys.readouterr()
    assert run(["log", "verify", str(node)]) == 0, capsys.readouterr().out
    assert run(["log", "dump", str(node), "--from-offset", str(END_OFFSET)]) == 0
    dumped = capsys.readouterr().out
    assert '"operator_reason":"two disks burnt"' in dumped
    assert "recovered without a majority from node 1" in dumped


def test_the_voters_of_a_dynamic_quorum_go_one_by_one(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each set in the log differs from the one before it by one voter, or no replica would take the log."""
    log = FileLog(node / "__cluster_metadata-0")
    properties = open_meta_properties(
        node, cluster_id=None, node_id=1, new_directory_id=UUID(int=1), now_ms=0
    )
    assert properties.directory_id == UUID(int=1)
    voters = VoterSet.of(
        *(
            Voter(
                ReplicaKey(each, UUID(int=each)),
                (Endpoint("CONTROLLER", f"old-{each}", 9093),),
                SUPPORTED_KRAFT_VERSIONS,
            )
            for each in (1, 2, 3)
        )
    )
    records = [
        encode_control_record(each) for each in (KRaftVersionRecord(k_raft_version=1), voters_record(voters))
    ]
    log.append([build_batch(log.end_offset, 2, 400_000, records, control=True)])
    log.close()
    assert run(["recover", "run", str(node), *LISTENER, ACCEPT, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["lost_voters"] == [
        f"{each}@{uuid_to_text(UUID(int=each))}" for each in (2, 3)
    ]
    log = FileLog(node / "__cluster_metadata-0")
    try:
        history = VoterHistory.of(NO_VOTERS, log.quorum_records())  # asserts it
        sets = [each.voters.ids for each in log.quorum_records() if isinstance(each, VotersAt)]
    finally:
        log.close()
    assert sets == [(1, 2, 3), (1, 3), (1,)]
    (voter,) = history.voters
    assert (voter.key.directory_id, voter.endpoints[0].host) == (UUID(int=1), "host-1")


def test_a_majority_is_not_given_up(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = copy_for(node, 2)
    assert run(["recover", "run", str(node), str(other), *LISTENER, ACCEPT]) == 4
    assert "a majority of the voters is left (1, 2; 2 of 3 are needed)" in capsys.readouterr().err
    assert not (other / FILE_NAME).exists()


def test_the_other_voters_are_fenced_and_brokers_are_not(
    node: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of five voters two are left; one has a record more than the other, and both have more than the broker."""
    broker, other = copy_for(node, 11), copy_for(node, 2)
    for folder in (node, other):
        lead(folder, 3, (1, 2, 3, 4, 5))
    lead(other, 4, (1, 2, 3, 4, 5))
    assert run(["recover", "run", str(node), str(other), str(broker), *LISTENER, ACCEPT, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["recovered"]["node_id"] == 2
    assert told["recovered"]["fenced"] == [str(node)]
    assert "(node 2, epoch 1048580)" in (node / FILE_NAME).read_text()
    assert not (broker / FILE_NAME).exists()
    assert not (other / FILE_NAME).exists()
    # What was fenced is no basis for another recovery.
    assert run(["recover", "run", str(node), *LISTENER, ACCEPT]) == 4
    assert "is fenced" in capsys.readouterr().err


def lead(folder: Path, epoch: int, voters: tuple[int, ...]) -> None:
    """Append the first batch of a leader of this epoch."""
    log = FileLog(folder / "__cluster_metadata-0")
    try:
        named = tuple(LeaderChangeVoter(voter_id=voter) for voter in voters)
        record = LeaderChangeMessage(leader_id=voters[0], voters=named)
        batch = build_batch(log.end_offset, epoch, 400_000, [encode_control_record(record)], control=True)
        log.append([batch])
    finally:
        log.close()


def test_a_running_node_is_left_alone(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = FolderLock(node)
    try:
        assert run(["recover", "run", str(node), *LISTENER, ACCEPT]) == 4
    finally:
        lock.release()
    assert "in use" in capsys.readouterr().err


def test_a_listener_must_be_one(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("host-1:9093", "CONTROLLER://0.0.0.0:9093", "CONTROLLER://host-1"):
        assert run(["recover", "run", str(node), "--listener", wrong, ACCEPT]) == 2
        assert "--listener" in capsys.readouterr().err


def test_what_is_no_folder_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recover", "plan", str(tmp_path / "nothing")]) == 2
    assert "is no folder" in capsys.readouterr().err
