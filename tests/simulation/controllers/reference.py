"""What the committed log makes of the metadata, replayed apart from every node: what their states are compared with."""

from uuid import UUID

from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.loader import MetadataLoader
from kquorum.metadata.state_hash.image_hash import hash_of_image
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.record_batch import read_batch_header
from kquorum.wire.record_frame import decode_record
from tests.simulation.committed import CommittedLog
from tests.simulation.errors import InvariantBroken
from tests.support.image_invariants import image_violations


class Reference:
    """`images` and `hashes` by the last offset of each state; hashes from scratch, so that those which nodes keep up by
    increments are compared with something else."""

    def __init__(self, committed: CommittedLog) -> None:
        self._committed = committed
        self._loader = MetadataLoader()
        self._loader.publishers.append(self._published)
        self._taken = 0
        self._batch: LogBatch | None = None
        self.hashes: dict[int, int] = {}
        self.images: dict[int, MetadataImage] = {}
        self.removed_topic_ids: set[UUID] = set()
        self.known_topic_ids: set[UUID] = set()
        self.registrations: dict[int, tuple[int, UUID]] = {}
        self.unfenced: set[tuple[int, int]] = set()
        self.config_values: set[tuple[str, str, str]] = set()
        # Brokers that were fenced: (leader's epoch, leader's time, (id, broker epoch)).
        self.fenced: list[tuple[int, int, tuple[int, int]]] = []

    @property
    def image(self) -> MetadataImage:
        self.catch_up()
        return self._loader.image

    def catch_up(self) -> None:
        batches = self._committed.batches
        while self._taken < len(batches):
            self._batch = batches[self._taken]
            self._taken += 1
            self._note_configs(self._batch)
            self._loader.handle_commit([self._batch])

    def _note_configs(self, batch: LogBatch) -> None:
        for record in () if batch.is_control else batch.records:
            config = decode_record(record.value or b"")
            if isinstance(config, ConfigRecord):
                self.config_values.add((config.resource_name, config.name, config.value or ""))

    def check_state(self, node_id: int, offset: int, state_hash: int) -> None:
        """A node's state is that of the committed log at the same offset."""
        self.catch_up()
        expected = self.hashes.get(offset)
        if offset >= 0 and expected is None:
            raise InvariantBroken(
                f"node {node_id} has a state at offset {offset}, where no committed state ends"
            )
        if offset >= 0 and expected != state_hash:
            raise InvariantBroken(f"the state of node {node_id} at offset {offset} is not what was committed")

    def _published(self, delta: MetadataDelta, image: MetadataImage) -> None:
        before, offset = delta.image, image.provenance.last_contained_offset
        self.hashes[offset] = hash_of_image(image)
        self.images[offset] = image
        if violations := image_violations(image, before):
            raise InvariantBroken(f"the state at offset {offset} is wrong: {violations[0]}")
        self.known_topic_ids |= delta.created_topic_ids
        self.removed_topic_ids |= delta.deleted_topic_ids
        for broker_id, broker in delta.changed_brokers.items():
            if broker is not None:
                self._broker_changed(before.cluster.brokers.get(broker_id), broker)

    def _broker_changed(self, before: BrokerRegistration | None, broker: BrokerRegistration) -> None:
        if before is None or before.epoch != broker.epoch:
            if broker.epoch in self.registrations:
                raise InvariantBroken(f"broker epoch {broker.epoch} was granted twice")
            self.registrations[broker.epoch] = (broker.id, broker.incarnation_id)
            return
        if not broker.fenced:
            self.unfenced.add((broker.id, broker.epoch))
        if broker.fenced and not before.fenced:
            assert self._batch is not None
            time_ms = read_batch_header(self._batch.data).max_timestamp_ms
            self.fenced.append((self._batch.leader_epoch, time_ms, (broker.id, broker.epoch)))
