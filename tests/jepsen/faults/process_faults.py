"""Faults of the nodes' processes: killed, paused, started anew."""

from collections.abc import Callable, Sequence

from tests.jepsen.faults.fault import Fault, Scene, Value

Choice = Callable[[Scene], Sequence[int]]


class Kill:
    """SIGKILL, and a start at the heal."""

    def __init__(self, name: str, choose: Choice) -> None:
        self.name = name
        self._choose = choose
        self._down: list[int] = []

    def begin(self, scene: Scene) -> Value:
        nodes = list(self._choose(scene))
        scene.claim(self.name, nodes)
        for node_id in nodes:
            scene.cluster.kill(node_id)
            self._down.append(node_id)
        return {"nodes": nodes}

    def end(self, scene: Scene) -> Value | None:
        down, self._down = self._down, []
        for node_id in down:
            scene.cluster.start(node_id)
        return {"started": down} if down else None


def _one(scene: Scene) -> list[int]:
    return [scene.any_unclaimed(scene.members.all)]


def _leader(scene: Scene) -> list[int]:
    return [scene.leader_unclaimed()]


KINDS: tuple[tuple[str, Callable[[], Fault]], ...] = (
    ("kill -9 of any one node", lambda: Kill("kill-one", _one)),
    ("kill -9 of the leader", lambda: Kill("kill-leader", _leader)),
)
