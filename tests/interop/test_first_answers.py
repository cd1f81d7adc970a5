"""What clients get from a cluster that holds nothing yet, and their first transaction.

The libraries are librdkafka and kafka-python. `test_record_clients` and `test_transaction_clients` have more of records
and transactions; aiokafka's are in `test_aiokafka`, those of other languages in `test_foreign_clients`.
"""

from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from kquorum.cli.processes import wait_until
from tests.support.cluster import Cluster
from tests.support.served_topics import await_served

pytestmark = pytest.mark.interop

WAIT_S = 30.0
TOPIC = "orders"
# Two brokers cannot hold the three copies that these topics have otherwise.
ONE_COPY = {
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Cluster(tmp_path_factory.mktemp("refused"), controllers=1, brokers=2, overrides=ONE_COPY) as running:
        running.start()
        address = running.address(running.broker_ids[0])
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(WAIT_S)
        await_served(admin, TOPIC, 2, WAIT_S)
        yield address


class TestLibrdkafka:
    def test_watermarks_and_offsets_are_those_of_an_empty_log(self, address: str) -> None:
        consumer = Consumer({"bootstrap.servers": address, "group.id": "mine"})
        where = ConfluentPartition(TOPIC, 0, OFFSET_BEGINNING)
        try:
            assert consumer.get_watermark_offsets(where, timeout=WAIT_S) == (0, 0)
        finally:
            consumer.close()
        admin = AdminClient({"bootstrap.servers": address})
        [told] = admin.list_offsets({ConfluentPartition(TOPIC, 1): OffsetSpec.latest()}).values()
        assert told.result(WAIT_S).offset == 0

    def test_groups_are_listed_and_none_is_there(self, address: str) -> None:
        admin = AdminClient({"bootstrap.servers": address})
        # The client above had the topic of offsets made, whose partitions each leader loads.
        assert wait_until(lambda: not admin.list_consumer_groups().result(WAIT_S).errors, WAIT_S)
        assert admin.list_consumer_groups().result(WAIT_S).valid == []


class TestKafkaPython:
    def test_groups_and_transactions_are_listed_and_none_is_there(self, address: str) -> None:
        admin = KafkaAdminClient(bootstrap_servers=address)
        try:
            assert admin.list_groups() == []
            assert set(map(str, admin.list_transactions().values())) == {"[]"}
            [described] = admin.describe_producers([TopicPartition(TOPIC, 0)]).values()
            assert described is not None
        finally:
            admin.close()

    def test_a_reader_of_what_is_committed_sees_no_aborted_record(self, address: str) -> None:
        producer = KafkaProducer(bootstrap_servers=address, transactional_id="mine")
        try:
            producer.init_transactions()
            for value, is_committed in ((b"aborted", False), (b"committed", True)):
                producer.begin_transaction()
                producer.send(TOPIC, value, partition=1).get(WAIT_S)
                if is_committed:
                    producer.commit_transaction()
                else:
                    producer.abort_transaction()
        finally:
            producer.close(timeout=1)
        consumer = KafkaConsumer(
            bootstrap_servers=address,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            consumer_timeout_ms=round(WAIT_S * 1000),
        )
        try:
            consumer.assign([TopicPartition(TOPIC, 1)])
            assert next(consumer).value == b"committed"
        finally:
            consumer.close()
