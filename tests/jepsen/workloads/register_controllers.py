"""The way to the controller that leads, as one client finds it, and the connections to all of them."""

from typing import Any

from kquorum.wire.protocol.apis import ApiKey
from tests.jepsen.core.client import RawClient
from tests.jepsen.core.errors import ClientError, not_sent
from tests.jepsen.core.inspector import Inspector
from tests.jepsen.workloads.connected import raw_client
from tests.jepsen.workloads.workload import Setup

LOOKUP_TIMEOUT_S = 1.0
_CONTROLLER_ENDPOINTS = 2
_NO_LEADER = -1
_QUORUM: dict[str, object] = {
    "topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
}


class Controllers:
    """Of one worker, and used in its thread alone.

    Asked first is `home`, and what it says is believed if the one that it names says so too. So a client whose home
    is a leader that no node follows any more stays with it, as clients do; the others go where the quorum went.
    """

    def __init__(self, setup: Setup, home: int, timeout_s: float) -> None:
        order = setup.members.quorum
        assert home in order, f"{home} is no controller"
        at = order.index(home)
        self._in_order = (*order[at:], *order[:at])
        self._cluster = setup.cluster
        self._network = setup.network
        self._timeout_s = timeout_s
        self._lookups: dict[int, RawClient] = {}
        self._clients: dict[int, RawClient] = {}
        self._inspectors: dict[int, Inspector] = {}

    def leader(self) -> int:
        """The controller that claims to lead and confirms it. Raises ClientError: nothing was sent."""
        denied: set[int] = set()
        for node_id in self._in_order:
            named = self._named_by(node_id)
            if named == _NO_LEADER:
                break  # whom others still name has perhaps been left behind, and to wait there would be in vain
            if named in self._in_order and named not in denied:
                if self._leads(named):
                    return named
                denied.add(named)
        raise not_sent("no controller says that it leads")

    def cluster_id(self) -> str:
        """Raises ClientError."""
        for node_id in self._in_order:
            try:
                return str(self._describe(node_id).cluster_id)
            except ClientError:
                continue
        raise not_sent("no controller answers")

    def client(self, node_id: int) -> RawClient:
        return self._connected(self._clients, node_id, self._timeout_s)

    def inspector(self, node_id: int) -> Inspector:
        if node_id not in self._inspectors:
            address = self._cluster.grpc_address(node_id)
            self._inspectors[node_id] = Inspector(address, self._timeout_s)
        return self._inspectors[node_id]

    def close(self) -> None:
        for client in (*self._lookups.values(), *self._clients.values()):
            client.close()
        for inspector in self._inspectors.values():
            inspector.close()
        # A channel that was closed is of no more use.
        self._inspectors.clear()

    def _named_by(self, node_id: int) -> int | None:
        try:
            return int(self._describe(node_id).controller_id)
        except ClientError:
            return None

    def _leads(self, node_id: int) -> bool:
        """By DescribeQuorum, which a leader that has resigned refuses; DescribeCluster still names it then."""
        try:
            lookup = self._connected(self._lookups, node_id, LOOKUP_TIMEOUT_S)
            response: Any = lookup.request(ApiKey.DESCRIBE_QUORUM, _QUORUM)
            partition = response.topics[0].partitions[0]
        except (ClientError, IndexError):
            return False
        return not int(partition.error_code) and int(partition.leader_id) == node_id

    def _describe(self, node_id: int) -> Any:
        return self._connected(self._lookups, node_id, LOOKUP_TIMEOUT_S).request(
            ApiKey.DESCRIBE_CLUSTER,
            {
                "endpoint_type": _CONTROLLER_ENDPOINTS,
                "include_cluster_authorized_operations": False,
                "include_fenced_brokers": False,
            },
        )

    def _connected(self, known: dict[int, RawClient], node_id: int, timeout_s: float) -> RawClient:
        if node_id not in known:
            known[node_id] = raw_client(self._network, node_id, timeout_s)
        return known[node_id]
