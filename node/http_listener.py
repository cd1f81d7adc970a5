"""The node's HTTP listener, where its config has one: prometheus-client is imported only then."""

from kquorum.node.running_node import RunningNode
from kquorum.node.servers import StoppableServer


async def start_metrics(node: RunningNode) -> StoppableServer | None:
    """None where the config has no `kquorum.metrics.listener`. Raises MetricsCannotListen."""
    address = node.config.kquorum_metrics_listener
    if address is None:
        return None
    from kquorum.node.observability.endpoint import routes_of
    from kquorum.node.observability.gather import figures_of
    from kquorum.node.observability.http_server import HttpServer

    server = HttpServer(address.host, address.port, routes_of(lambda: figures_of(node)))
    await server.start()
    return server
