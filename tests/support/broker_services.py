"""The services of a broker's listener, as tests want them: over one image, with a forwarder of the test's own."""

from typing import Any

from kquorum.broker.adapters.delayed_operation import LoopDelayedOperation
from kquorum.broker.apis.services import BrokerServices
from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.metadata.image.image import MetadataImage


class LowestRandomSource:
    """A RandomSource that gives the same answer to the same question."""

    def randint(self, low: int, high: int) -> int:
        assert low <= high
        return low


def broker_services(
    cache: MetadataCache | MetadataImage, forwarder: Any = None, **others: Any
) -> BrokerServices:
    """`others` are further fields of BrokerServices, or other values than those here."""
    if isinstance(cache, MetadataImage):
        image, cache = cache, MetadataCache()
        cache.swap(image)
    defaults: dict[str, Any] = {
        "cluster_id": "the-cluster",
        "random_source": LowestRandomSource(),
        "new_delayed_operation": LoopDelayedOperation,
    }
    return BrokerServices(cache=cache, forwarder=forwarder, **defaults | others)
