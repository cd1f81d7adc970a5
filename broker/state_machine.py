"""The broker's part at the end of the log: committed batches become images, and the images become the cache."""

import logging
from collections.abc import Callable, Sequence

from kquorum.broker.image_feed import ImageFeed, ImageObserver
from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.loader import MetadataLoader
from kquorum.metadata.snapshot import LoadedSnapshot
from kquorum.wire.log_batch import LogBatch

log = logging.getLogger("broker.state_machine")


class BrokerStateMachine:
    """Implements raft.ports.StateMachine.

    Each image goes to `feed`. A record that cannot be replayed is logged and skipped, as Kafka's brokers do: the
    controllers would not have written it, so going on serves clients better than stopping.
    """

    def __init__(self, cache: MetadataCache) -> None:
        self.feed = ImageFeed(cache)
        self._now_ms = 0
        self.loader = MetadataLoader(on_fault=self._skip)
        self.loader.publishers.append(self._publish)
        # Told why from here on the image lacks something that was committed.
        self.fault_observers: list[Callable[[str], None]] = []

    @property
    def observers(self) -> list[ImageObserver]:
        return self.feed.observers

    @property
    def image(self) -> MetadataImage:
        return self.loader.image

    @property
    def state_hash(self) -> int:
        """Of the image."""
        return self.loader.state_hash

    @property
    def is_in_transaction(self) -> bool:
        return self.loader.is_in_transaction

    @property
    def applied_offset(self) -> int:
        """-1 before any metadata."""
        return self.feed.applied_offset

    def handle_commit(self, now_ms: int, batches: Sequence[LogBatch]) -> None:
        self._now_ms = now_ms
        self.loader.handle_commit(batches)

    def handle_commit_slice(self, now_ms: int, batches: Sequence[LogBatch]) -> bool:
        self._now_ms = now_ms
        return self.loader.handle_slice(batches)

    def handle_snapshot(self, now_ms: int, state: object) -> None:
        assert isinstance(state, LoadedSnapshot), state
        self._now_ms = now_ms
        self.loader.handle_snapshot(state.image, state.last_audit_note, state.state_hash)

    def handle_leader_change(self, now_ms: int, leader_id: int, leader_epoch: int) -> None:
        """A broker decides nothing; its channels to the controller learn of leaders elsewhere."""

    def handle_time(self, now_ms: int) -> None:
        """Nothing here waits for time."""

    def next_deadline_ms(self) -> int | None:
        return None

    def _publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.feed.publish(self._now_ms, delta, image)

    def _skip(self, error: ReplayError) -> None:
        log.error("a committed record was skipped: %s", error)
        for observer in self.fault_observers:
            observer(str(error))
