"""Faults of the links between nodes. Clients reach every node at any time.

The shapes are Jepsen's. Every fault has its name for a token, so that those which overlap heal apart. What is cut is
cut between controllers and brokers alike, but for the shapes that are made of majorities: those split the quorum, and
the brokers are dealt out to its parts.
"""

import threading
from collections.abc import Callable, Iterable, Sequence

from tests.jepsen.faults.background import Background
from tests.jepsen.faults.fault import Fault, NotNow, Scene, Value
from tests.jepsen.net.network import (
    FaultUnavailable,
    Link,
    bridge,
    halves,
    isolation,
    majorities_ring,
    one_way,
    split,
)

Choice = Callable[[Scene], tuple[Iterable[Link], Value]]
Hurt = Callable[[Scene, Iterable[Link], str], None]

FLAP_S = 0.7
SLOW_DELAY_MS, SLOW_JITTER_MS, SLOW_BYTES_PER_S = 150, 50, 256 * 1024
LOST_FRACTION = 0.2


class HurtLinks:
    """Links that a function chooses are cut, or hurt in another way, and heal together."""

    def __init__(self, name: str, choose: Choice, hurt: Hurt) -> None:
        self.name = name
        self._choose = choose
        self._hurt = hurt

    def begin(self, scene: Scene) -> Value:
        links, value = self._choose(scene)
        try:
            with scene.links:
                self._hurt(scene, links, self.name)
        except FaultUnavailable as error:
            raise NotNow(str(error)) from error
        return value

    def end(self, scene: Scene) -> Value | None:
        with scene.links:
            scene.network.heal(self.name)
        return None


class Flapping:
    """The links of one node fail and work again, several times in a fetch timeout."""

    name = "flapping"

    def __init__(self) -> None:
        self._background: Background | None = None
        self._flaps = 0

    def begin(self, scene: Scene) -> Value:
        node_id = scene.random_source.choice(scene.members.quorum)
        links = isolation(node_id, scene.members.all)
        self._flaps = 0

        def flap(over: threading.Event) -> None:
            while not over.is_set():
                with scene.links:
                    scene.network.cut(links, self.name)
                over.wait(FLAP_S)
                with scene.links:
                    scene.network.heal(self.name)
                self._flaps += 1
                over.wait(FLAP_S)

        self._background = Background(self.name, scene.network, flap)
        return {"node": node_id, "every_s": 2 * FLAP_S}

    def end(self, scene: Scene) -> Value | None:
        if self._background is None:
            return None
        background, self._background = self._background, None
        try:
            background.end()
        finally:
            with scene.links:
                scene.network.heal(self.name)
        return {"flaps": self._flaps}


def _cut(scene: Scene, links: Iterable[Link], token: str) -> None:
    scene.network.cut(links, token)


def _slow(scene: Scene, links: Iterable[Link], token: str) -> None:
    scene.network.slow(links, SLOW_DELAY_MS, SLOW_JITTER_MS, SLOW_BYTES_PER_S, token)


def _lose(scene: Scene, links: Iterable[Link], token: str) -> None:
    scene.network.drop(links, LOST_FRACTION, token)


def _leader(scene: Scene) -> tuple[Iterable[Link], Value]:
    leader = scene.quorum.leader()
    return isolation(leader.leader_id, scene.members.all), leader.as_value()


def _one(scene: Scene) -> tuple[Iterable[Link], Value]:
    node_id = scene.random_source.choice(scene.members.all)
    return isolation(node_id, scene.members.all), {"node": node_id}


def _to_leader(scene: Scene) -> tuple[Iterable[Link], Value]:
    leader = scene.quorum.leader()
    return one_way(leader.leader_id, scene.members.all, "inbound"), leader.as_value()


def _from_leader(scene: Scene) -> tuple[Iterable[Link], Value]:
    leader = scene.quorum.leader()
    return one_way(leader.leader_id, scene.members.all, "outbound"), leader.as_value()


def _halves(scene: Scene) -> tuple[Iterable[Link], Value]:
    """A majority and a minority of the quorum, each with some of the brokers."""
    quorum = halves(scene.members.quorum, scene.random_source)
    brokers = halves(scene.members.brokers, scene.random_source)
    groups = [sorted([*quorum[0], *brokers[0]]), sorted([*quorum[1], *brokers[1]])]
    return split(groups), {"groups": groups}


def _ring(scene: Scene) -> tuple[Iterable[Link], Value]:
    """Every controller sees a majority, no two see the same one."""
    order = list(scene.members.quorum)
    scene.random_source.shuffle(order)
    return majorities_ring(order), {"ring": order}


def _bridge(scene: Scene) -> tuple[Iterable[Link], Value]:
    """Two halves, and one controller that sees both."""
    links = bridge(scene.members.quorum, scene.random_source)
    return links, {"links": [list(link) for link in links]}


def _every_link(scene: Scene) -> tuple[Iterable[Link], Value]:
    nodes: Sequence[int] = scene.members.all
    return [(one, other) for one in nodes for other in nodes if one != other], {}


KINDS: tuple[tuple[str, Callable[[], Fault]], ...] = (
    ("the leader is cut off from all nodes", lambda: HurtLinks("isolate-leader", _leader, _cut)),
    ("any one node is cut off from all nodes", lambda: HurtLinks("isolate-one", _one, _cut)),
    ("two halves of the cluster do not reach each other", lambda: HurtLinks("halves", _halves, _cut)),
    ("every controller sees another majority", lambda: HurtLinks("majorities-ring", _ring, _cut)),
    ("two halves, which one controller joins", lambda: HurtLinks("bridge", _bridge, _cut)),
    ("the leader sends, but receives nothing", lambda: HurtLinks("deaf-leader", _to_leader, _cut)),
    ("the leader receives, but what it sends is lost", lambda: HurtLinks("mute-leader", _from_leader, _cut)),
    ("one controller's links fail and work again, over and over", Flapping),
    (
        "every link is slow: delay, jitter and little room",
        lambda: HurtLinks("slow-links", _every_link, _slow),
    ),
    ("every link loses packets at random", lambda: HurtLinks("random-drops", _every_link, _lose)),
)
