"""The clients of the workload leader-lease who ask who leads, hand leadership over, and register a broker again."""

import uuid
from contextlib import suppress
from random import Random
from typing import Any

import grpc

from kquorum.wire.proto.quorum_pb2 import TransferLeadershipRequest
from kquorum.wire.proto.quorum_pb2_grpc import QuorumStub
from kquorum.wire.protocol.apis import ApiKey
from tests.jepsen.core.client import RawClient
from tests.jepsen.core.errors import ClientError, refused
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.faults.quorum_view import NoLeader, QuorumView
from tests.jepsen.workloads.connected import raw_client
from tests.jepsen.workloads.pretend_broker import PretendBroker
from tests.jepsen.workloads.workload import Setup

REJOINING_BROKER = 901
_TRANSFER_TIMEOUT_S = 5.0
_STALE_BROKER_EPOCH = 77
# Any other status, one that came too late above all, leaves open whether leadership was handed over.
_NOT_BEGUN = frozenset({grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INVALID_ARGUMENT})


class ClaimWorker:
    """Asks one controller whether it leads."""

    def __init__(self, setup: Setup, node_id: int) -> None:
        self._setup = setup
        self._node_id = node_id
        self._view = QuorumView(setup.network, [node_id])

    def open(self) -> None:
        self._setup.network.enter_as_client()

    def invoke(self, op: Op) -> Op:
        try:
            leader = self._view.leader()
        except NoLeader:
            return op.ended(OpType.OK, {"controller": self._node_id, "leads": False, "epoch": -1})
        value = {"controller": self._node_id, "leads": True, "epoch": leader.leader_epoch}
        return op.ended(OpType.OK, value)

    def close(self) -> None: ...


class RejoinWorker:
    """A broker of the harness that registers as another process of the same broker, and then tries its old epoch."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._view = QuorumView(setup.network, setup.members.quorum)
        self._cluster_id = setup.cluster.cluster_id
        self._epoch: int | None = None

    def open(self) -> None:
        self._setup.network.enter_as_client()

    def invoke(self, op: Op) -> Op:
        broker = PretendBroker(REJOINING_BROKER)
        broker.incarnation_id = uuid.uuid4()
        client: RawClient | None = None
        try:
            leader_id = self._view.leader().leader_id
            client = raw_client(self._setup.network, leader_id, self._setup.op_timeout_s)
            response = client.request(ApiKey.BROKER_REGISTRATION, broker.registration(self._cluster_id))
            if int(response.error_code):
                raise refused(int(response.error_code), response.error_code.name, None)
            old, self._epoch = self._epoch, int(response.broker_epoch)
            value = {
                "broker": broker.id,
                "epoch": self._epoch,
                "old_epoch_refused": self._is_refused(client, broker, old),
            }
            return op.ended(OpType.OK, value)
        except (ClientError, NoLeader) as error:
            return op.ended(OpType.INFO, op.value, str(error))
        finally:
            if client is not None:
                client.close()

    def close(self) -> None: ...

    def _is_refused(self, client: RawClient, broker: PretendBroker, epoch: int | None) -> bool | None:
        """None when nothing can be said: there was no old epoch, or no answer of this leader's."""
        if epoch is None:
            return None
        broker.epoch = epoch
        try:
            code = int(client.request(ApiKey.BROKER_HEARTBEAT, broker.heartbeat()).error_code)
        except ClientError:
            return None
        return True if code == _STALE_BROKER_EPOCH else (False if code == 0 else None)


class TransferWorker:
    """Asks every controller to hand leadership to another one; only the leader can."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._random_source = Random(0)
        self._channels: list[tuple[int, grpc.Channel]] = []

    def open(self) -> None:
        self._setup.network.enter_as_client()
        for node_id in self._setup.members.controllers:
            address = self._setup.cluster.grpc_address(node_id)
            self._channels.append((node_id, grpc.insecure_channel(f"{address.host}:{address.port}")))

    def invoke(self, op: Op) -> Op:
        why, kind = "", OpType.FAIL
        for node_id, channel in self._channels:
            target = self._random_source.choice([other for other, _ in self._channels if other != node_id])
            stub: Any = QuorumStub(channel)  # type: ignore[no-untyped-call]
            try:
                stub.TransferLeadership(
                    TransferLeadershipRequest(target_id=target), timeout=_TRANSFER_TIMEOUT_S
                )
            except grpc.RpcError as error:
                why = f"{node_id}: {error.code().name}"
                if error.code() not in _NOT_BEGUN:
                    kind = OpType.INFO
            else:
                return op.ended(OpType.OK, {"from": node_id, "to": target})
        return op.ended(kind, op.value, why)

    def close(self) -> None:
        for _, channel in self._channels:
            with suppress(Exception):
                channel.close()
        self._channels.clear()
