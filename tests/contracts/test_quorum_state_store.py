"""What every QuorumStateStore promises, asked of the file and of the fake alike."""

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from kquorum.raft.adapters.quorum_state_file import DYNAMIC_QUORUM, QuorumStateFile
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import ReplicaKey
from tests.support.fault_file_system import FaultFileSystem
from tests.support.quorum_state_memory import QuorumStateMemory

Store = QuorumStateFile | QuorumStateMemory


@pytest.fixture(params=["memory", "static", "dynamic", "asked", "fault disk"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    memory = QuorumStateMemory()
    disk = FaultFileSystem(Path("/disk"))
    stores: dict[str, Callable[[], Store]] = {
        "memory": lambda: memory,
        "static": lambda: QuorumStateFile(tmp_path, (1, 2, 3)),
        "dynamic": lambda: QuorumStateFile(tmp_path, (), DYNAMIC_QUORUM),
        "asked": lambda: QuorumStateFile(tmp_path, lambda: (1, 2, 3), lambda: 1),
        "fault disk": lambda: QuorumStateFile(Path("/disk"), (1, 2, 3), fs=disk),
    }
    return stores[request.param]


def test_there_is_no_state_before_the_first_write(open_store: Callable[[], Store]) -> None:
    assert open_store().read() is None


@pytest.mark.parametrize(
    "state",
    [
        QuorumState(),
        QuorumState(leader_epoch=7, leader_id=2),
        QuorumState(leader_epoch=2**31 - 1, voted=ReplicaKey(3)),
        QuorumState(leader_epoch=9, leader_id=1, voted=ReplicaKey(1)),
    ],
)
def test_the_last_written_state_is_read_by_the_next_process(
    open_store: Callable[[], Store], state: QuorumState
) -> None:
    open_store().write(QuorumState(leader_epoch=1, leader_id=3))
    open_store().write(state)
    assert open_store().read() == state


def test_a_dynamic_quorum_keeps_the_directory_of_the_vote(tmp_path: Path) -> None:
    state = QuorumState(leader_epoch=4, voted=ReplicaKey(2, UUID(int=99)))
    QuorumStateFile(tmp_path, (), DYNAMIC_QUORUM).write(state)
    assert QuorumStateFile(tmp_path, (1, 2)).read() == state


def test_a_static_quorum_remembers_a_vote_by_node_id_alone(tmp_path: Path) -> None:
    """Version 0 has no room for the directory; the zero one, read back, matches any (rule F4.7)."""
    store = QuorumStateFile(tmp_path, (1, 2))
    store.write(QuorumState(leader_epoch=4, voted=ReplicaKey(2, UUID(int=99))))
    assert store.read() == QuorumState(leader_epoch=4, voted=ReplicaKey(2))
