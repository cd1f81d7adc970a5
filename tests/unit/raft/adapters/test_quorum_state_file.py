import json
import re
from pathlib import Path
from uuid import UUID

import pytest

from kquorum.raft.adapters.errors import QuorumStateDamaged
from kquorum.raft.adapters.quorum_state_file import (
    DYNAMIC_QUORUM,
    STATIC_QUORUM,
    QuorumStateFile,
    encode_quorum_state,
)
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import ReplicaKey
from kquorum.storage.errors import FsyncFailed
from tests.support.fault_file_system import FaultFileSystem

V0 = (
    '{"clusterId":"","leaderId":1,"leaderEpoch":7,"votedId":-1,"appliedOffset":0,'
    '"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
)
V1 = (
    '{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAQ","data_version":1}'
)
VOTED = QuorumState(leader_epoch=12, voted=ReplicaKey(1, UUID(int=0x7D9C5B0E_1111_4222_8333_123456789ABC)))


def without_checksum(written: str) -> str:
    """What we wrote without our own key, which must be there."""
    kafkas, count = re.subn(r',"kquorumCrc32c":"[0-9a-f]{8}"}$', "}", written)
    assert count == 1, written
    return kafkas


def test_a_static_quorum_writes_what_kafka_writes(tmp_path: Path) -> None:
    QuorumStateFile(tmp_path, (1, 2)).write(QuorumState(leader_epoch=7, leader_id=1))
    assert without_checksum((tmp_path / "quorum-state").read_text()) == V0


def test_a_dynamic_quorum_writes_what_kafka_writes(tmp_path: Path) -> None:
    state = QuorumState(leader_epoch=2, voted=ReplicaKey(1, UUID(int=1)))
    QuorumStateFile(tmp_path, (), DYNAMIC_QUORUM).write(state)
    assert without_checksum((tmp_path / "quorum-state").read_text()) == V1


def test_the_format_follows_the_version_in_force_at_each_write(tmp_path: Path) -> None:
    """A static quorum that is made dynamic, and back when that was cut off the log before it was committed."""
    voters, version = [1, 2], [0]
    store = QuorumStateFile(tmp_path, lambda: tuple(voters), lambda: version[0])
    path = tmp_path / "quorum-state"
    store.write(QuorumState(leader_epoch=7, leader_id=1))
    assert without_checksum(path.read_text()) == V0
    version[0] = 1
    state = QuorumState(leader_epoch=2, voted=ReplicaKey(1, UUID(int=1)))
    store.write(state)
    assert without_checksum(path.read_text()) == V1
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
        assert without_checksum((tmp_path / "quorum-state").read_text()) == content


OURS = [encode_quorum_state(VOTED, (1, 2, 3), version) for version in (STATIC_QUORUM, DYNAMIC_QUORUM)]


@pytest.mark.parametrize("whole", OURS)
def test_a_flipped_bit_is_refused_wherever_it_is(whole: bytes) -> None:
    """Another vote or an older epoch, believed, makes the node vote twice."""
    path = Path("/disk/quorum-state")
    disk = FaultFileSystem(path.parent)
    store = QuorumStateFile(path.parent, (1, 2, 3), fs=disk)
    disk.put(path, whole)
    state = store.read()
    assert state is not None
    assert (state.leader_epoch, state.voted and state.voted.id) == (12, 1)
    for bit in range(len(whole) * 8):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        disk.put(path, bytes(flipped))
        with pytest.raises(QuorumStateDamaged, match="quorum-state is damaged"):
            store.read()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"votedId":1', '"votedId":3', "checksum does not match"),
        (":12,", ": 12,", "checksum does not match"),
        ('"kquorumCrc32c":"', '"kquorumCrc32c":"0', "checksum does not match"),
        ('"kquorumCrc32c":"', '"kquorumCrc32c":1,"more":"', "has no key 'more'"),
        ('"kquorumCrc32c"', '"kquorumCrc33c"', "has no key 'kquorumCrc33c'"),
    ],
)
@pytest.mark.parametrize("whole", OURS)
def test_a_checksum_counts_and_its_key_cannot_be_hidden(
    tmp_path: Path, whole: bytes, old: str, new: str, reason: str
) -> None:
    assert old.encode() in whole
    (tmp_path / "quorum-state").write_bytes(whole.replace(old.encode(), new.encode()))
    with pytest.raises(QuorumStateDamaged, match=reason):
        QuorumStateFile(tmp_path, (1,)).read()


def test_a_file_that_kafka_rewrote_has_no_checksum_and_is_trusted(tmp_path: Path) -> None:
    for whole in OURS:
        (tmp_path / "quorum-state").write_bytes(whole)
        as_ours = QuorumStateFile(tmp_path, (1, 2, 3)).read()
        (tmp_path / "quorum-state").write_text(without_checksum(whole.decode()))
        assert QuorumStateFile(tmp_path, (1, 2, 3)).read() == as_ours


@pytest.mark.parametrize("whole", [V0, V1, *(each.decode() for each in OURS)])
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
        (V0.replace("{", '{"new":1,', 1), "data_version 0 has no key 'new'"),
        (V1.replace("{", '{"clusterId":"",', 1), "data_version 1 has no key 'clusterId'"),
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


def test_further_lines_are_passed_over_as_by_kafka(tmp_path: Path) -> None:
    (tmp_path / "quorum-state").write_text(V0 + "\nmore")
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
