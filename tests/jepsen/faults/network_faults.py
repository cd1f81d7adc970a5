"""Faults of the links between nodes. Clients reach every node at any time."""

from collections.abc import Callable, Iterable

from tests.jepsen.faults.fault import Fault, Scene, Value
from tests.jepsen.net.network import Link, isolation

Choice = Callable[[Scene], tuple[Iterable[Link], Value]]


class CutLinks:
    """Links that a function chooses are cut, and healed together."""

    def __init__(self, name: str, choose: Choice) -> None:
        self.name = name
        self._choose = choose

    def begin(self, scene: Scene) -> Value:
        links, value = self._choose(scene)
        scene.network.cut(links)
        return value

    def end(self, scene: Scene) -> Value | None:
        scene.network.heal()
        return None


def _isolate_leader(scene: Scene) -> tuple[Iterable[Link], Value]:
    leader = scene.quorum.leader()
    return isolation(leader.leader_id, scene.members.all), leader.as_value()


KINDS: tuple[tuple[str, Callable[[], Fault]], ...] = (
    ("the leader reaches nobody, and nobody it", lambda: CutLinks("isolate-leader", _isolate_leader)),
)
