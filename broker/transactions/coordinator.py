"""The transactions of this broker: what all shards of `__transaction_state` share, the markers on their way to the
partitions, and the questions to other coordinators.

Sans-IO. The adapter sends what `markers` and `questions` have for other brokers. What they have for this broker is
done in `take_turn`, without a connection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, Never

from kquorum.broker.coordinators.coordinator import Coordinator
from kquorum.broker.coordinators.partitioning import TRANSACTIONS_TOPIC
from kquorum.broker.coordinators.timers import Timers
from kquorum.broker.data_plane import HostedPartitions, NoPartitions
from kquorum.broker.replica.partition import Partition, TopicPartition, Wake
from kquorum.broker.transaction_figures import TransactionFigures
from kquorum.broker.transactions.additions import Addition
from kquorum.broker.transactions.guarded_appends import GuardedAppends
from kquorum.broker.transactions.markers import MarkerQueue
from kquorum.broker.transactions.peers import NOWHERE, leader_of
from kquorum.broker.transactions.settings import TransactionSettings
from kquorum.broker.transactions.shard import TransactionShard
from kquorum.broker.transactions.transaction import EPOCH_BUMP, NewProducerId
from kquorum.broker.transactions.verification import Question, QuestionQueue
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

FEATURE: Final = "transaction.version"

WriteMarkers = Callable[[WriteTxnMarkersRequest, Callable[[int, WriteTxnMarkersResponse], None]], None]
"""Writes markers into partitions that this broker leads; the answer comes, with the time, when they are replicated or
after a while."""


class TransactionCoordinator(Coordinator[TransactionShard]):
    TOPIC = TRANSACTIONS_TOPIC

    def __init__(
        self,
        broker_id: int,
        partitions: HostedPartitions,
        settings: Callable[[], TransactionSettings],
        new_producer_id: NewProducerId,
        default_partitions: Callable[[], int],
        write_markers: WriteMarkers,
        now_ms: Callable[[], int],
    ) -> None:
        """`default_partitions` of the topic, as long as it does not exist."""
        super().__init__(partitions, default_partitions)
        self._broker_id = broker_id
        self._settings = settings
        self._new_producer_id = new_producer_id
        self._write_markers = write_markers
        self._image = MetadataImage.empty()
        self._leaders: dict[TopicPartition, int | None] = {}
        self.markers = MarkerQueue(self.leader_of)
        self.questions = QuestionQueue()
        self.timers = Timers()
        self.now_ms = now_ms
        self.appends = GuardedAppends(self, now_ms)

    @property
    def settings(self) -> TransactionSettings:
        return self._settings()

    @property
    def version(self) -> int:
        """The cluster's transaction.version."""
        return self._image.features.finalized.get(FEATURE, 0)

    # What happens to the partitions and topics

    def new_shard(self, partition: Partition) -> TransactionShard:
        return TransactionShard(
            partition,
            self._settings,
            lambda: self.version,
            self._new_producer_id,
            self.markers,
            self.earliest,
        )

    def handle_woken(self, now_ms: int, woken: Mapping[TopicPartition, Wake]) -> None:
        super().handle_woken(now_ms, woken)
        self.appends.handle_woken(woken.keys())

    def begin(self, image: MetadataImage) -> None:
        """Before the first partition is led."""
        self._image = image
        self._leaders.clear()
        self.learn_count(image)

    def handle_image(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._image = image
        self._leaders.clear()
        self.learn_count(image, delta)

    def leader_of(self, partition: TopicPartition) -> int | None:
        """The broker that leads it, NOWHERE, or None where there is no such partition."""
        try:
            return self._leaders[partition]
        except KeyError:
            found = leader_of(self._image, partition)
            # Clients name partitions that are not there, as many as they like.
            if found is not None:
                self._leaders[partition] = found
            return found

    # Other brokers, and this one

    def ask(self, now_ms: int, question: Question) -> None:
        """Whether partitions that this broker leads are in a transaction, or to have them added."""
        index = self.partition_of(question.transactional_id)
        coordinator = self.leader_of(TopicPartition(TRANSACTIONS_TOPIC, index))
        if coordinator is None or coordinator == NOWHERE:
            question.answer_all(ErrorCode.coordinator_not_available)
        elif coordinator != self._broker_id:
            self.questions.add(coordinator, question)
        else:
            self._answer(now_ms, question)

    def _answer(self, now_ms: int, question: Question) -> None:
        shard = self.shard_of(question.transactional_id)
        if isinstance(shard, ErrorCode):
            question.answer_all(shard)
        elif question.mode.adds:

            def added(error: ErrorCode) -> None:
                if error is ErrorCode.none:
                    question.answer({})
                else:
                    question.answer_all(error)

            Addition(
                self,
                question.transactional_id,
                question.producer,
                question.partitions,
                version=EPOCH_BUMP,
                until_ms=now_ms + self.settings.add_retry_max_ms,
                done=added,
            ).begin()
        else:
            errors = shard.verify_partitions(
                question.transactional_id, question.producer, question.partitions
            )
            question.answer({each: error for each, error in errors.items() if error is not ErrorCode.none})

    def take_turn(self, now_ms: int) -> bool:
        """Write the markers for partitions that this broker leads itself; whether there were any."""
        if self._broker_id not in self.markers.destinations(now_ms):
            return False
        request = self.markers.next_request(now_ms, self._broker_id)
        if request is None:
            return False

        def written(then_ms: int, response: WriteTxnMarkersResponse) -> None:
            self.markers.handle_reply(then_ms, self._broker_id, response)

        self._write_markers(request, written)
        return True

    def figures(self) -> TransactionFigures:
        shards, now_ms = self.active(), self.now_ms()
        return TransactionFigures(
            transactional_ids=sum(shard.count for shard in shards),
            ongoing=sum(shard.open_count for shard in shards),
            ending=len(self.markers),
            without_leader=self.markers.without_leader,
            aborted=sum(shard.aborted_by_timeout for shard in shards),
            not_verified=self.questions.failures,
            late_partitions=sum(
                each.is_leader and each.log.has_late_transaction(now_ms)
                for each in self._partitions.all_online()
            ),
            partitions=Counter(shard.state.name.lower() for shard in self.shards.values()),
        )

    # Time

    def expire(self, now_ms: int) -> None:
        super().expire(now_ms)
        self.timers.fire(now_ms)
        self.appends.expire(now_ms)

    def next_deadline_ms(self) -> int | None:
        deadlines = (
            super().next_deadline_ms(),
            self.timers.next_deadline_ms(),
            self.markers.next_deadline_ms(),
            self.appends.next_deadline_ms(),
        )
        return min((each for each in deadlines if each is not None), default=None)

    def close(self) -> None:
        super().close()
        self.timers.clear()
        self.appends.close()


def transactions_without_logs() -> TransactionCoordinator:
    """Of a broker that is made without data logs: each transaction is another broker's."""
    return TransactionCoordinator(
        -1, NoPartitions(), lambda: _NO_SETTINGS, _no_shard, lambda: 1, _no_markers, lambda: 0
    )


# No transaction may last for any time.
_NO_SETTINGS: Final = TransactionSettings(
    max_timeout_ms=0,
    abort_check_ms=0,
    expiration_ms=0,
    expiration_check_ms=0,
    load_buffer_bytes=0,
    add_retry_ms=0,
    add_retry_max_ms=0,
)


def _no_shard() -> Never:
    raise AssertionError("there is no shard without partitions")


def _no_markers(_request: object, _done: object) -> Never:
    raise AssertionError("there is no marker without partitions")
