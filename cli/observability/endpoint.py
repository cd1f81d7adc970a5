"""What is served on `kquorum.metrics.listener`: /metrics, /healthz and /livez."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from cli.observability.families import families_of
from cli.observability.figures import NodeFigures
from cli.observability.health import live_reply, ready_reply
from cli.observability.http_server import HttpReply, HttpRequest, Route
from cli.observability.listener_families import listener_families
from cli.observability.partition_counts import PartitionCounter

Gather = Callable[[], NodeFigures]


class NodeCollector(Collector):
    """Reads the node when it is scraped, and keeps nothing but the last count of partitions."""

    def __init__(self, gather: Gather) -> None:
        self._gather = gather
        self._counter = PartitionCounter()

    def collect(self) -> Iterator[Metric]:
        figures = self._gather()
        yield from families_of(figures, self._counter)
        yield from listener_families(figures.listeners)


def routes_of(gather: Gather) -> Mapping[str, Route]:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(NodeCollector(gather))
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)

    def metrics(request: HttpRequest) -> HttpReply:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return HttpReply(body=encode(registry), content_type=content_type)

    def health(request: HttpRequest) -> HttpReply:
        if "live" in request.query.split("&"):
            return live_reply(gather())
        return ready_reply(gather())

    return {"/metrics": metrics, "/healthz": health, "/livez": lambda _: live_reply(gather())}
