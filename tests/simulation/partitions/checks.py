"""What must hold in every world of partitions, looked at whenever a log or the metadata change."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING

from kquorum.broker.replica.partition import TopicPartition
from kquorum.metadata.image.image import MetadataImage
from tests.simulation.errors import InvariantBroken
from tests.simulation.partitions.controller import TOPIC, TOPIC_ID
from tests.support.memory_partition_log import StoredBatch

if TYPE_CHECKING:
    from tests.simulation.partitions.brokers import SimulatedBroker, WatchedLog
    from tests.simulation.partitions.world import PartitionWorld


class Committed:
    """The records of a partition below the highest high watermark that any replica had."""

    def __init__(self) -> None:
        self.batches: list[StoredBatch] = []
        self.end = 0
        self.latest_told = -1
        """The greatest latest offset that a reader was told."""
        self.excused_epoch = -1
        """Leaders up to this epoch may still tell, until they learn of the next one, what a loss has taken back."""


class Checks:
    def __init__(self, world: PartitionWorld) -> None:
        self.world = world
        self.committed = [Committed() for _ in range(world.options.partitions)]
        self.acknowledged_ends: list[int] = [0] * world.options.partitions
        self.lag_begun: dict[tuple[int, int, int, int], tuple[int, int]] = {}
        """Since when a member of an ISR has not reached the end that its leader's log had then."""

    # Logs

    def high_watermark_moved(self, log: WatchedLog, before: int) -> None:
        broker = log.broker
        committed = self.committed[log.partition]
        high_watermark = log.high_watermark
        if self._is_of_the_past(log):
            return
        if broker.is_running and self._leads(log) and high_watermark < before:
            raise InvariantBroken(
                f"{_name(log)} leads and takes its high watermark back, {before} to {high_watermark}"
            )
        if high_watermark > before:
            self._is_sufficient(log)
        self._compare(log, high_watermark)
        if high_watermark > committed.end:
            if not self._leads(log):
                raise InvariantBroken(
                    f"{_name(log)} follows and has the high watermark {high_watermark}, above {committed.end}"
                )
            committed.batches.extend(_between(log.batches, committed.end, high_watermark))
            committed.end = high_watermark
            log.verified = high_watermark
            state = self.world.controller.partition(log.partition)
            for member in state.isr:
                self._has_all(log.partition, member, "is in the ISR")

    def _is_of_the_past(self, log: WatchedLog) -> bool:
        """Whether its broker has not heard yet of the leader that an unclean election made: what such a leader still
        commits, with fetches that were under way, is lost."""
        manager = log.broker.manager
        partition = None if manager is None else manager.online(_key(log))
        return partition is not None and partition.leader_epoch <= self.committed[log.partition].excused_epoch

    def _is_sufficient(self, log: WatchedLog) -> None:
        """A leader commits nothing while fewer replicas than min.insync.replicas are in sync (KIP-966)."""
        manager = log.broker.manager
        partition = None if manager is None else manager.online(_key(log))
        if partition is not None and partition.is_leader:
            count = len(partition.isr_state.committed)
            if count < min(self.world.options.min_isr, self.world.options.replicas):
                raise InvariantBroken(f"{_name(log)} commits with {count} replicas in sync")

    def _leads(self, log: WatchedLog) -> bool:
        manager = log.broker.manager
        partition = None if manager is None else manager.online(_key(log))
        return partition is not None and partition.is_leader

    def _compare(self, log: WatchedLog, end: int) -> None:
        """With what is committed, from where it was compared last."""
        committed = self.committed[log.partition]
        end = min(end, committed.end)
        start, log.verified = log.verified, max(log.verified, end)
        if end <= start:
            return
        own = _between(log.batches, start, end)
        known = _between(committed.batches, start, end)
        if own != known:
            raise InvariantBroken(f"{_name(log)} differs from what is committed, between {start} and {end}")

    def before_truncation(self, log: WatchedLog, offset: int) -> None:
        state = self.world.controller.partition(log.partition)
        log.verified = min(log.verified, offset)
        end = self.committed[log.partition].end
        if offset < min(end, log.log_end_offset) and log.broker.broker_id in state.isr:
            raise InvariantBroken(
                f"{_name(log)} is in the ISR and cuts at {offset}, below the committed end {end}"
            )
        if offset < log.log_end_offset:
            self.world.tally["truncations"] += 1

    def _has_all(self, index: int, broker_id: int, why: str) -> None:
        committed, broker = self.committed[index], self.world.brokers[broker_id]
        if broker.lost_power:
            return  # it leaves the ISR before it is a replica again
        log = broker.logs.get(index)
        if log is None and committed.end == 0:
            return
        if log is None or log.log_end_offset < committed.end:
            end = None if log is None else log.log_end_offset
            raise InvariantBroken(
                f"broker {broker_id} {why} of partition {index} and lacks committed records: its log ends at {end}, "
                f"{committed.end} are committed"
            )
        self._compare(log, committed.end)

    # Metadata

    def metadata_written(self, before: MetadataImage, after: MetadataImage) -> None:
        for index in range(self.world.options.partitions):
            state, old = (image.topics.partition(TOPIC_ID, index) for image in (after, before))
            if state is None or old is None:
                continue
            if state.leader_epoch < old.leader_epoch:
                raise InvariantBroken(f"the leader epoch of partition {index} goes back")
            for member in set(state.isr) - set(old.isr):
                self._has_all(index, member, "joined the ISR")
            if state.leader not in (old.leader, -1):
                self.world.tally["elections"] += 1
                self._has_all(index, state.leader, "was elected")

    def excuse(self, index: int, leader: int) -> None:
        """All that had the records are gone: what the next leader has is the truth from here."""
        committed = self.committed[index]
        log = self.world.brokers[leader].logs.get(index)
        own = [] if log is None else _between(log.batches, 0, log.high_watermark)
        common = 0
        for batch, other in zip(own, committed.batches, strict=False):
            if batch != other:
                break
            common = batch.last_offset + 1
        committed.batches = own
        committed.end = own[-1].last_offset + 1 if own else 0
        committed.latest_told = -1
        committed.excused_epoch = self.world.controller.partition(index).leader_epoch
        self.acknowledged_ends[index] = min(self.acknowledged_ends[index], common)
        for broker in self.world.brokers.values():
            if index in broker.logs:
                broker.logs[index].verified = min(broker.logs[index].verified, common)
        self.world.excused[index] = True
        self.world.clients.forget(index, common)
        self.world.tally["losses excused"] += 1

    # Clients

    def acknowledged(self, broker: SimulatedBroker, index: int, required_offset: int) -> None:
        """A producer with acks=all is about to hear that its records are safe."""
        log = broker.logs[index]
        if self._is_of_the_past(log):
            return
        self.acknowledged_ends[index] = max(self.acknowledged_ends[index], required_offset)
        if self.committed[index].end < required_offset:
            raise InvariantBroken(
                f"{_name(log)}: records up to {required_offset} are acknowledged, {self.committed[index].end} committed"
            )
        self._compare(log, required_offset)
        for member in self.world.controller.partition(index).isr:
            self._has_all(index, member, "is in the ISR")

    def latest_told(self, index: int, offset: int, leader_epoch: int) -> None:
        committed = self.committed[index]
        if leader_epoch <= committed.excused_epoch:
            return
        if offset < committed.latest_told:
            raise InvariantBroken(
                f"a reader of partition {index} was told the latest offset {committed.latest_told}, and then {offset}"
            )
        committed.latest_told = offset

    # Who lags

    def look_at_lag(self) -> None:
        """A follower that does not reach what its leader had long ago may not stay in the ISR of a leader that runs and
        reaches the controller."""
        world, options = self.world, self.world.options
        seen = set()
        for index in range(options.partitions):
            state = world.controller.partition(index)
            leader = world.brokers.get(state.leader)
            partition = leader and leader.manager and leader.manager.online(_key_of(index))
            if leader is None or not partition or partition.leader_epoch != state.leader_epoch:
                continue
            is_well = leader.paused_until_ms <= world.now_ms and not world.links.is_cut(leader.broker_id, 0)
            is_well = is_well and not world.links.is_cut(0, leader.broker_id) and not world.links.weather.loss
            for member in state.isr:
                log = world.brokers[member].logs.get(index)
                end = -1 if log is None else log.log_end_offset
                if not is_well or member == leader.broker_id or end >= partition.log.log_end_offset:
                    continue
                key = (index, state.leader_epoch, leader.life, member)
                seen.add(key)
                begun_ms, target = self.lag_begun.setdefault(
                    key, (world.now_ms, partition.log.log_end_offset)
                )
                if end >= target:
                    self.lag_begun[key] = (world.now_ms, partition.log.log_end_offset)
                    continue
                if world.now_ms - begun_ms > 3 * options.lag_time_ms + 4 * options.timeout_ms:
                    raise InvariantBroken(
                        f"broker {member} lags in partition {index} since {begun_ms} ms and is still in the ISR"
                    )
        self.lag_begun = {key: begun for key, begun in self.lag_begun.items() if key in seen}


def _between(batches: list[StoredBatch], start: int, end: int) -> list[StoredBatch]:
    first = bisect_left(batches, start, key=attrgetter("last_offset"))
    return batches[first : bisect_left(batches, end, key=attrgetter("base_offset"))]


def _key_of(index: int) -> TopicPartition:
    return TopicPartition(TOPIC, index)


def _key(log: WatchedLog) -> TopicPartition:
    return TopicPartition(TOPIC, log.partition)


def _name(log: WatchedLog) -> str:
    return f"broker {log.broker.broker_id}'s log of partition {log.partition}"
