"""What is served on `kquorum.metrics.listener`: /metrics, /healthz and /livez."""

import asyncio
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kquorum.node.observability.families import families_of
from kquorum.node.observability.figures import NodeFigures
from kquorum.node.observability.health import live_reply, ready_reply
from kquorum.node.observability.http_server import HttpReply, HttpRequest, Route
from kquorum.node.observability.listener_families import listener_families
from kquorum.node.observability.partition_counts import Counts, PartitionCounter

Gather = Callable[[], NodeFigures]


class NodeCollector(Collector):
    """What was read off the node at the last `look`, which goes before every `collect`."""

    def __init__(self, gather: Gather) -> None:
        self._gather = gather
        self._counter = PartitionCounter()
        self._seen: tuple[NodeFigures, Counts] | None = None

    async def look(self) -> None:
        """Partitions are counted in a thread, where there are others than the last time."""
        figures = self._gather()
        counts = self._counter.known(figures.image.topics)
        if counts is None:
            broker_id = None if figures.broker is None else figures.broker.broker_id
            is_controller = figures.controller is not None
            counts = await asyncio.to_thread(
                self._counter.count, figures.image.topics, is_controller=is_controller, broker_id=broker_id
            )
        self._seen = (figures, counts)

    def collect(self) -> Iterator[Metric]:
        if self._seen is not None:
            figures, counts = self._seen
            yield from families_of(figures, counts)
            yield from listener_families(figures.listeners)


def routes_of(gather: Gather) -> Mapping[str, Route]:
    registry = CollectorRegistry(auto_describe=False)
    node = NodeCollector(gather)
    registry.register(node)
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)

    async def metrics(request: HttpRequest) -> HttpReply:
        encode, content_type = _encoder_for(request.headers.get("accept", ""))
        await node.look()
        return HttpReply(body=encode(registry), content_type=content_type)

    def health(request: HttpRequest) -> HttpReply:
        if "live" in request.query.split("&"):
            return live_reply(gather())
        return ready_reply(gather())

    return {"/metrics": metrics, "/healthz": health, "/livez": lambda _: live_reply(gather())}


def _encoder_for(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    """The plain format for a header that prometheus-client fails over: one with version=x, say."""
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):
        return choose_encoder("")
