"""A model of the controller: one process that never fails, with Kafka's rules for what partitions and brokers may do.

Its decisions are records of the metadata log, which brokers apply late, each at its own pace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.partition_state import NO_LEADER, PartitionState
from kquorum.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RequestPartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.cluster import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from kquorum.wire.schema import MetadataRecord

if TYPE_CHECKING:
    from tests.simulation.partitions.world import PartitionWorld

CONTROLLER = 0
TOPIC = "orders"
TOPIC_ID = UUID(int=(1 << 80) + 1)
LISTENER = "PLAINTEXT"
UNCLEAN = 1


def directory_of(broker_id: int) -> UUID:
    return UUID(int=(1 << 90) + broker_id)


def incarnation_of(broker_id: int, life: int) -> UUID:
    return UUID(int=(broker_id << 100) + life)


def image_after(image: MetadataImage, records: list[MetadataRecord]) -> tuple[MetadataDelta, MetadataImage]:
    delta = MetadataDelta(image)
    first = image.end_offset
    for offset, record in enumerate(records, first):
        delta.replay(record, offset)
    last = Provenance(
        last_contained_offset=first + len(records) - 1, last_contained_epoch=1, timestamp_ms=1000
    )
    return delta, delta.apply(last)


class Controller:
    def __init__(self, world: PartitionWorld) -> None:
        self.world = world
        self.log: list[MetadataRecord] = []
        self.image = MetadataImage.empty()
        self.heard_ms: dict[int, int] = {}
        self.stops_at: dict[int, int] = {}
        """Up to where the others must have read the metadata before a broker may stop."""
        world.at(1, self._look)

    # Reads

    @property
    def indexes(self) -> range:
        """Of the partitions that exist."""
        return range(self.world.options.partitions if self.image.topics.by_id else 0)

    def partition(self, index: int) -> PartitionState:
        state = self.image.topics.partition(TOPIC_ID, index)
        assert state is not None
        return state

    def is_active(self, broker_id: int) -> bool:
        return self.image.cluster.is_active(broker_id)

    def epoch_of(self, broker_id: int) -> int:
        broker = self.image.cluster.brokers.get(broker_id)
        return -1 if broker is None else broker.epoch

    # Writes

    def write(self, *records: MetadataRecord) -> None:
        before = self.image
        self.log.extend(records)
        _, self.image = image_after(before, list(records))
        self.world.checks.metadata_written(before, self.image)
        for broker in self.world.brokers.values():
            broker.send_metadata()

    def create_topic(self) -> None:
        options = self.world.options
        brokers = sorted(self.world.brokers)
        records: list[MetadataRecord] = [TopicRecord(name=TOPIC, topic_id=TOPIC_ID)]
        for index in range(options.partitions):
            replicas = tuple(brokers[(index + each) % len(brokers)] for each in range(options.replicas))
            records.append(
                PartitionRecord(
                    partition_id=index,
                    topic_id=TOPIC_ID,
                    replicas=replicas,
                    isr=replicas,
                    leader=replicas[0],
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=tuple(directory_of(replica) for replica in replicas),
                )
            )
        self.write(*records)

    def _change(self, index: int, **changes: Any) -> None:
        changes |= self._completion(self.partition(index), **changes)
        self.write(PartitionChangeRecord(partition_id=index, topic_id=TOPIC_ID, **changes))

    def reassign(self, index: int, target: tuple[int, ...]) -> None:
        """The partition gets the replicas of `target`, and loses the others when the new ones are in sync."""
        state = self.partition(index)
        if state.adding_replicas or state.removing_replicas or set(target) == set(state.replicas):
            return
        self.world.note("controller: partition %d moves from %s to %s", index, state.replicas, target)
        self.world.tally["reassignments begun"] += 1
        removing = tuple(each for each in state.replicas if each not in target)
        self._change(
            index,
            replicas=target + removing,
            directories=tuple(directory_of(each) for each in target + removing),
            adding_replicas=tuple(each for each in target if each not in state.replicas),
            removing_replicas=removing,
        )

    def _completion(
        self,
        state: PartitionState,
        isr: tuple[int, ...] | None = None,
        leader: int | None = None,
        **_others: object,
    ) -> dict[str, Any]:
        """What else changes where this change ends a reassignment. The leader epoch grows in any case, so that
        replicas that were removed are not fetched from, nor counted, any more."""
        kept = tuple(
            each for each in (state.isr if isr is None else isr) if each not in state.removing_replicas
        )
        if not state.removing_replicas or not set(state.adding_replicas) <= set(kept):
            return {}
        leaders = [state.leader if leader is None else leader, *kept]
        able = [each for each in leaders if each in kept and self.is_active(each)]
        if not able:
            return {}
        self.world.tally["reassignments done"] += 1
        replicas = tuple(each for each in state.replicas if each not in state.removing_replicas)
        return {
            "isr": kept,
            "leader": able[0],
            "replicas": replicas,
            "directories": tuple(directory_of(each) for each in replicas),
            "adding_replicas": (),
            "removing_replicas": (),
        }

    def elect(self, index: int, leader: int) -> None:
        """A preferred leader election, say: any member of the ISR may be asked to lead."""
        state = self.partition(index)
        if leader in state.isr and leader != state.leader and self.is_active(leader):
            self.world.note("controller: partition %d is moved to leader %d", index, leader)
            self._change(index, leader=leader)

    def elect_unclean(self, index: int) -> None:
        """Where no member of the ISR runs, another replica may lead, and records are lost."""
        state = self.partition(index)
        if state.leader != NO_LEADER or any(self.world.brokers[each].is_running for each in state.isr):
            return
        others = [each for each in state.replicas if each not in state.isr and self.is_active(each)]
        if others:
            self.world.note("controller: partition %d is led uncleanly by %d", index, others[0])
            self.world.tally["unclean elections"] += 1
            self.world.checks.excuse(index, others[0])
            self._change(index, leader=others[0], isr=(others[0],), leader_recovery_state=UNCLEAN)

    # Brokers

    def register(self, broker_id: int, incarnation_id: UUID, *, clean: bool) -> int:
        """Returns the broker epoch. What the former process was part of, it leaves (KIP-841, KIP-966)."""
        known = self.image.cluster.brokers.get(broker_id)
        if known is not None and known.incarnation_id == incarnation_id:
            return known.epoch  # the request came twice
        self._leave_isrs(broker_id, clean=clean)
        epoch = len(self.log)
        self.write(
            RegisterBrokerRecord(
                broker_id=broker_id,
                incarnation_id=incarnation_id,
                broker_epoch=epoch,
                end_points=(
                    BrokerEndpoint(name=LISTENER, host=f"b{broker_id}", port=9000, security_protocol=0),
                ),
                fenced=True,
                log_dirs=(directory_of(broker_id),),
            )
        )
        self.heard_ms[broker_id] = self.world.now_ms
        return epoch

    def heartbeat(
        self, broker_id: int, epoch: int, applied: int, *, wants_to_stop: bool
    ) -> tuple[ErrorCode, bool]:
        """The second is whether the broker may stop now."""
        broker = self.image.cluster.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            return ErrorCode.stale_broker_epoch, False
        self.heard_ms[broker_id] = self.world.now_ms
        if wants_to_stop:
            return ErrorCode.none, self._lets_stop(broker_id, epoch)
        if broker.fenced and applied > epoch:
            self.world.note("controller: broker %d is unfenced", broker_id)
            self.write(BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=-1))
            for index in self.indexes:
                state = self.partition(index)
                if state.leader == NO_LEADER and broker_id in state.isr:
                    self._change(index, leader=broker_id)
        return ErrorCode.none, False

    def _lets_stop(self, broker_id: int, epoch: int) -> bool:
        """A controlled shutdown: others lead first, and are known to all that are active to lead."""
        broker = self.image.cluster.brokers[broker_id]
        if broker.fenced:
            return True
        if not broker.in_controlled_shutdown:
            self.world.note("controller: broker %d shuts down", broker_id)
            self.write(
                BrokerRegistrationChangeRecord(
                    broker_id=broker_id, broker_epoch=epoch, in_controlled_shutdown=1
                )
            )
            self._leave_isrs(broker_id, clean=True)
            self.stops_at[broker_id] = len(self.log)
        known = [self.world.brokers[each].applied for each in self.world.brokers if self.is_active(each)]
        if min(known, default=len(self.log)) < self.stops_at[broker_id]:
            return False
        self.write(BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=1))
        self.world.tally["controlled shutdowns"] += 1
        return True

    def _look(self) -> None:
        """Sessions that ended."""
        self.world.at(self.world.options.session_ms // 4, self._look)
        for broker_id, broker in sorted(self.image.cluster.brokers.items()):
            silent_ms = self.world.now_ms - self.heard_ms[broker_id]
            if not broker.fenced and silent_ms > self.world.options.session_ms:
                self.world.note("controller: broker %d is fenced", broker_id)
                self.world.tally["fenced"] += 1
                self.write(
                    BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=1)
                )
                self._leave_isrs(broker_id, clean=True)

    def _leave_isrs(self, broker_id: int, *, clean: bool) -> None:
        for index in self.indexes:
            state = self.partition(index)
            if broker_id not in state.isr:
                continue
            others = tuple(each for each in state.isr if each != broker_id)
            if not others:
                if not clean:
                    self.world.checks.excuse(index, broker_id)
                if state.leader != NO_LEADER:
                    self._change(index, leader=NO_LEADER)
            elif state.leader == broker_id:
                active = [each for each in others if self.is_active(each)]
                self._change(index, isr=others, leader=active[0] if active else NO_LEADER)
            else:
                self._change(index, isr=others)

    # AlterPartition

    def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        if self.epoch_of(request.broker_id) != request.broker_epoch:
            return AlterPartitionResponse(error_code=ErrorCode.stale_broker_epoch)
        answers = [
            self._alter(request.broker_id, asked) for topic in request.topics for asked in topic.partitions
        ]
        return AlterPartitionResponse(
            topics=(ResponseTopicData(topic_id=TOPIC_ID, partitions=tuple(answers)),)
        )

    def _alter(self, broker_id: int, asked: RequestPartitionData) -> ResponsePartitionData:
        index = asked.partition_index
        error = self._refusal(broker_id, asked, self.partition(index))
        if error is not ErrorCode.none:
            self.world.tally[f"ISR changes refused: {error.name}"] += 1
            return ResponsePartitionData(partition_index=index, error_code=error)
        isr = tuple(member.broker_id for member in asked.new_isr_with_epochs)
        self.world.note("controller: the ISR of partition %d is %s", index, isr)
        self.world.tally["ISR changes"] += 1
        self._change(index, isr=isr, leader_recovery_state=asked.leader_recovery_state)
        state = self.partition(index)
        if state.leader != broker_id:
            return ResponsePartitionData(partition_index=index, error_code=ErrorCode.new_leader_elected)
        return ResponsePartitionData(
            partition_index=index,
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            leader_recovery_state=state.leader_recovery_state,
            partition_epoch=state.partition_epoch,
        )

    def _refusal(self, broker_id: int, asked: RequestPartitionData, state: PartitionState) -> ErrorCode:
        if asked.leader_epoch < state.leader_epoch:
            return ErrorCode.fenced_leader_epoch
        if broker_id != state.leader:
            return ErrorCode.invalid_request
        if asked.partition_epoch < state.partition_epoch:
            return ErrorCode.invalid_update_version
        assert asked.leader_epoch == state.leader_epoch
        assert asked.partition_epoch == state.partition_epoch
        members = {member.broker_id: member.broker_epoch for member in asked.new_isr_with_epochs}
        if broker_id not in members or not members.keys() <= set(state.replicas):
            return ErrorCode.invalid_request
        for member, epoch in members.items():
            if not self.is_active(member) or (epoch != -1 and epoch != self.epoch_of(member)):
                return ErrorCode.ineligible_replica
        return ErrorCode.none
