"""Which partitions a changed config concerns: those of its topic, or all."""

from kquorum.broker.replica.partition import TopicPartition
from kquorum.broker.replica.replica_manager import ReplicaManager, ReplicaSettings
from kquorum.metadata.image.configs import BROKER, TOPIC
from kquorum.wire.metadata_records.configs import ConfigRecord
from tests.support.broker.data_world import BROKER as ME
from tests.support.broker.data_world import IMAGE, NOW_MS, MemoryLogs
from tests.support.images import LISTENER, after


class Manager:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.replicas = ReplicaManager(
            ReplicaSettings(ME, LISTENER),
            MemoryLogs(),
            min_insync_replicas=lambda _image, topic: self._ask(topic),
        )
        self.replicas.begin(NOW_MS, IMAGE)

    def _ask(self, topic: str) -> int:
        self.asked.append(topic)
        return len(self.asked)

    def change(self, kind: int, name: str) -> list[str]:
        """The topics that were asked for after this resource changed."""
        self.asked = []
        record = ConfigRecord(resource_type=kind, resource_name=name, name="min.insync.replicas", value="2")
        self.replicas.handle_image(NOW_MS, *after(IMAGE, record))
        return self.asked

    def min_insync_replicas(self, topic: str, index: int) -> int:
        partition = self.replicas.online(TopicPartition(topic, index))
        assert partition is not None
        return partition.settings.min_insync_replicas


def test_a_topics_own_config_is_looked_up_for_it_alone_once() -> None:
    manager = Manager()
    before = manager.min_insync_replicas("single", 0)
    assert manager.change(TOPIC, "orders") == ["orders"]
    assert [manager.min_insync_replicas("orders", index) for index in range(3)] == [1, 1, 1]
    assert manager.min_insync_replicas("single", 0) == before


def test_a_brokers_config_is_looked_up_for_each_topic_once() -> None:
    manager = Manager()
    assert sorted(manager.change(BROKER, str(ME))) == ["orders", "single"]
