"""Who hurts the cluster: faults by name, and what was really done, for the history."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.jepsen.checkers.availability import HEAL
from tests.jepsen.client import RawClient
from tests.jepsen.errors import ClientError
from tests.jepsen.history import Op, OpType
from tests.jepsen.net.network import Network, isolation
from wire.protocol.apis import ApiKey

ISOLATE_LEADER = "isolate-leader"
NONE = "none"
_ASK_TIMEOUT_S = 1.0
_QUORUM: dict[str, object] = {
    "topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
}


class NoLeader(Exception):
    """No controller says that it leads."""


@dataclass(frozen=True, slots=True)
class Leader:
    leader_id: int
    leader_epoch: int

    def as_value(self) -> dict[str, int]:
        return {"leader": self.leader_id, "epoch": self.leader_epoch}


class QuorumView:
    """Asks every controller itself; of several who think that they lead, the one of the newest epoch does."""

    def __init__(self, network: Network, controllers: Sequence[int]) -> None:
        self._network = network
        self._controllers = tuple(controllers)

    def leader(self) -> Leader:
        """Raises NoLeader."""
        found = [leader for node_id in self._controllers if (leader := self._ask(node_id)) is not None]
        if not found:
            raise NoLeader("no controller says that it leads")
        return max(found, key=lambda leader: leader.leader_epoch)

    def _ask(self, node_id: int) -> Leader | None:
        address = self._network.address_of(node_id)
        client = RawClient(address.host, address.port, _ASK_TIMEOUT_S)
        try:
            response: Any = client.request(ApiKey.DESCRIBE_QUORUM, _QUORUM)
            partition = response.topics[0].partitions[0]
            is_leader = not int(partition.error_code) and int(partition.leader_id) == node_id
            return Leader(node_id, int(partition.leader_epoch)) if is_leader else None
        except (ClientError, IndexError):
            return None
        finally:
            client.close()


class Nemesis:
    """The worker of process `nemesis`; what it did is in the value of the operation's end."""

    def __init__(self, network: Network, quorum: QuorumView, nodes: Sequence[int]) -> None:
        self._network = network
        self._quorum = quorum
        self._nodes = tuple(nodes)

    def open(self) -> None:
        self._network.enter_as_client()

    def invoke(self, op: Op) -> Op:
        try:
            return op.ended(OpType.INFO, self._do(op.f))
        except NoLeader as error:
            return op.ended(OpType.INFO, None, str(error))

    def close(self) -> None:
        self._network.heal()

    def _do(self, f: str) -> dict[str, int] | None:
        if f == HEAL:
            return self._heal()
        assert f == ISOLATE_LEADER, f
        leader = self._quorum.leader()
        self._network.cut(isolation(leader.leader_id, self._nodes))
        return leader.as_value()

    def _heal(self) -> dict[str, int] | None:
        """Tells who led just before; healing itself never fails for want of a leader."""
        try:
            return self._quorum.leader().as_value()
        except NoLeader:
            return None
        finally:
            self._network.heal()


def plan(nemesis: str, time_s: float, quiet_s: float, fault_s: float) -> list[tuple[float, str]]:
    """(seconds after the step before, f): quiet and fault in turn, as long as a whole fault has room."""
    if nemesis == NONE:
        return []
    assert nemesis == ISOLATE_LEADER, nemesis
    steps: list[tuple[float, str]] = []
    at_s = 0.0
    while at_s + quiet_s + fault_s < time_s:
        steps += [(quiet_s, nemesis), (fault_s, HEAL)]
        at_s += quiet_s + fault_s
    return steps
