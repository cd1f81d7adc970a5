"""Faults begin, are claimed, overlap and heal: with a cluster and a network that only take notes."""

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.jepsen.core.generator import Turn
from tests.jepsen.core.history import NEMESIS, Op
from tests.jepsen.core.members import Members
from tests.jepsen.faults.catalogue import FAULTS
from tests.jepsen.faults.fault import NotNow, Scene
from tests.jepsen.faults.nemesis import Nemesis
from tests.jepsen.faults.quorum_view import Leader, NoLeader

MEMBERS = Members.of(3, 2)


class OfAll(Random):
    """RandomSource that take all where some are asked for."""

    def sample(self, population: Any, *_: Any, **__: Any) -> Any:
        return list(population)


class FakeDisk:
    """Everything is done, and noted."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def do(*_: Any, **__: Any) -> dict[str, int]:
            self.did.append(name)
            return {"bytes-cut": 0}

        return do

    def counters(self) -> dict[str, int]:
        return {"fsyncs": len(self.did)}


class FakeCluster:
    def __init__(self, folder: Path) -> None:
        self.running = set(MEMBERS.all)
        self.paused: set[int] = set()
        self.disks = {node_id: FakeDisk() for node_id in MEMBERS.all}
        self.no_disks = "no disks here"
        self.whole = True
        self.may_end: set[int] = set()
        self.configured: set[int] = set()
        self.formatted: list[tuple[int, tuple[str, ...]]] = []
        self._folder = folder
        for node_id in MEMBERS.all:
            (self.data_folder(node_id) / "__cluster_metadata-0").mkdir(parents=True)

    def start(self, node_id: int) -> None:
        self.running.add(node_id)

    def kill(self, node_id: int) -> None:
        self.running.discard(node_id)
        self.paused.discard(node_id)

    def stop(self, node_id: int) -> bool:
        self.kill(node_id)
        return True

    def pause(self, node_id: int) -> None:
        self.paused.add(node_id)

    def resume(self, node_id: int) -> None:
        self.paused.discard(node_id)

    def is_running(self, node_id: int) -> bool:
        return node_id in self.running

    def await_ready(self, node_id: int, *_: Any) -> bool:
        return node_id in self.running

    def allow_end(self, node_id: int, *, allowed: bool = True) -> None:
        (self.may_end.add if allowed else self.may_end.discard)(node_id)

    def reconfigure(self, node_id: int, _: Any) -> None:
        self.configured.add(node_id)

    def format(self, node_id: int, *options: str) -> None:
        self.formatted.append((node_id, options))

    def data_folder(self, node_id: int) -> Path:
        return self._folder / str(node_id) / "data"

    def output_bytes(self, _: int) -> int:
        return 0

    def is_whole(self, *_: int) -> bool:
        return self.whole


class FakeNetwork:
    """Holds what each token hurts."""

    def __init__(self) -> None:
        self.hurt: dict[str, set[tuple[int, int]]] = {}

    def cut(self, links: Any, token: str) -> None:
        self.hurt[token] = set(links)

    def slow(self, links: Any, _delay: float, _jitter: float, _rate: float, token: str) -> None:
        self.cut(links, token)

    def drop(self, links: Any, _fraction: float, token: str) -> None:
        self.cut(links, token)

    def heal(self, token: str | None = None) -> None:
        self.hurt.pop(token or "", None)

    def enter_as_client(self) -> None: ...


class Stage:
    def __init__(self, folder: Path) -> None:
        self.cluster = FakeCluster(folder)
        self.network = FakeNetwork()
        self.leader: Leader | None = Leader(2, 5)
        quorum: Any = SimpleNamespace(leader=self._leader)
        network: Any = self.network
        cluster: Any = self.cluster
        self.scene = Scene(network, cluster, MEMBERS, quorum, Random(1))
        self.nemesis = Nemesis(self.scene, [kind.make() for kind in FAULTS.values()])

    def _leader(self) -> Leader:
        if self.leader is None:
            raise NoLeader("no controller says that it leads")
        return self.leader

    def does(self, f: str, value: Any = None) -> Op:
        return self.nemesis.invoke(Turn(NEMESIS, NEMESIS, None).invoke(f, value))

    @property
    def is_sound(self) -> bool:
        all_run = self.cluster.running == set(MEMBERS.all)
        return all_run and not self.cluster.paused and not self.network.hurt and not self.scene._claims


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_says_what_it_did_and_heals(stage: Stage, name: str) -> None:
    begun = stage.does(name)
    if begun.error is None:
        assert begun.value is not None
    else:
        assert name == "bit-flip", "these logs are empty"
    healed = stage.does("heal", {"fault": name})
    assert healed.error is None
    assert stage.is_sound


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_can_begin_again_after_its_heal(stage: Stage, name: str) -> None:
    for _ in range(2):
        stage.does(name)
        stage.does("heal")
        assert stage.is_sound


def test_one_heal_ends_all_faults(stage: Stage) -> None:
    for name in ("isolate-leader", "kill-one", "slow-links"):
        assert stage.does(name).error is None
    assert not stage.is_sound
    stage.does("heal")
    assert stage.is_sound


def test_a_heal_of_one_leaves_the_others(stage: Stage) -> None:
    stage.does("isolate-leader")
    stage.does("slow-links")
    stage.does("heal", {"fault": "isolate-leader"})
    assert set(stage.network.hurt) == {"slow-links"}


def test_a_node_that_one_fault_has_is_not_hurt_by_another(stage: Stage) -> None:
    assert stage.does("kill-leader").value == {"nodes": [2]}
    refused = stage.does("pause-leader")
    assert refused.value is None
    assert refused.error == "the leader, node 2, is taken by another fault"
    stage.does("heal", {"fault": "pause-leader"})
    assert not stage.cluster.is_running(2), "the heal of a fault that never began starts no node"


def test_without_a_leader_it_cannot_be_hurt(stage: Stage) -> None:
    stage.leader = None
    assert stage.does("isolate-leader").error == "no controller says that it leads"
    assert stage.does("heal").value == {"leader": None}


def test_records_are_taken_from_one_node_at_a_time(stage: Stage) -> None:
    assert stage.does("wiped-disk").error is None
    stage.does("heal")
    assert stage.cluster.formatted[0][1] == ("--replaced-disk",)
    stage.cluster.whole = False
    assert "has not all records back" in str(stage.does("wiped-disk").error)
    stage.cluster.whole = True
    assert stage.does("wiped-disk").error is None


def test_another_ailment_that_ends_leaves_a_failing_disk_its_leave(stage: Stage) -> None:
    stage.scene.random_source = OfAll()
    slow = stage.does("slow-fsync").value["nodes"]
    (node_id,) = stage.does("write-error").value["nodes"]
    assert node_id in slow
    stage.does("heal", {"fault": "slow-fsync"})
    assert stage.cluster.may_end == {node_id}
    stage.does("heal", {"fault": "write-error"})
    assert stage.cluster.may_end == set()


def test_a_node_that_ended_on_its_failing_disk_is_started_again(stage: Stage) -> None:
    (node_id,) = stage.does("fsync-error").value["nodes"]
    stage.cluster.running.discard(node_id)
    healed = stage.does("heal")
    assert healed.value["ended"] == [node_id]
    assert stage.is_sound
    assert stage.cluster.disks[node_id].did[-1] == "heal"


def test_a_fault_of_the_disk_needs_the_shim(stage: Stage) -> None:
    stage.cluster.disks = {}
    assert stage.does("power-cut").error == "no disks here"
    assert stage.is_sound


def test_a_heal_that_fails_is_reported_and_the_others_are_healed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.does("kill-one")
    stage.does("isolate-leader")

    def fail(_: int) -> None:
        raise OSError("no process")

    monkeypatch.setattr(stage.cluster, "start", fail)
    healed = stage.does("heal")
    assert healed.error == "kill-one: OSError: no process"
    assert not stage.network.hurt


def test_claims_are_one_fault_s_own(stage: Stage) -> None:
    stage.scene.claim("a", [1, 2])
    stage.scene.claim("a", [2, 3])
    with pytest.raises(NotNow, match="node 2 is taken by a"):
        stage.scene.claim("b", [11, 2])
    assert stage.scene.unclaimed([2, 11]) == [11], "a refused claim claims nothing"
    stage.scene.release("a")
    stage.scene.claim("b", [2])
