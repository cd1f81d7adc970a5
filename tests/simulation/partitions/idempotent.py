"""An idempotent producer of a partition (KIP-98), which sends its batches again until each is acknowledged.

It has up to five batches under way on one connection, whose requests and answers arrive in order. Where an answer is
late it gives up the connection, and all that is under way may still arrive. It sends batches again in order, the first
one alone, and goes to another leader when no answer is outstanding, as Kafka's clients do. Other than they, it sends
nothing beside the first batch of an epoch: a leader takes any sequence of a producer that it does not know, so the
second batch may get in before the first one, which then never does (KAFKA-14359).

A broker may refuse the sequence of the first unacknowledged batch only where records were lost that may be lost: then
the producer takes the next epoch (KIP-360).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from kquorum.wire.data_batch import Record, write_data_batch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.simulation.errors import InvariantBroken

if TYPE_CHECKING:
    from tests.simulation.partitions.brokers import SimulatedBroker
    from tests.simulation.partitions.world import PartitionWorld

IN_FLIGHT_MAX = 5
BACKLOG_MAX = 20
_REFUSED = (ErrorCode.out_of_order_sequence_number, ErrorCode.invalid_producer_epoch)


@dataclass(slots=True, eq=False)
class Batch:
    number: int
    """It counts the batches of the producer from 0."""
    count: int
    sequence: int = -1
    attempts: int = 0
    awaited: int | None = None
    """The attempt whose answer is outstanding."""
    was_first: bool = False
    """Whether all batches before it were acknowledged when it was sent."""

    def value(self, place: int) -> bytes:
        return b"i%d.%d" % (self.number, place)


def number_of(value: bytes | None) -> int | None:
    """Of the batch that the first record of such a value begins; None for other records."""
    if value is None or not value.startswith(b"i") or not value.endswith(b".0"):
        return None
    return int(value[1:-2])


class IdempotentProducer:
    """`leader_of` gives the partition's leader and its epoch, by the metadata of some broker. `acknowledged` hears of
    each batch, with its first offset."""

    def __init__(
        self,
        world: PartitionWorld,
        index: int,
        leader_of: Callable[[int], tuple[SimulatedBroker | None, int]],
        acknowledged: Callable[[int, int, Batch], None],
    ) -> None:
        self.world = world
        self.index = index
        self.producer_id = 1_000 + index
        self.epoch = 0
        self.next_sequence = 0
        self.made = 0
        self.batches: list[Batch] = []
        """Those that are not acknowledged, in order."""
        self._leader_of = leader_of
        self._acknowledged = acknowledged
        self._random = Random(world.seed * 31 + index)
        # Shorter than a pause or a slow network: requests that were given up arrive after all.
        self._timeout_ms = self._random.choice((40, 120, world.options.timeout_ms))
        self._leader: SimulatedBroker | None = None
        self._leader_epoch = -1
        self._attempts = 0
        self._arrival_ms = self._answer_ms = 0
        self._is_waiting = False
        self._is_known = False
        """Whether a batch of this epoch was acknowledged."""

    def produce(self) -> None:
        """One more batch, unless too many wait."""
        if len(self.batches) < BACKLOG_MAX:
            self.batches.append(Batch(self.made, self._random.choice((1, 1, 2, 5))))
            self.made += 1
        self._send_due()

    def _has_leader(self) -> bool:
        """Metadata that are older than what the producer has heard of the partition do not count (KIP-320)."""
        if self._leader is None:
            leader, epoch = self._leader_of(self.index)
            if epoch >= self._leader_epoch:
                self._leader, self._leader_epoch = leader, epoch
        return self._leader is not None

    def _send_due(self) -> None:
        if not self._has_leader():
            self._send_later()
            return
        for batch in self.batches[: IN_FLIGHT_MAX if self._is_known else 1]:
            if batch.awaited is not None:
                continue
            if batch.attempts and batch is not self.batches[0]:
                return
            self._send(batch)

    def _send(self, batch: Batch) -> None:
        world, leader = self.world, self._leader
        assert leader is not None
        if batch.sequence < 0:
            batch.sequence = self.next_sequence
            self.next_sequence += batch.count
        self._attempts += 1
        attempt = batch.awaited = self._attempts
        batch.attempts += 1
        batch.was_first = batch is self.batches[0]
        if batch.attempts > 1:
            world.tally["batches sent again"] += 1
        self._arrival_ms = max(self._arrival_ms, world.now_ms + world.links.delay_ms())

        def answered(outcome: int | ErrorCode) -> None:
            self._answer_ms = max(self._answer_ms, world.now_ms + world.links.delay_ms())
            world.at(self._answer_ms - world.now_ms, self._answered, batch, attempt, outcome)

        world.at(
            self._arrival_ms - world.now_ms,
            leader.deliver,
            leader.life,
            leader.produce,
            self.index,
            self._records(batch),
            -1,
            answered,
        )
        world.at(self._timeout_ms, self._give_up, batch, attempt)

    def _records(self, batch: Batch) -> bytes:
        now_ms = self.world.now_ms
        return write_data_batch(
            [Record(place, now_ms, None, batch.value(place)) for place in range(batch.count)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=batch.sequence,
        )

    def _give_up(self, batch: Batch, attempt: int) -> None:
        """The connection, and with it all that is under way."""
        if batch.awaited != attempt:
            return
        self.world.tally["connections given up"] += 1
        for each in self.batches:
            each.awaited = None
        self._leader = None
        self._send_later()

    def _send_later(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self.world.at(self.world.options.backoff_ms, self._send_again)

    def _send_again(self) -> None:
        self._is_waiting = False
        self._send_due()

    def _answered(self, batch: Batch, attempt: int, outcome: int | ErrorCode) -> None:
        if batch.awaited != attempt:
            return
        batch.awaited = None
        if not isinstance(outcome, ErrorCode):
            self._is_known = True
            self.batches.remove(batch)
            self._acknowledged(self.index, outcome, batch)
            self._send_due()
            return
        self.world.tally[f"idempotent produce: {outcome.name}"] += 1
        if outcome in _REFUSED and batch.was_first:
            self._take_next_epoch(batch, outcome)
        if all(each.awaited is None for each in self.batches):
            self._leader = None
        self._send_later()

    def _take_next_epoch(self, batch: Batch, error: ErrorCode) -> None:
        if not self.world.excused[self.index]:
            raise InvariantBroken(
                f"the sequence {batch.sequence} of the producer of partition {self.index} is refused with "
                f"{error.name}, and all before it was acknowledged"
            )
        self.world.tally["producer epochs"] += 1
        self.epoch += 1
        self.next_sequence = 0
        self._is_known = False
        for each in self.batches:
            each.sequence, each.attempts, each.awaited = -1, 0, None

    def check(self, values: list[bytes | None]) -> None:
        """`values` are those of the whole log: the producer's batches are in it once each, in order, without a gap."""
        if self.world.excused[self.index]:
            return
        found = [number for value in values if (number := number_of(value)) is not None]
        if found != list(range(len(found))):
            at = next(place for place, number in enumerate(found) if number != place)
            raise InvariantBroken(
                f"the log of partition {self.index} holds batch {found[at]} of its idempotent producer where batch "
                f"{at} belongs"
            )
        first = self.batches[0].number if self.batches else self.made
        if len(found) < first:
            raise InvariantBroken(f"batch {len(found)} of the producer of partition {self.index} is lost")
