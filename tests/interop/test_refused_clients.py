"""Members of groups of the consumer protocol (KIP-848) and transactional producers hear at once, and clearly, that
there are none of these yet.

The libraries are librdkafka and kafka-python. `test_record_clients` has what works.

aiokafka's are in `test_aiokafka`, those of other languages in `test_foreign_clients`.
"""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka import errors as kafka_errors

from kquorum.cli.processes import wait_until
from tests.support.cluster import Cluster

pytestmark = pytest.mark.interop

WAIT_S = 30.0
# Below every time-out of these libraries.
AT_ONCE_S = 8.0
TOPIC = "orders"
# Two brokers cannot hold the three copies that the topic of offsets has otherwise.
ONE_COPY = {"offsets.topic.replication.factor": 1}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Cluster(tmp_path_factory.mktemp("refused"), controllers=1, brokers=2, overrides=ONE_COPY) as running:
        running.start()
        address = running.address(running.broker_ids[0])
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(WAIT_S)
        assert wait_until(lambda: TOPIC in admin.list_topics(timeout=WAIT_S).topics, WAIT_S)
        yield address


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    began_s = time.monotonic()
    yield
    assert time.monotonic() - began_s < AT_ONCE_S


class TestLibrdkafka:
    def test_a_transactional_producer(self, address: str) -> None:
        producer = Producer({"bootstrap.servers": address, "transactional.id": "mine"})
        with pytest.raises(KafkaException, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            producer.init_transactions(AT_ONCE_S)

    def test_watermarks_and_offsets_are_those_of_an_empty_log(self, address: str) -> None:
        consumer = Consumer({"bootstrap.servers": address, "group.id": "mine"})
        where = ConfluentPartition(TOPIC, 0, OFFSET_BEGINNING)
        try:
            assert consumer.get_watermark_offsets(where, timeout=AT_ONCE_S) == (0, 0)
        finally:
            consumer.close()
        admin = AdminClient({"bootstrap.servers": address})
        [told] = admin.list_offsets({ConfluentPartition(TOPIC, 1): OffsetSpec.latest()}).values()
        assert told.result(AT_ONCE_S).offset == 0

    def test_groups_are_listed_and_none_is_there(self, address: str) -> None:
        admin = AdminClient({"bootstrap.servers": address})
        listed = admin.list_consumer_groups().result(AT_ONCE_S)
        assert (listed.valid, listed.errors) == ([], [])


# It leaves sockets to the garbage collector when it is refused.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
class TestKafkaPython:
    def test_a_transactional_producer(self, address: str) -> None:
        producer = KafkaProducer(bootstrap_servers=address, transactional_id="mine")
        try:
            with pytest.raises(kafka_errors.TransactionalIdAuthorizationFailedError):
                producer.init_transactions()
        finally:
            producer.close(timeout=1)

    def test_groups_and_transactions_are_listed_and_none_is_there(self, address: str) -> None:
        admin = KafkaAdminClient(bootstrap_servers=address)
        try:
            assert admin.list_groups() == []
            assert set(map(str, admin.list_transactions().values())) == {"[]"}
            [described] = admin.describe_producers([TopicPartition(TOPIC, 0)]).values()
            assert described is not None
        finally:
            admin.close()
