"""Warnings when nodes of two clusters talk to each other (INCONSISTENT_CLUSTER_ID), on the side that asks and on the
side that refuses, each seldom enough to leave the log readable."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from kquorum.network.connection import UNSECURED, KafkaConnection
from kquorum.network.errors import NetworkError
from kquorum.network.requests import RequestContext
from kquorum.network.security.client_security import ClientSecurity
from kquorum.node.leader_watch import named_peer
from kquorum.raft.voters import Endpoint
from kquorum.wire.errors import DecodeError
from kquorum.wire.messages.describe_cluster import DescribeClusterRequest

EVERY_MS: Final = 60_000
MAX_REMEMBERED: Final = 100
_LOOK_UP_TIMEOUT_MS: Final = 2_000
_CONTROLLERS: Final = 2  # DescribeCluster's endpoint type
log = logging.getLogger("node.foreign_cluster")


class Seldom:
    """Whether something may be said again: each thing once in `every_ms`, and no more than a hundred things."""

    def __init__(self, every_ms: int, now_ms: Callable[[], int]) -> None:
        self._every_ms = every_ms
        self._now_ms = now_ms
        self._said: dict[object, int] = {}

    def allows(self, thing: object) -> bool:
        now_ms = self._now_ms()
        self._said = {known: at for known, at in self._said.items() if at + self._every_ms > now_ms}
        if thing in self._said or len(self._said) >= MAX_REMEMBERED:
            return False
        self._said[thing] = now_ms
        return True


class ForeignClusters:
    """Made and used on the loop. `cluster_id` is this node's."""

    def __init__(
        self,
        cluster_id: str,
        node_id: int,
        now_ms: Callable[[], int],
        security: ClientSecurity = UNSECURED,
    ) -> None:
        self._security = security
        self._cluster_id = cluster_id
        self._node_id = node_id
        self._asked = Seldom(EVERY_MS, now_ms)
        self._refused = Seldom(EVERY_MS, now_ms)
        self._tasks: set[asyncio.Task[None]] = set()

    def was_refused_by(self, peer_id: int, endpoint: Endpoint | None) -> None:
        """A peer that this node asked is of another cluster; which one, its answer does not say: it is asked."""
        if self._asked.allows((peer_id, endpoint)):
            task = asyncio.get_running_loop().create_task(self._tell_refusal(peer_id, endpoint))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def look_at(self, context: RequestContext, request: Any) -> None:
        """A request that came in: the core refuses one of another cluster."""
        foreign_id = getattr(request, "cluster_id", None)
        if foreign_id is None or foreign_id == self._cluster_id:
            return
        client = context.header.client_id or "unnamed"
        if self._refused.allows((context.peer_host, client, foreign_id)):
            log.warning(
                "refused %s at %s: it belongs to cluster %s, but this is node %d of cluster %s; correct the addresses "
                "that it asks (controller.quorum.voters or controller.quorum.bootstrap.servers), or, if it is to be "
                "part of this cluster, give it a new folder: `kquorum format --cluster-id %s`",
                client,
                context.peer_host,
                foreign_id,
                self._node_id,
                self._cluster_id,
                self._cluster_id,
            )

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _tell_refusal(self, peer_id: int, endpoint: Endpoint | None) -> None:
        foreign_id = None if endpoint is None else await _cluster_id_of(endpoint, self._security)
        log.warning(
            "%s refuses this node: it belongs to cluster %s, but this is node %d of cluster %s; correct "
            "controller.quorum.voters or controller.quorum.bootstrap.servers here, or, if this node is to be part of "
            "that cluster, give it a new folder: `kquorum format --cluster-id %s`",
            named_peer(peer_id, endpoint),
            foreign_id or "(unknown)",
            self._node_id,
            self._cluster_id,
            foreign_id or "ID",
        )


async def _cluster_id_of(endpoint: Endpoint, security: ClientSecurity) -> str | None:
    request = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
    try:
        connection = await KafkaConnection.connect(
            endpoint.host, endpoint.port, "kquorum-cluster-id", _LOOK_UP_TIMEOUT_MS, security=security
        )
        try:
            response = await connection.call(request, _LOOK_UP_TIMEOUT_MS)
        finally:
            connection.close()
    except (NetworkError, DecodeError):
        return None
    return response.cluster_id or None
