"""The clients of the workload leader-lease who write at controllers, and read and change what brokers lead."""

import threading
import time
from random import Random
from typing import Any

from kquorum.node.config.addresses import HostPort
from kquorum.wire.protocol.apis import ApiKey
from tests.jepsen.checkers.lease import LEADERSHIP
from tests.jepsen.checkers.lease_writes import LIST_WRITES, UNPLACED
from tests.jepsen.core.client import RawClient, TopicsClient
from tests.jepsen.core.errors import ClientError, refused, unanswered
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.core.inspector import Inspector, LogFollower, Seen
from tests.jepsen.workloads.connected import raw_client, topics_client
from tests.jepsen.workloads.workload import Setup

LEADERSHIPS_TOPIC = "leaderships"
PARTITIONS_LED = 6
_PLACE_TIMEOUT_S = 3.0
MARKER_PREFIX = "lease-"
_READS = frozenset({LEADERSHIP, LIST_WRITES})
_PREFERRED = 0
_ELECTION_NOT_NEEDED = 84


class MarkerPlaces:
    """Where one controller's committed log has which topic's record; shared by the writers at it."""

    def __init__(self, address: HostPort, timeout_s: float) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._places: dict[str, tuple[int, int]] = {}
        self._follower: LogFollower | None = None
        self._users = 0
        self._next_offset = 0

    def open(self) -> None:
        with self._lock:
            self._users += 1
            if self._follower is None:
                # Where the one before ended: a long log takes longer to read than a writer waits for its marker.
                inspector = Inspector(self._address, self._timeout_s)
                self._follower = LogFollower(inspector, self._next_offset)

    def close(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users and self._follower is not None:
                self._follower.close()
                self._follower = None

    def find(self, marker: str) -> tuple[int, int] | None:
        """(offset, epoch) of the marker; None when it does not show up in time."""
        deadline = time.monotonic() + _PLACE_TIMEOUT_S
        while marker not in self._places and time.monotonic() < deadline:
            with self._lock:
                if self._follower is None:
                    return None
                for seen in self._follower.take(0.05).records:
                    self._note(seen)
        return self._places.get(marker)

    def _note(self, seen: Seen) -> None:
        self._next_offset = seen.offset + 1
        if seen.type == "TopicRecord":
            _, _, rest = seen.json.partition(f'"{MARKER_PREFIX}')
            if rest:
                self._places[MARKER_PREFIX + rest.partition('"')[0]] = seen.offset, seen.epoch


class WriteAtWorker:
    """Makes topics at one controller."""

    def __init__(self, setup: Setup, node_id: int, places: MarkerPlaces) -> None:
        self._network = setup.network
        self._node_id = node_id
        self._places = places
        self._timeout_s = setup.op_timeout_s
        self._client: TopicsClient | None = None

    def open(self) -> None:
        self._network.enter_as_client()
        self._client = topics_client(self._network, self._node_id, self._timeout_s)
        self._places.open()

    def invoke(self, op: Op) -> Op:
        assert self._client is not None
        marker = op.value["marker"]
        try:
            self._client.create(marker)
        except ClientError as error:
            return op.ended(OpType.FAIL if error.definite else OpType.INFO, op.value, error.reason)
        place = self._places.find(marker)
        if place is None:
            return op.ended(OpType.INFO, op.value, UNPLACED)
        return op.ended(OpType.OK, {**op.value, "offset": place[0], "epoch": place[1]})

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
            self._places.close()


class BrokerWorker:
    """Shows what a broker knows of the leaderships; makes them, and changes their preferred leaders."""

    def __init__(self, setup: Setup, broker_id: int) -> None:
        self._setup = setup
        self._broker_id = broker_id
        # What is swapped for what needs no seed: it depends on what the cluster has made of the swap before.
        self._random_source = Random(broker_id)
        self._raw: RawClient | None = None

    def open(self) -> None:
        self._setup.network.enter_as_client()
        self._raw = raw_client(self._setup.network, self._broker_id, self._setup.op_timeout_s)

    def invoke(self, op: Op) -> Op:
        assert self._raw is not None
        try:
            if op.f == LEADERSHIP:
                return op.ended(OpType.OK, self._leaderships(self._raw))
            if op.f == LIST_WRITES:
                return op.ended(OpType.OK, self._writes(self._raw))
            return op.ended(OpType.OK, (self._make if op.f == "make-leaderships" else self._swap)(self._raw))
        except ClientError as error:
            kind = OpType.FAIL if error.definite or op.f in _READS else OpType.INFO
            return op.ended(kind, op.value, error.reason)

    def close(self) -> None:
        if self._raw is not None:
            self._raw.close()

    def _leaderships(self, raw: RawClient) -> dict[str, Any]:
        response = raw.request(
            ApiKey.METADATA,
            {
                "topics": ({"name": LEADERSHIPS_TOPIC, "topic_id": None},),
                "allow_auto_topic_creation": False,
                "include_topic_authorized_operations": False,
            },
        )
        partitions = {
            f"{topic.topic_id}-{int(partition.partition_index)}": [
                int(partition.leader_id),
                int(partition.leader_epoch),
            ]
            for topic in response.topics
            if not int(topic.error_code)
            for partition in topic.partitions
        }
        return {"broker": self._broker_id, "partitions": partitions}

    def _writes(self, raw: RawClient) -> list[str]:
        topics = TopicsClient(raw, self._timeout_ms).list()
        return [name for name in topics if name.startswith(MARKER_PREFIX)]

    def _make(self, raw: RawClient) -> None:
        brokers = self._setup.members.brokers
        replicas = min(2, len(brokers))
        assignments = [
            {
                "partition_index": place,
                "broker_ids": tuple(brokers[(place + each) % len(brokers)] for each in range(replicas)),
            }
            for place in range(PARTITIONS_LED)
        ]
        topic = {
            "name": LEADERSHIPS_TOPIC,
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": assignments,
            "configs": (),
        }
        response = raw.request(
            ApiKey.CREATE_TOPICS,
            {"topics": [topic], "timeout_ms": self._timeout_ms, "validate_only": False},
        )
        code = response.topics[0].error_code
        if int(code) and code.name != "topic_already_exists":
            raise refused(int(code), code.name, response.topics[0].error_message)

    def _swap(self, raw: RawClient) -> dict[str, Any]:
        brokers, place = self._setup.members.brokers, self._random_source.randrange(PARTITIONS_LED)
        replicas = self._random_source.sample(brokers, min(2, len(brokers)))
        wanted = {"partition_index": place, "replicas": tuple(replicas)}
        response = raw.request(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            {
                "timeout_ms": self._timeout_ms,
                "allow_replication_factor_change": True,
                "topics": [{"name": LEADERSHIPS_TOPIC, "partitions": [wanted]}],
            },
        )
        check_reassigned(response)
        elected = raw.request(
            ApiKey.ELECT_LEADERS,
            {
                "election_type": _PREFERRED,
                "topic_partitions": [{"topic": LEADERSHIPS_TOPIC, "partitions": (place,)}],
                "timeout_ms": self._timeout_ms,
            },
        )
        check_elected(elected)
        return wanted

    @property
    def _timeout_ms(self) -> int:
        return round(self._setup.op_timeout_s * 1000)


def check_reassigned(response: Any) -> None:
    """Each partition's outcome counts: the request as a whole succeeds also for a topic that is not there."""
    parts = [part for topic in response.responses for part in topic.partitions]
    for outcome in (response, *parts):
        if code := int(outcome.error_code):
            raise refused(code, outcome.error_code.name, outcome.error_message)


def check_elected(response: Any) -> None:
    """In doubt whatever it says: the replicas are in their new order by then."""
    parts = [part for topic in response.replica_election_results for part in topic.partition_result]
    for outcome in (response, *parts):
        if int(outcome.error_code) not in (0, _ELECTION_NOT_NEEDED):
            raise unanswered(f"no election: {outcome.error_code.name.upper()}")
