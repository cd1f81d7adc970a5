"""Faults of the nodes' processes: killed, paused, stopped, started again."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tests.jepsen.faults.background import Background
from tests.jepsen.faults.fault import Fault, Scene, Value

Choice = Callable[[Scene], Sequence[int]]


def start_again(scene: Scene, nodes: Sequence[int]) -> None:
    """Controllers are waited for, so that a fault is over when it is healed; brokers need a quorum to be ready."""
    for node_id in nodes:
        scene.cluster.start(node_id)
    never = threading.Event()
    for node_id in set(nodes) & set(scene.members.quorum):
        scene.cluster.await_ready(node_id, never)


class Down:
    """Nodes go down, and are started at the heal."""

    def __init__(self, name: str, choose: Choice, take: Callable[[Scene, int], object]) -> None:
        self.name = name
        self._choose = choose
        self._take = take
        self._down: list[int] = []

    def begin(self, scene: Scene) -> Value:
        nodes = list(self._choose(scene))
        scene.claim(self.name, nodes)
        for node_id in nodes:
            self._down.append(node_id)
            self._take(scene, node_id)
        return {"nodes": nodes}

    def end(self, scene: Scene) -> Value | None:
        down, self._down = self._down, []
        start_again(scene, down)
        return {"started": down} if down else None


class Pause:
    """SIGSTOP until the heal: the node keeps its connections, and believes afterwards that no time has passed."""

    def __init__(self, name: str, choose: Choice) -> None:
        self.name = name
        self._choose = choose
        self._paused: list[int] = []

    def begin(self, scene: Scene) -> Value:
        nodes = list(self._choose(scene))
        scene.claim(self.name, nodes)
        for node_id in nodes:
            self._paused.append(node_id)
            scene.cluster.pause(node_id)
        return {"nodes": nodes}

    def end(self, scene: Scene) -> Value | None:
        paused, self._paused = self._paused, []
        for node_id in paused:
            scene.cluster.resume(node_id)
        return {"resumed": paused} if paused else None


class Rolling:
    """All nodes are started again, one after the other, each when the one before is ready; as an upgrade does it."""

    def __init__(self, name: str, prepare: Callable[[Scene, int], None] = lambda _, __: None) -> None:
        self.name = name
        self._prepare = prepare
        self._background: Background | None = None
        self._restarted: list[int] = []

    def begin(self, scene: Scene) -> Value:
        nodes = [*scene.members.quorum, *scene.members.brokers]
        scene.claim(self.name, nodes)
        self._restarted = []

        def roll(over: threading.Event) -> None:
            for node_id in nodes:
                if over.is_set():
                    return
                scene.cluster.stop(node_id)
                self._prepare(scene, node_id)
                scene.cluster.start(node_id)
                self._restarted.append(node_id)
                scene.cluster.await_ready(node_id, over)

        self._background = Background(self.name, scene.network, roll)
        return {"nodes": nodes}

    def end(self, scene: Scene) -> Value | None:
        if self._background is None:
            return None
        background, self._background = self._background, None
        background.end()
        return {"restarted": self._restarted}


def _kill(scene: Scene, node_id: int) -> None:
    scene.cluster.kill(node_id)


def _stop(scene: Scene, node_id: int) -> None:
    scene.cluster.stop(node_id)


def _one(scene: Scene) -> list[int]:
    return [scene.any_unclaimed(scene.members.all)]


def _leader(scene: Scene) -> list[int]:
    return [scene.leader_unclaimed()]


def _majority(scene: Scene) -> list[int]:
    controllers = scene.members.controllers
    return sorted(scene.random_source.sample(controllers, len(controllers) // 2 + 1))


def _all(scene: Scene) -> list[int]:
    return list(scene.members.all)


def _skewed_config(scene: Scene, node_id: int) -> None:
    """Every node its own: the shape of the log and of messages on the disk, and every timeout that may differ."""
    random_source = scene.random_source
    overrides: dict[str, Any] = {
        "metadata.log.compression": random_source.choice(["none", "lz4"]),
        "metadata.log.segment.bytes": random_source.choice([4_096, 65_536, 1_048_576]),
        "metadata.log.max.record.bytes.between.snapshots": random_source.choice([20_000, 200_000]),
        "controller.quorum.election.timeout.ms": random_source.choice([400, 1000, 1800]),
        "controller.quorum.fetch.timeout.ms": random_source.choice([1200, 2000, 3500]),
        "broker.heartbeat.interval.ms": random_source.choice([500, 1000, 1500]),
    }
    scene.cluster.reconfigure(node_id, overrides)


KINDS: tuple[tuple[str, Callable[[], Fault]], ...] = (
    ("kill -9 of any one node", lambda: Down("kill-one", _one, _kill)),
    ("kill -9 of the leader", lambda: Down("kill-leader", _leader, _kill)),
    ("kill -9 of a majority of the controllers", lambda: Down("kill-majority", _majority, _kill)),
    ("kill -9 of every node", lambda: Down("kill-all", _all, _kill)),
    ("the leader stops (SIGTERM)", lambda: Down("stop-leader", _leader, _stop)),
    ("any one node is paused (SIGSTOP)", lambda: Pause("pause-one", _one)),
    ("the leader is paused (SIGSTOP)", lambda: Pause("pause-leader", _leader)),
    ("all nodes restart, one after the other", lambda: Rolling("restart-rolling")),
    (
        "the same, and each comes back with another config",
        lambda: Rolling("version-skew", _skewed_config),
    ),
)

# Node after node takes its time.
LAST = {"restart-rolling": 3.0, "version-skew": 3.0}
