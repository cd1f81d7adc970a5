"""The gRPC service of real nodes: a controller and a broker show the same log and the same image."""

from collections.abc import Iterator
from typing import Any

import pytest

from kquorum.cli.processes import wait_until
from tests.support.cluster import Cluster

grpc = pytest.importorskip("grpc")
confluent_admin = pytest.importorskip("confluent_kafka.admin")

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("inspect"), controllers=1, brokers=1, with_grpc=True) as running:
        running.start()
        yield running


class Inspector:
    def __init__(self, cluster: Cluster, node_id: int) -> None:
        from kquorum.wire.proto.inspect_pb2_grpc import InspectStub

        self._channel = grpc.insecure_channel(f"127.0.0.1:{cluster.grpc_ports[node_id]}")
        self._stub: Any = InspectStub(self._channel)

    def types(self) -> list[str]:
        from kquorum.wire.proto.inspect_pb2 import ReadLogRequest

        return [record.type for record in self._stub.ReadLog(ReadLogRequest(from_offset=0), timeout=40)]

    def topics(self) -> set[str]:
        from kquorum.wire.proto.inspect_pb2 import ImageRequest

        chunks = list(self._stub.Image(ImageRequest(), timeout=40))
        return {topic.name for chunk in chunks for topic in chunk.topics.topics}

    def header(self) -> Any:
        from kquorum.wire.proto.inspect_pb2 import ImageRequest

        return next(iter(self._stub.Image(ImageRequest(), timeout=40))).header

    def close(self) -> None:
        self._channel.close()


def test_both_kinds_of_node_show_what_a_client_created_and_who_is_registered(cluster: Cluster) -> None:
    admin = confluent_admin.AdminClient({"bootstrap.servers": cluster.address(101), "log_level": 0})
    admin.create_topics([confluent_admin.NewTopic("seen", 2, 1)])["seen"].result(30)
    for node_id in cluster.node_ids:
        inspector = Inspector(cluster, node_id)
        assert wait_until(lambda inspector=inspector: "seen" in inspector.topics(), 40), cluster.tails()  # type: ignore[misc]
        header = inspector.header()
        assert header.node_id == node_id
        assert [(broker.id, broker.fenced) for broker in header.brokers] == [(101, False)]
        assert [controller.id for controller in header.controllers] == [1]
        types = inspector.types()
        assert types.count("TopicRecord") == 1
        assert types.count("PartitionRecord") == 2
        assert "RegisterControllerRecord" in types
        inspector.close()
