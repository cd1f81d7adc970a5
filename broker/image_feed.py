"""From one image to the next, for all parts of a broker: in a process of its own, or beside a controller."""

from collections.abc import Callable

from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage

ImageObserver = Callable[[int, MetadataDelta, MetadataImage], None]


class ImageFeed:
    """The feed swaps the cache first, then calls `observers` with (now_ms, delta, image) in their order. Only then does
    the broker count the offset as applied in its heartbeats.

    The image is one reference, so a reader has the whole of the old one or the whole of the new one. In a process of
    both roles the controller publishes what is committed to here; there the broker reads no log of its own.
    """

    def __init__(self, cache: MetadataCache) -> None:
        self._cache = cache
        self._applied_offset = -1
        self.observers: list[ImageObserver] = []

    @property
    def cache(self) -> MetadataCache:
        return self._cache

    @property
    def applied_offset(self) -> int:
        """-1 before any metadata."""
        return self._applied_offset

    def publish(self, now_ms: int, delta: MetadataDelta, image: MetadataImage) -> None:
        self._cache.swap(image)
        for observer in self.observers:
            observer(now_ms, delta, image)
        self._applied_offset = image.provenance.last_contained_offset
