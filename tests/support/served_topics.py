"""When the leaders of a new topic serve it: a broker shows a partition before its log is open."""

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from kquorum.cli.processes import wait_until


def await_served(admin: AdminClient, topic: str, partitions: int, timeout_s: float) -> None:
    """Until each partition's leader says where its log ends. A producer with acks=0 would lose what it sends before."""
    asked = {TopicPartition(topic, index): OffsetSpec.latest() for index in range(partitions)}

    def are_served() -> bool:
        try:
            for answer in admin.list_offsets(asked).values():
                answer.result(timeout_s)
        except KafkaException:
            return False
        return True

    assert wait_until(are_served, timeout_s), f"{topic} is not served"
