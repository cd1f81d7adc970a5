"""The gRPC service for members at a broker of a real quorum: it carries on when the active controller dies."""

import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kquorum.cli.processes import wait_until
from tests.support.cluster import Cluster

grpc = pytest.importorskip("grpc")

pytestmark = [pytest.mark.interop, pytest.mark.slow]

MEMBER = 201
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("service"), controllers=3, brokers=1, with_grpc=True) as running:
        running.start()
        yield running


class Member:
    """Watches in a thread; heartbeats when told to."""

    def __init__(self, address: str) -> None:
        from kquorum.wire.proto import broker_pb2
        from kquorum.wire.proto.broker_pb2_grpc import BrokerStub

        self.pb = broker_pb2
        self.channel = grpc.insecure_channel(address)
        make_stub: Callable[[Any], Any] = BrokerStub
        self.stub = make_stub(self.channel)
        request = self.pb.RegisterRequest(broker_id=MEMBER, incarnation_id=uuid.uuid4().bytes)
        self.epoch = self.stub.Register(request, timeout=PATIENCE_S).broker_epoch
        self.applied_offset = -1
        self.call = self.stub.Watch(self.pb.WatchRequest(broker_id=MEMBER))
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    def is_active(self) -> bool:
        request = self.pb.HeartbeatRequest(
            broker_id=MEMBER, broker_epoch=self.epoch, applied_offset=self.applied_offset
        )
        return not self.stub.Heartbeat(request, timeout=PATIENCE_S).is_fenced

    def close(self) -> None:
        self.call.cancel()
        self._watching.join(PATIENCE_S)
        self.channel.close()

    def _watch(self) -> None:
        try:
            for told in self.call:
                if told.is_complete:
                    self.applied_offset = told.offset
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.CANCELLED:
                raise


def test_a_member_goes_on_when_the_active_controller_dies(cluster: Cluster) -> None:
    member = Member(f"127.0.0.1:{cluster.grpc_ports[101]}")
    try:
        assert wait_until(member.is_active, PATIENCE_S, interval_s=0.1), cluster.tails()
        leader_id = cluster.leader_id()
        cluster.kill(leader_id)
        assert wait_until(lambda: cluster.leader_id() != leader_id, PATIENCE_S)
        before = member.applied_offset
        assert member.is_active(), "the same registration, at the next controller"
        assert wait_until(lambda: member.applied_offset > before, PATIENCE_S), cluster.tails()
        assert member.is_active()
    finally:
        member.close()
