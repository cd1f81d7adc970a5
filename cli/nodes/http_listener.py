"""The node's HTTP listener, where its config has one: prometheus-client is imported only then."""

from typing import TYPE_CHECKING

from cli.nodes.servers import StoppableServer

if TYPE_CHECKING:
    from cli.nodes.cluster_node import ClusterNode


async def start_metrics(node: "ClusterNode") -> StoppableServer | None:
    """None where the config has no `kquorum.metrics.listener`. Raises MetricsCannotListen."""
    address = node.config.kquorum_metrics_listener
    if address is None:
        return None
    from cli.observability.endpoint import routes_of
    from cli.observability.gather import figures_of
    from cli.observability.http_server import HttpServer

    server = HttpServer(address.host, address.port, routes_of(lambda: figures_of(node)))
    await server.start()
    return server
