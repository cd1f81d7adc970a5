"""Producers and a reader for each partition of a world."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquorum.broker.log.errors import LogError
from kquorum.broker.log.partition_log import Isolation
from kquorum.broker.replica.partition import TopicPartition
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.record_batch import write_batch
from tests.simulation.errors import InvariantBroken
from tests.simulation.partitions.controller import TOPIC
from tests.simulation.partitions.idempotent import Batch, IdempotentProducer

if TYPE_CHECKING:
    from tests.simulation.partitions.brokers import SimulatedBroker
    from tests.simulation.partitions.world import PartitionWorld

CLIENT = 100


class Clients:
    def __init__(self, world: PartitionWorld) -> None:
        self.world = world
        self.is_working = True
        self.sent = 0
        self.acknowledged: list[dict[int, bytes]] = [{} for _ in range(world.options.partitions)]
        """By offset, the value that was acknowledged there to a producer with acks=all."""
        self.last_acknowledged_ms = [-1] * world.options.partitions
        self.once_acknowledged_ms = [-1] * world.options.partitions
        """When each idempotent producer last heard of a batch."""
        self.idempotent = [
            IdempotentProducer(world, index, self._known_leader_of, self._done_once)
            for index in range(world.options.partitions)
        ]
        self.reader_epochs = [-1] * world.options.partitions

    def begin(self) -> None:
        for index in range(self.world.options.partitions):
            self.world.at(20, self._produce, index)
            self.world.at(30, self._read, index)

    def forget(self, index: int, offset: int) -> None:
        """Records were lost that may be lost."""
        self.acknowledged[index] = {
            at: value for at, value in self.acknowledged[index].items() if at < offset
        }

    def _leader_of(self, index: int) -> SimulatedBroker:
        """As the metadata of some broker have it, which may be old."""
        brokers = list(self.world.brokers.values())
        return self._known_leader_of(index)[0] or self.world.random.choice(brokers)

    def _known_leader_of(self, index: int) -> tuple[SimulatedBroker | None, int]:
        """With its leader epoch."""
        world = self.world
        brokers = [each for each in world.brokers.values() if each.is_running and each.applied]
        chosen = world.random.choice(brokers) if brokers else None
        state = None
        if chosen is not None and (topic := chosen.image.topics.by_name.get(TOPIC)) is not None:
            state = topic.partitions.get(index)
        if state is None or state.leader <= 0:
            return None, -1
        return world.brokers[state.leader], state.leader_epoch

    def _produce(self, index: int) -> None:
        world = self.world
        if not self.is_working:
            return
        world.at(world.random.randint(1, 2 * world.options.produce_every_ms), self._produce, index)
        if world.random.random() < 0.5:
            self.idempotent[index].produce()
            return
        leader = self._leader_of(index)
        self.sent += 1
        value = b"%d" % self.sent
        count = world.random.choice((1, 1, 2, 5))
        records = write_batch(
            base_offset=0, leader_epoch=-1, timestamp_ms=world.now_ms, records=[(None, value)] * count
        )
        acks = -1 if world.random.random() < 0.8 else 1

        def answered(outcome: int | ErrorCode) -> None:
            if isinstance(outcome, ErrorCode):
                world.tally[f"produce: {outcome.name}"] += 1
            elif acks == -1:
                world.send(leader.broker_id, CLIENT, self._done, index, outcome, value)

        world.send(
            CLIENT,
            leader.broker_id,
            leader.deliver,
            leader.life,
            leader.produce,
            index,
            records,
            acks,
            answered,
        )

    def _done_once(self, index: int, offset: int, batch: Batch) -> None:
        self._done(index, offset, batch.value(0))
        self.once_acknowledged_ms[index] = self.world.now_ms

    def _done(self, index: int, offset: int, value: bytes) -> None:
        self.world.tally["batches acknowledged"] += 1
        if offset < self.world.checks.committed[index].end:
            self.acknowledged[index][offset] = value
        elif not self.world.excused[index]:
            raise InvariantBroken(
                f"offset {offset} of partition {index} was acknowledged and is not committed"
            )
        self.last_acknowledged_ms[index] = self.world.now_ms

    # Readers

    def _read(self, index: int) -> None:
        """A consumer that remembers the newest leader epoch it heard of, and asks only for that or later (KIP-320)."""
        world = self.world
        if not self.is_working:
            return
        world.at(world.random.randint(1, 2 * world.options.produce_every_ms), self._read, index)
        leader = self._leader_of(index)
        world.send(CLIENT, leader.broker_id, leader.deliver, leader.life, self._ask, leader, index)

    def _ask(self, leader: SimulatedBroker, index: int) -> None:
        try:
            partition = leader.partition(TopicPartition(TOPIC, index))
            epoch = partition.leader_epoch
            if epoch < self.reader_epochs[index]:
                return
            offset = partition.latest_offset(Isolation.HIGH_WATERMARK, current_leader_epoch=epoch)
            found = partition.read(
                partition.log.log_start_offset,
                max_bytes=300,
                isolation=Isolation.HIGH_WATERMARK,
                at_least_one_batch=True,
            )
        except LogError as error:
            self.world.tally[f"read: {type(error).__name__}"] += 1
            return
        self.reader_epochs[index] = epoch
        if offset is None:
            self.world.tally["latest offsets not available"] += 1
        else:
            self.world.checks.latest_told(index, offset, epoch)
        committed = self.world.checks.committed[index].batches
        assert found.records is not None
        got = [bytes(piece) for piece in found.records.pieces]
        if got != [batch.data for batch in committed[: len(got)]]:
            raise InvariantBroken(f"a reader of partition {index} got records that are not committed")
        self.world.tally["reads"] += 1
