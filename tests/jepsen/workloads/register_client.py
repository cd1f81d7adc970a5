"""What the clients of the workload register do: reads that a majority confirms, and compare-and-set by AlterPartition.

A read is `Inspect.Image` with LINEARIZABLE: the leader answers once a majority has said that it still follows.
An AlterPartition that changes nothing would be none: a controller that was left behind answers it from what it has.

A trespass is one that has to be refused (tests.jepsen.checkers.trespass), and ends as ok when the controller answers.
"""

import uuid
from collections.abc import Mapping
from typing import Any, Final

from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.protocol.apis import ApiKey
from tests.jepsen.checkers.trespass import BROKER_EPOCH, LEADER_EPOCH, MEMBER_EPOCH, NOT_LEADER, TRESPASS
from tests.jepsen.core.client import RawClient
from tests.jepsen.core.errors import ClientError, refused
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.core.inspector import Inspector
from tests.jepsen.net.network import Network
from tests.jepsen.workloads.pretend_broker import PretendBrokers
from tests.jepsen.workloads.register_controllers import Controllers

READ, CAS, ADD_KEY = "read", "cas", "add-key"
REPLICAS: Final = (101, 102, 103, 104, 105)
LEADER: Final = REPLICAS[0]
# It leads as long as no pretend broker is fenced; a partition that has another leader has a higher epoch as well.
_LEADER_EPOCH: Final = 0
_FOLLOWER: Final = REPLICAS[1]
NO_VERSION: Final = -1
_NONE, _RECOVERED = 0, 0

# What a controller says of a report before it writes anything, by Kafka's codes. The request went to it directly and
# once, so it is known to be this one that was refused. Not so NEW_LEADER_ELECTED, which tells of a change that was
# made, and NOT_CONTROLLER, which is also said of changes that were proposed already.
_REFUSED: Final = {
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    42: "INVALID_REQUEST",
    74: "FENCED_LEADER_EPOCH",
    77: "STALE_BROKER_EPOCH",
    95: "INVALID_UPDATE_VERSION",
    100: "UNKNOWN_TOPIC_ID",
    107: "INELIGIBLE_REPLICA",
}


class ReportRefused(ClientError):
    """A controller said no before it wrote anything; the reason is the code's name."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, definite=True)


def topic_of(key: int) -> str:
    return f"register-{key:05d}"


class RegisterWorker:
    """Does what Register asks. `topic_ids` is common to all workers: the worker that creates a key adds its topic's."""

    def __init__(
        self,
        network: Network,
        controllers: Controllers,
        brokers: PretendBrokers,
        topic_ids: dict[int, uuid.UUID],
        timeout_s: float,
    ) -> None:
        self._network = network
        self._controllers = controllers
        self._brokers = brokers
        self._topic_ids = topic_ids
        self._timeout_s = timeout_s
        self._is_client = False

    def open(self) -> None:
        if not self._is_client:
            self._network.enter_as_client()
            self._brokers.attend()
            self._is_client = True

    def invoke(self, op: Op) -> Op:
        try:
            return op.ended(OpType.OK, self._do(op))
        except ClientError as error:
            # A read that failed has no effect, whatever became of it.
            surely_not = error.definite or op.f == READ
            return op.ended(OpType.FAIL if surely_not else OpType.INFO, op.value, error.reason)

    def _do(self, op: Op) -> object:
        if op.f == ADD_KEY:
            self._brokers.wait_until_unfenced(self._timeout_s)
        epochs = self._brokers.epochs()
        leader = self._controllers.leader()
        key = int(op.value["key"])
        if op.f == READ:
            shown = read(self._controllers.inspector(leader), key)
            return shown | {"by": leader, "fencings": self._brokers.fencings}
        client = self._controllers.client(leader)
        if op.f == ADD_KEY:
            self._topic_ids[key] = create(client, key, round(self._timeout_s * 1000))
            return op.value
        if op.f == TRESPASS:
            return {**op.value, "refused": self._trespass(client, op.value, epochs), "by": leader}
        assert op.f == CAS, op.f
        version = alter(client, self._topic_ids[key], epochs, op.value["expected"], op.value["value"])
        return {**op.value, "version": version, "by": leader}

    def _trespass(self, client: RawClient, asked: Mapping[str, Any], epochs: Mapping[int, int]) -> str | None:
        """The name of the code it was refused with, None if it was accepted. Raises ClientError if that is unknown."""
        topic_id = self._topic_ids[asked["key"]]
        try:
            alter(client, topic_id, epochs, asked["expected"], asked["value"], asked["as"])
        except ReportRefused as refusal:
            return refusal.reason
        return None

    def close(self) -> None:
        self._controllers.close()


def read(inspector: Inspector, key: int) -> dict[str, object]:
    """Raises ClientError. A key that is not there has NO_VERSION: no client deletes keys, so none can be missing."""
    chunks = inspector.image(pb.LINEARIZABLE, (topic_of(key),))
    for partition in (one for chunk in chunks for topic in chunk.topics.topics for one in topic.partitions):
        return {"key": key, "version": partition.partition_epoch, "value": list(partition.isr)}
    return {"key": key, "version": NO_VERSION, "value": None}


def create(client: RawClient, key: int, timeout_ms: int) -> uuid.UUID:
    """The id of the new topic, with the one partition on all pretend brokers. Raises ClientError."""
    topic = {
        "name": topic_of(key),
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [{"partition_index": 0, "broker_ids": REPLICAS}],
        "configs": (),
    }
    response = client.request(
        ApiKey.CREATE_TOPICS, {"topics": [topic], "timeout_ms": timeout_ms, "validate_only": False}
    )
    (result,) = response.topics
    if int(result.error_code) != _NONE:
        raise refused(int(result.error_code), result.error_code.name, result.error_message)
    topic_id = result.topic_id
    assert isinstance(topic_id, uuid.UUID), "a topic has an id"
    return topic_id


def alter(
    client: RawClient,
    topic_id: uuid.UUID,
    epochs: Mapping[int, int],
    expected: int,
    isr: list[int],
    trespass: str | None = None,
) -> int:
    """The new partition epoch. `trespass` is what is to be wrong with the report, if anything.

    Raises ClientError.
    """
    sender = _FOLLOWER if trespass == NOT_LEADER else LEADER
    stale = isr[-1] if trespass == MEMBER_EPOCH else None
    members = [
        {"broker_id": broker_id, "broker_epoch": epochs[broker_id] - (broker_id == stale)}
        for broker_id in isr
    ]
    partition = {
        "partition_index": 0,
        "leader_epoch": _LEADER_EPOCH - (trespass == LEADER_EPOCH),
        "new_isr": isr,
        "new_isr_with_epochs": members,
        "leader_recovery_state": _RECOVERED,
        "partition_epoch": expected,
    }
    response = client.request(
        ApiKey.ALTER_PARTITION,
        {
            "broker_id": sender,
            "broker_epoch": epochs[sender] - (trespass == BROKER_EPOCH),
            "topics": [{"topic_id": topic_id, "partitions": [partition]}],
        },
    )
    _check(response.error_code)
    ((told,),) = (topic.partitions for topic in response.topics)
    _check(told.error_code)
    return int(told.partition_epoch)


def _check(error_code: Any) -> None:
    if int(error_code) in _REFUSED:
        raise ReportRefused(error_code.name.upper())
    if int(error_code) != _NONE:
        raise ClientError(error_code.name.upper(), definite=False)
