"""A broker that coordinates transactions and groups, as its handlers see it: logs in memory, time by hand."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kquorum.broker.apis.init_producer_id import handle_init_producer_id
from kquorum.broker.apis.write_txn_markers import write_markers
from kquorum.broker.coordinators.partitioning import TRANSACTIONS_TOPIC, partition_of
from kquorum.broker.log.partition_log import AppendOrigin
from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.replica.partition import Partition, TopicPartition, Wake
from kquorum.broker.transactions.coordinator import FEATURE, TransactionCoordinator
from kquorum.broker.transactions.settings import TransactionSettings
from kquorum.broker.transactions.shard import TransactionShard
from kquorum.broker.transactions.transaction import Transaction, transaction_of
from kquorum.network.requests import RequestContext
from kquorum.wire.data_batch import data_headers, read_data_records, write_data_batch
from kquorum.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kquorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kquorum.wire.messages.allocate_producer_ids import AllocateProducerIdsResponse
from kquorum.wire.messages.end_txn import EndTxnRequest
from kquorum.wire.messages.init_producer_id import InitProducerIdRequest
from kquorum.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kquorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kquorum.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kquorum.wire.metadata_records.features import FeatureLevelRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import RequestHeader
from kquorum.wire.record_parsing import Record
from kquorum.wire.transaction_markers import TransactionMarker, decode_transaction_marker
from kquorum.wire.transaction_records import (
    decode_transaction_key,
    decode_transaction_value,
    encode_transaction_key,
    encode_transaction_value,
)
from tests.support.api_calls import as_read, read_answer
from tests.support.broker.data_world import BROKER, ORDERS, Asked
from tests.support.broker.disk_logs import data
from tests.support.broker.group_world import GROUP, GroupWorld
from tests.support.images import LISTENER, after, partition_record, topic_id, topic_records

TXN_SETTINGS = TransactionSettings(
    max_timeout_ms=900_000,
    abort_check_ms=10_000,
    expiration_ms=7 * 24 * 3_600_000,
    expiration_check_ms=3_600_000,
    load_buffer_bytes=1_000,
    add_retry_ms=20,
    add_retry_max_ms=100,
)
MINE = "mine"
TRANSACTIONS_ID = 8
TIMEOUT_MS = 60_000
FIRST_PRODUCER = 4_000
PLACE = TopicPartition(ORDERS, 0)


class TransactionWorld(GroupWorld):
    """This broker leads both partitions of `__transaction_state`; broker 2 follows when the test says so, with
    `txn_follower`. The cluster's transaction.version is 2 unless the test says otherwise."""

    def __init__(self, *, version: int = 2, txn_follower: bool = False, **others: Any) -> None:
        super().__init__(**others)
        self.txn_settings = TXN_SETTINGS
        self.held: list[tuple[WriteTxnMarkersRequest, Callable[[int, WriteTxnMarkersResponse], None]]] = []
        self.holds_markers = False
        self.has_orders_follower = True
        self.allot(FIRST_PRODUCER)
        self.transactions = self.new_transactions()
        replicas = (BROKER, 2) if txn_follower else (BROKER,)
        self.change(
            FeatureLevelRecord(name=FEATURE, feature_level=version),
            *topic_records(
                TRANSACTIONS_ID,
                TRANSACTIONS_TOPIC,
                partition_record(TRANSACTIONS_ID, 0, replicas),
                partition_record(TRANSACTIONS_ID, 1, replicas),
            ),
        )
        for log in self.logs.logs.values():
            log.producers.verifies_transactions = True

    def allot(self, start: int, length: int = 1_000) -> None:
        ids = self.plane.producer_ids
        ids.has_one()
        assert ids.maybe_next_request(self.now_ms, 7) is not None
        ids.handle_reply(
            self.now_ms, AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=length)
        )

    def new_transactions(self) -> TransactionCoordinator:
        made = TransactionCoordinator(
            BROKER,
            self,
            lambda: self.txn_settings,
            self.plane.producer_ids.take,
            lambda: 2,
            self._write_markers,
            lambda: self.now_ms,
        )
        made.begin(self.image)
        self.services = replace(self.services, transactions=made)
        return made

    def _write_markers(
        self, request: WriteTxnMarkersRequest, done: Callable[[int, WriteTxnMarkersResponse], None]
    ) -> None:
        if self.holds_markers:
            self.held.append((request, done))
            return
        write_markers(self.plane, self.groups, request, timeout_ms=30_000, done=done, end=lambda: None)

    # What the adapter does

    def settle(self) -> None:
        transactions = getattr(self, "transactions", None)
        while True:
            self.replicas.submit_isr_changes()
            while woken := self.replicas.outbox.take_woken():
                self.plane.waits.wake(woken)
                self.plane.waits.work(lambda: self.now_ms)
                if (groups := getattr(self, "groups", None)) is not None:
                    groups.handle_woken(self.now_ms, woken)
                if transactions is not None:
                    transactions.handle_woken(self.now_ms, woken)
            while (groups := getattr(self, "groups", None)) is not None and groups.load_some(self.now_ms):
                pass
            while transactions is not None and transactions.load_some(self.now_ms):
                pass
            is_moved = transactions is not None and transactions.take_turn(self.now_ms)
            if getattr(self, "has_orders_follower", False):
                is_moved |= self._follow_orders()
            if not is_moved:
                return

    def _follow_orders(self) -> bool:
        """Broker 2 follows the partitions of the orders that are led here at once."""
        is_behind = False
        for index in (0, 1):
            partition = self.online(TopicPartition(ORDERS, index))
            if partition is not None and partition.log.high_watermark < partition.log.log_end_offset:
                partition.read_as_follower(
                    self.now_ms, 2, partition.log.log_end_offset, max_bytes=1_000, log_start_offset=0
                )
                is_behind = True
        return is_behind

    def change(self, *records: Any) -> None:
        transactions = getattr(self, "transactions", None)
        before = self.image
        super().change(*records)
        if transactions is not None:
            delta, _ = after(before, *records)
            transactions.handle_image(delta, self.image)
            self.settle()

    def pass_time(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while (due_ms := self.transactions.next_deadline_ms()) is not None and due_ms <= end_ms:
            super().pass_time(max(due_ms - self.now_ms, 0))
            self.transactions.expire(self.now_ms)
            self.settle()
        super().pass_time(end_ms - self.now_ms)
        self.transactions.expire(self.now_ms)
        self.settle()

    def release_markers(self) -> None:
        self.holds_markers = False
        held, self.held = self.held, []
        for request, done in held:
            self._write_markers(request, done)
        self.settle()

    # The transactional id's partition

    def state_partition(self, transactional_id: str = MINE) -> Partition:
        found = self.replicas.online(TopicPartition(TRANSACTIONS_TOPIC, partition_of(transactional_id, 2)))
        assert found is not None
        return found

    def txn_shard(self, transactional_id: str = MINE) -> TransactionShard:
        found = self.transactions.shard_of(transactional_id)
        assert isinstance(found, TransactionShard), found
        return found

    def transaction(self, transactional_id: str = MINE) -> Transaction:
        found = self.txn_shard(transactional_id).find(transactional_id)
        assert found is not None
        return found

    def follow_state(self, transactional_id: str = MINE) -> None:
        """Broker 2 has all that is written of the transactional id's partition."""
        partition = self.state_partition(transactional_id)
        partition.read_as_follower(
            self.now_ms, 2, partition.log.log_end_offset, max_bytes=1_000_000, log_start_offset=0
        )
        self.settle()

    def elect_state(self, leader: int, transactional_id: str = MINE) -> None:
        index = partition_of(transactional_id, 2)
        self.change(
            PartitionChangeRecord(partition_id=index, topic_id=topic_id(TRANSACTIONS_ID), leader=leader)
        )

    def fail_over_transactions(self) -> None:
        """Another process takes over the log as it is."""
        self.transactions.close()
        self.transactions = self.new_transactions()
        for index in (0, 1):
            self.transactions.handle_woken(
                self.now_ms, {TopicPartition(TRANSACTIONS_TOPIC, index): Wake.ROLE}
            )
        self.settle()

    def put(self, transaction: Transaction, transactional_id: str = MINE, version: int = 1) -> None:
        """As a former coordinator has written it, with a producer id of its own."""
        self.plane.producer_ids.take()
        record = Record(
            0,
            self.now_ms,
            encode_transaction_key(transactional_id),
            encode_transaction_value(transaction.record(), version),
        )
        self.state_partition(transactional_id).append(
            self.now_ms, write_data_batch([record]), required_acks=1, origin=AppendOrigin.COORDINATOR
        )
        self.fail_over_transactions()

    def logged(self, transactional_id: str = MINE) -> list[Transaction | None]:
        """All records of the id."""
        found: list[Transaction | None] = []
        for record in self._records(self.state_partition(transactional_id)):
            if record.key is not None and decode_transaction_key(record.key) == transactional_id:
                value = record.value
                found.append(None if value is None else transaction_of(decode_transaction_value(value)))
        return found

    def markers_in(
        self, topic_partition: TopicPartition = PLACE
    ) -> list[tuple[ProducerEpoch, TransactionMarker]]:
        partition = self.replicas.online(topic_partition)
        assert partition is not None
        log: Any = partition.log
        found = []
        for batch in log.batches:
            for position, header in data_headers(batch.data):
                if header.is_control:
                    [record] = read_data_records(batch.data, position, header)
                    marker = decode_transaction_marker(record.key, record.value)
                    found.append((ProducerEpoch(header.producer_id, header.producer_epoch), marker))
        return found

    @staticmethod
    def _records(partition: Partition) -> list[Record]:
        log: Any = partition.log
        found: list[Record] = []
        for batch in log.batches:
            for position, header in data_headers(batch.data):
                found += read_data_records(batch.data, position, header)
        return found

    # Requests

    def init(
        self,
        transactional_id: str | None = MINE,
        *,
        timeout_ms: int = TIMEOUT_MS,
        expected: ProducerEpoch | None = None,
        version: int = 5,
    ) -> Any:
        """The answer. The handler waits on asyncio, and is done when this broker is the only replica."""
        fields = (
            {}
            if expected is None
            else {"producer_id": expected.producer_id, "producer_epoch": expected.epoch}
        )
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=timeout_ms, **fields
        )
        header = RequestHeader(ApiKey.INIT_PRODUCER_ID, version, 1, "a client")
        context = RequestContext(1, "127.0.0.1", LISTENER, header)
        body = as_read(ApiKey.INIT_PRODUCER_ID, version, request)
        answer = asyncio.run(handle_init_producer_id(context, body, self.services))
        self.settle()
        return read_answer(ApiKey.INIT_PRODUCER_ID, version, answer)

    def producer(self, transactional_id: str = MINE, **fields: Any) -> ProducerEpoch:
        """One that has the id."""
        answer = self.init(transactional_id, **fields)
        assert answer.error_code.name == "none", answer
        return ProducerEpoch(answer.producer_id, answer.producer_epoch)

    def add(
        self,
        producer: ProducerEpoch,
        *places: TopicPartition,
        transactional_id: str = MINE,
        version: int = 3,
    ) -> Asked:
        """As a client; the answer's errors with `errors_of`."""
        return self.ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=producer.producer_id,
                v3_and_below_producer_epoch=producer.epoch,
                v3_and_below_topics=topics_of(places or (PLACE,)),
            ),
            version,
        )

    def add_as_broker(
        self,
        producer: ProducerEpoch,
        *places: TopicPartition,
        transactional_id: str = MINE,
        verify_only: bool = False,
        version: int = 5,
    ) -> Asked:
        return self.ask(
            AddPartitionsToTxnRequest(
                transactions=(
                    AddPartitionsToTxnTransaction(
                        transactional_id=transactional_id,
                        producer_id=producer.producer_id,
                        producer_epoch=producer.epoch,
                        verify_only=verify_only,
                        topics=topics_of(places or (PLACE,)),
                    ),
                )
            ),
            version,
        )

    def ask_to_add_offsets(
        self,
        producer: ProducerEpoch,
        group_id: str = GROUP,
        *,
        transactional_id: str = MINE,
        version: int = 4,
    ) -> Asked:
        return self.ask(
            AddOffsetsToTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                group_id=group_id,
            ),
            version,
        )

    def add_offsets(self, producer: ProducerEpoch, group_id: str = GROUP, **fields: Any) -> str:
        """The error."""
        name: str = self.ask_to_add_offsets(producer, group_id, **fields).answer.error_code.name
        return name

    def end(
        self,
        producer: ProducerEpoch,
        *,
        commit: bool = True,
        transactional_id: str = MINE,
        version: int = 5,
    ) -> Asked:
        return self.ask(
            EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                committed=commit,
            ),
            version,
        )

    def produce(
        self,
        producer: ProducerEpoch,
        *,
        sequence: int = 0,
        index: int = 0,
        transactional_id: str | None = MINE,
        version: int = 12,
        acks: int = 1,
        value: str = "a",
        topic: str = ORDERS,
    ) -> Asked:
        records = data(
            value,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        return self.ask(
            ProduceRequest(
                transactional_id=transactional_id,
                acks=acks,
                timeout_ms=1_000,
                topic_data=(
                    TopicProduceData(
                        name=topic, partition_data=(PartitionProduceData(index=index, records=records),)
                    ),
                ),
            ),
            version,
        )

    def commit_in_transaction(
        self,
        producer: ProducerEpoch,
        offset: int,
        *,
        group_id: str = GROUP,
        transactional_id: str = MINE,
        version: int = 5,
        **fields: Any,
    ) -> Asked:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        return self.ask(
            TxnOffsetCommitRequest(
                transactional_id=transactional_id,
                group_id=group_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                topics=(TxnOffsetCommitRequestTopic(name=ORDERS, partitions=(partition,)),),
                **fields,
            ),
            version,
        )


def topics_of(places: Any) -> tuple[AddPartitionsToTxnTopic, ...]:
    topics: dict[str, list[int]] = {}
    for each in places:
        topics.setdefault(each.topic, []).append(each.partition)
    return tuple(AddPartitionsToTxnTopic(name=name, partitions=tuple(ids)) for name, ids in topics.items())


def errors_of(answer: Any) -> Mapping[TopicPartition, str]:
    """Of AddPartitionsToTxn, in any version."""
    results = list(answer.results_by_topic_v3_and_below)
    for transaction in answer.results_by_transaction:
        results += transaction.topic_results
    return {
        TopicPartition(topic.name, each.partition_index): each.partition_error_code.name
        for topic in results
        for each in topic.results_by_partition
    }


def error_of_produce(answer: Any) -> str:
    [topic] = answer.responses
    [partition] = topic.partition_responses
    name: str = partition.error_code.name
    return name


def error_of_offsets(answer: Any) -> str:
    [topic] = answer.topics
    [partition] = topic.partitions
    name: str = partition.error_code.name
    return name
