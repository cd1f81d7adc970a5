"""What a fault is: a beginning, a heal, and what was really done, for the history.

Faults overlap in a run of all of them, so each says what it needs for itself: nodes whose process it kills, pauses or
starts again are *claimed* until its heal, and a fault that needs a claimed one says NotNow. One kind of harm is
rationed besides: what takes durable records from a voter (a wiped disk, a flipped bit) may lie on one node at a time,
until it has all records back, for a majority that lost them has lawfully lost them.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from tests.jepsen.core.cluster import Cluster
from tests.jepsen.core.members import Members
from tests.jepsen.faults.quorum_view import QuorumView
from tests.jepsen.net.network import Network

Value = Mapping[str, Any]


class NotNow(Exception):
    """The fault cannot be brought about at this moment, or not here; the text says why."""


@dataclass(slots=True)
class Scene:
    """What there is to be hurt. `links` is held while the network is changed: some faults go on in the background."""

    network: Network
    cluster: Cluster
    members: Members
    quorum: QuorumView
    random_source: Random
    links: threading.Lock = field(default_factory=threading.Lock)
    _harmed: tuple[int, int] | None = None
    _claims: dict[int, str] = field(default_factory=dict)

    def claim(self, fault: str, node_ids: Iterable[int]) -> None:
        """Raises NotNow when another fault has one of them; a fault may claim what it has."""
        wanted = set(node_ids)
        for node_id in sorted(wanted):
            if (owner := self._claims.get(node_id, fault)) != fault:
                raise NotNow(f"node {node_id} is taken by {owner}")
        self._claims |= dict.fromkeys(wanted, fault)

    def release(self, fault: str) -> None:
        self._claims = {node: owner for node, owner in self._claims.items() if owner != fault}

    def ration(self, node_id: int) -> None:
        """This node is about to lose durable records. Raises NotNow while another lacks what it lost."""
        if self._harmed is not None:
            other, since_bytes = self._harmed
            if not self.cluster.is_whole(other, since_bytes):
                raise NotNow(f"node {other} has not all records back that it lost")
        self._harmed = (node_id, self.cluster.output_bytes(node_id))

    def unclaimed(self, node_ids: Iterable[int]) -> list[int]:
        return sorted(node_id for node_id in node_ids if node_id not in self._claims)

    def any_unclaimed(self, node_ids: Iterable[int]) -> int:
        """Raises NotNow when there is none."""
        free = self.unclaimed(node_ids)
        if not free:
            raise NotNow("every node is taken by another fault")
        return self.random_source.choice(free)

    def leader_unclaimed(self) -> int:
        """Raises NotNow without a leader, or when another fault has it."""
        leader_id = self.quorum.leader().leader_id
        if not self.unclaimed([leader_id]):
            raise NotNow(f"the leader, node {leader_id}, is taken by another fault")
        return leader_id


class Fault(Protocol):
    """One fault of the catalogue. Its name is the `f` of its operations in the history."""

    @property
    def name(self) -> str: ...

    def begin(self, scene: Scene) -> Value:
        """Bring it about; answers what was done. Raises NotNow, with nothing done."""
        ...

    def end(self, scene: Scene) -> Value | None:
        """Heal what `begin` did; nothing when it is not going on. Called again it does nothing."""
        ...
