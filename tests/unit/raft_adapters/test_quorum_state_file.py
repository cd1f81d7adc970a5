import json
from pathlib import Path
from uuid import UUID

import pytest

from raft.adapters.errors import FsyncFailed, QuorumStateDamaged
from raft.adapters.quorum_state_file import DYNAMIC_QUORUM, QuorumStateFile
from raft.ready import QuorumState
from raft.voters import ReplicaKey

V0 = (
    '{"clusterId":"","leaderId":1,"leaderEpoch":7,"votedId":-1,"appliedOffset":0,'
    '"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
)
V1 = (
    '{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAQ","data_version":1}'
)


def test_a_static_quorum_writes_what_kafka_writes(tmp_path: Path) -> None:
    QuorumStateFile(tmp_path, (1, 2)).write(QuorumState(leader_epoch=7, leader_id=1))
    assert (tmp_path / "quorum-state").read_text() == V0


def test_a_dynamic_quorum_writes_what_kafka_writes(tmp_path: Path) -> None:
    state = QuorumState(leader_epoch=2, voted=ReplicaKey(1, UUID(int=1)))
    QuorumStateFile(tmp_path, (), DYNAMIC_QUORUM).write(state)
    assert (tmp_path / "quorum-state").read_text() == V1


def test_the_format_follows_the_version_in_force_at_each_write(tmp_path: Path) -> None:
    """A static quorum that is made dynamic, and back when that was cut off the log before it was committed."""
    voters, version = [1, 2], [0]
    store = QuorumStateFile(tmp_path, lambda: tuple(voters), lambda: version[0])
    path = tmp_path / "quorum-state"
    store.write(QuorumState(leader_epoch=7, leader_id=1))
    assert path.read_text() == V0
    version[0] = 1
    state = QuorumState(leader_epoch=2, voted=ReplicaKey(1, UUID(int=1)))
    store.write(state)
    assert path.read_text() == V1
    assert store.read() == state
    voters[:], version[0] = [3], 0
    store.write(QuorumState(leader_epoch=9, leader_id=3))
    assert '"currentVoters":[{"voterId":3}],"data_version":0' in path.read_text()


def test_the_files_of_real_clusters_are_read_and_written_back_alike(real_logs: Path, tmp_path: Path) -> None:
    for original in sorted(real_logs.glob("*/__cluster_metadata-0/quorum-state")):
        content = original.read_text()
        voters = tuple(voter["voterId"] for voter in json.loads(content)["currentVoters"])
        (tmp_path / "quorum-state").write_text(content)
        store = QuorumStateFile(tmp_path, voters)
        state = store.read()
        assert state is not None
        (tmp_path / "quorum-state").unlink()
        store.write(state)
        assert (tmp_path / "quorum-state").read_text() == content


@pytest.mark.parametrize("whole", [V0, V1])
def test_a_file_cut_anywhere_is_refused_and_left_alone(tmp_path: Path, whole: str) -> None:
    path = tmp_path / "quorum-state"
    for length in range(len(whole)):
        path.write_text(whole[:length])
        with pytest.raises(QuorumStateDamaged, match="quorum-state is damaged"):
            QuorumStateFile(tmp_path, (1,)).read()
        assert path.read_text() == whole[:length]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (V0.replace('"data_version":0', '"data_version":2'), "data_version 2 is not supported"),
        (V0.replace(',"data_version":0', ""), "data_version is missing"),
        (V0.replace('"leaderEpoch":7', '"leaderEpoch":-7'), "leaderEpoch is -7"),
        (V0.replace('"leaderEpoch":7', '"leaderEpoch":true'), "leaderEpoch is missing or not"),
        (V0.replace('"leaderEpoch":7', '"leaderEpoch":"7"'), "leaderEpoch is missing or not"),
        (V0.replace('"leaderId":1', '"leaderId":4294967296'), "leaderId is missing or not"),
        (V0.replace('"votedId":-1,', ""), "votedId is missing"),
        (V0.replace('"appliedOffset":0,', ""), "appliedOffset is missing"),
        (V1.replace("AAAAAAAAAAAAAAAAAAAAAQ", "short"), "not a uuid"),
        ("[1, 2]", "not a JSON object"),
        ("\xff\xfe", "not whole JSON"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_the_reason_and_the_remedy(
    tmp_path: Path, content: str, reason: str
) -> None:
    (tmp_path / "quorum-state").write_text(content, encoding="latin-1")
    with pytest.raises(QuorumStateDamaged, match=reason) as caught:
        QuorumStateFile(tmp_path, (1,)).read()
    assert "restore the file" in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_keys_unknown_to_us_and_further_lines_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "quorum-state").write_text(V0.replace("{", '{"new":1,', 1) + "\nmore")
    assert QuorumStateFile(tmp_path, (1,)).read() == QuorumState(leader_epoch=7, leader_id=1)


def test_a_write_that_cannot_be_made_durable_is_fatal_and_keeps_the_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = QuorumStateFile(tmp_path, (1,))
    store.write(QuorumState(leader_epoch=1))

    def broken_fsync(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", broken_fsync)
    with pytest.raises(FsyncFailed, match="Input/output error"):
        store.write(QuorumState(leader_epoch=2))
    monkeypatch.undo()
    assert store.read() == QuorumState(leader_epoch=1)
