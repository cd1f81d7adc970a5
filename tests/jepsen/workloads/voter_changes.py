"""Clients that change the voters, and clients that ask who they are (KIP-853). One request each, and no second try."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.uuids import uuid_from_text, uuid_to_text
from tests.jepsen.checkers.voters import ADD, LIST, PUT, REMOVE
from tests.jepsen.core.client import RawClient, TopicsClient
from tests.jepsen.core.errors import ClientError, refused
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.core.members import FIRST_BROKER
from tests.jepsen.net.network import Network
from tests.jepsen.workloads.connected import Connected, raw_client, topics_client

CONTROLLER_LISTENER = "CONTROLLER"
TOPIC_PREFIX = "member-"
_QUESTION: Final[Mapping[str, object]] = {
    "topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
}
_DUPLICATE_VOTER, _VOTER_NOT_FOUND = 126, 127
# A leader says with one code, REQUEST_TIMED_OUT, "not now" and "not yet committed"; NOT_LEADER_OR_FOLLOWER stands for
# "I do not lead" as well as for "I led when I wrote it". Only its words tell them apart; words that are not among
# these leave the doubt.
_NOT_BEGUN: Final = (
    "another change of the voters is under way",
    "leadership is being transferred to node",
    "has not committed anything in its epoch",
    "are not committed yet",
    "is not ready; try again",
    "could not be asked what it supports",
    "has not caught up with the log",
    "does not lead the quorum",
)


def topic_name(element: int) -> str:
    return f"{TOPIC_PREFIX}{element:06d}"


def element_of(topic: str) -> int | None:
    """None for a topic which is none of ours."""
    digits = topic.removeprefix(TOPIC_PREFIX)
    return int(digits) if topic.startswith(TOPIC_PREFIX) and digits.isdigit() else None


class ChangeWorker:
    """Asks the node that an operation names (`via`), a controller or a broker, to add or remove a voter."""

    def __init__(self, network: Network, timeout_s: float) -> None:
        self._network = network
        self._timeout_s = timeout_s
        self._is_inside = False

    def open(self) -> None:
        if not self._is_inside:
            self._network.enter_as_client()
            self._is_inside = True

    def invoke(self, op: Op) -> Op:
        client = raw_client(self._network, op.value["via"], self._timeout_s)
        try:
            self._change(client, op)
        except ClientError as error:
            kind = OpType.FAIL if error.definite else OpType.INFO
            return op.ended(kind, op.value, error.reason)
        finally:
            client.close()
        return op.ended(OpType.OK, op.value)

    def _change(self, client: RawClient, op: Op) -> None:
        """Raises ClientError."""
        voter = {
            "cluster_id": None,
            "voter_id": op.value["voter"],
            "voter_directory_id": uuid_from_text(op.value["directory"]),
        }
        if op.f == ADD:
            response = client.request(ApiKey.ADD_RAFT_VOTER, voter | self._add_fields(op.value["voter"]))
        else:
            assert op.f == REMOVE, op.f
            response = client.request(ApiKey.REMOVE_RAFT_VOTER, voter)
        code = int(response.error_code)
        if code:
            raise refusal(code, response.error_code.name, response.error_message, via=op.value["via"])

    def _add_fields(self, node_id: int) -> dict[str, object]:
        address = self._network.advertised(node_id)
        return {
            "timeout": round(self._timeout_s * 1000),
            "listeners": [{"name": CONTROLLER_LISTENER, "host": address.host, "port": address.port}],
            "ack_when_committed": True,
        }

    def close(self) -> None:
        pass


def refusal(code: int, name: str, message: str | None, *, via: int) -> ClientError:
    """A broker sends a request again when its controller is gone: what it was told last says nothing of the first."""
    error = refused(code, name, message)
    asked_once = via < FIRST_BROKER
    is_answered = code in (_DUPLICATE_VOTER, _VOTER_NOT_FOUND) or any(
        words in (message or "") for words in _NOT_BEGUN
    )
    return ClientError(error.reason, definite=error.definite or (asked_once and is_answered))


class VotersReader(Connected[RawClient]):
    """Asks one controller by DescribeQuorum. One that leads tells the voters, the others whom they follow."""

    def __init__(self, network: Network, node_id: int, timeout_s: float, f: str) -> None:
        super().__init__(partial(raw_client, network, node_id, timeout_s), network)
        self._node_id = node_id
        self._f = f

    def invoke(self, op: Op) -> Op:
        assert op.f == self._f, op.f
        assert self._client is not None
        try:
            response = self._client.request(ApiKey.DESCRIBE_QUORUM, _QUESTION)
            partitions = [each for topic in response.topics for each in topic.partitions]
        except ClientError as error:
            return op.ended(OpType.FAIL, None, error.reason)
        if not partitions:
            return op.ended(OpType.FAIL, None, response.error_code.name.upper())
        return op.ended(OpType.OK, view_of(self._node_id, partitions[0]))


def view_of(node_id: int, partition: Any) -> dict[str, object]:
    """As plain values, the keys text as they are when a history is read again."""
    view: dict[str, object] = {"leader": int(partition.leader_id), "epoch": int(partition.leader_epoch)}
    if int(partition.error_code) or int(partition.leader_id) != node_id:
        return view
    replicas = _in_time([*partition.observers, *partition.current_voters])
    return view | {
        "high_watermark": int(partition.high_watermark),
        "voters": _directories(partition.current_voters),
        "observers": _directories(partition.observers),
        "ends": {str(replica.replica_id): int(replica.log_end_offset) for replica in replicas},
    }


def _directories(replicas: Sequence[Any]) -> dict[str, str]:
    return {
        str(replica.replica_id): uuid_to_text(replica.replica_directory_id) for replica in _in_time(replicas)
    }


def _in_time(replicas: Sequence[Any]) -> list[Any]:
    """Of one node with several directories, as after the loss of a disk, the one that fetched last comes last."""
    return sorted(replicas, key=lambda replica: int(replica.last_fetch_timestamp))


class TopicWorker(Connected[TopicsClient]):
    """Creates and lists topics at one broker."""

    def __init__(self, network: Network, node_id: int, timeout_s: float) -> None:
        super().__init__(partial(topics_client, network, node_id, timeout_s), network)

    def invoke(self, op: Op) -> Op:
        assert self._client is not None
        try:
            if op.f == PUT:
                self._client.create(topic_name(op.value))
                return op.ended(OpType.OK, op.value)
            assert op.f == LIST, op.f
            found = [element_of(topic) for topic in self._client.list()]
        except ClientError as error:
            surely_not = error.definite or op.f == LIST
            return op.ended(OpType.FAIL if surely_not else OpType.INFO, op.value, error.reason)
        return op.ended(OpType.OK, [element for element in found if element is not None])
