"""The leader, as the controllers report it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kquorum.wire.protocol.apis import ApiKey
from tests.jepsen.core.client import RawClient
from tests.jepsen.core.errors import ClientError
from tests.jepsen.net.network import Network

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


@dataclass(frozen=True, slots=True)
class QuorumStatus:
    """What a leader tells: log end offsets by voter and observer, -1 where it knows none."""

    leader: Leader
    high_watermark: int
    voters: dict[int, int]
    observers: dict[int, int]


class QuorumView:
    """Asks every controller itself; of several who think that they lead, the one of the newest epoch does."""

    def __init__(self, network: Network, controllers: Sequence[int]) -> None:
        self._network = network
        self._controllers = tuple(controllers)

    def leader(self) -> Leader:
        """Raises NoLeader."""
        return self.status().leader

    def status(self) -> QuorumStatus:
        """Raises NoLeader."""
        found = [status for node_id in self._controllers if (status := self._ask(node_id)) is not None]
        if not found:
            raise NoLeader("no controller says that it leads")
        return max(found, key=lambda status: status.leader.leader_epoch)

    def _ask(self, node_id: int) -> QuorumStatus | None:
        address = self._network.address_of(node_id)
        client = RawClient(address.host, address.port, _ASK_TIMEOUT_S)
        try:
            response: Any = client.request(ApiKey.DESCRIBE_QUORUM, _QUORUM)
            partition = response.topics[0].partitions[0]
        except (ClientError, IndexError):
            return None
        finally:
            client.close()
        if int(partition.error_code) or int(partition.leader_id) != node_id:
            return None
        return QuorumStatus(
            Leader(node_id, int(partition.leader_epoch)),
            int(partition.high_watermark),
            _ends(partition.current_voters),
            _ends(partition.observers),
        )


def _ends(replicas: Any) -> dict[int, int]:
    return {int(replica.replica_id): int(replica.log_end_offset) for replica in replicas}
