"""The node's HTTP listener, where its config has one: prometheus-client is imported only then."""

from typing import TYPE_CHECKING

from node.servers import StoppableServer

if TYPE_CHECKING:
    from node.cluster_node import ClusterNode


async def start_metrics(node: "ClusterNode") -> StoppableServer | None:
    """None where the config has no `kquorum.metrics.listener`. Raises MetricsCannotListen."""
    address = node.config.kquorum_metrics_listener
    if address is None:
        return None
    from node.observability.endpoint import routes_of
    from node.observability.gather import figures_of
    from node.observability.http_server import HttpServer

    server = HttpServer(address.host, address.port, routes_of(lambda: figures_of(node)))
    await server.start()
    return server
