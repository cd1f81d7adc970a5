"""The workload log-order: clients commit markers, and every node's committed log is followed as it goes on.

A marker is a topic with a name that is never used twice, so it stands in the log as one record. An observer sits at
each node, controllers and brokers alike, and reads what the node shows as committed (`Inspect.ReadLog`).
"""

from collections.abc import Sequence
from typing import Any

from kquorum.wire.proto import inspect_pb2 as pb
from tests.jepsen.checkers.images import PICTURE, Images
from tests.jepsen.checkers.log_order import COMMIT, OBSERVE, LogOrder
from tests.jepsen.checkers.verdicts import Checker
from tests.jepsen.core.client import RawClient, TopicsClient
from tests.jepsen.core.errors import ClientError
from tests.jepsen.core.generator import (
    SECOND_NS,
    Generator,
    OncePerNode,
    Only,
    Ops,
    Phases,
    SideBySide,
    Stagger,
    TimeLimit,
    Turn,
    UntilOk,
)
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.core.inspector import Delivered, Inspector, LogFollower, Seen
from tests.jepsen.core.pictures import picture_of
from tests.jepsen.workloads.workload import RECOVERY_NS, Judged, Seat, Setup, WorkloadKind

NAME = "log-order"
MARKER_PREFIX = "marker-"
OBSERVES_PER_S = 2.0
_WAIT_S = 0.2
_WRITERS = 4
_PICTURE_PAUSE_NS = SECOND_NS // 2
_PICTURE_TIMEOUT_S = 20.0
"""Of a run of half an hour an image holds tens of thousands of topics."""


class LogOrderWorkload:
    """Seats: an observer at each node first, then the writers, dealt out to the brokers."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._nodes = setup.members.all
        self._count = 0
        self._barrier: str | None = None
        self._barrier_offset: int | None = None

    def seats(self) -> Sequence[Seat]:
        setup, brokers = self._setup, self._setup.members.brokers
        observers = [Seat(ObserverWorker(setup, node_id), node_id) for node_id in self._nodes]
        writers = max(_WRITERS, setup.concurrency - len(observers))
        return observers + [
            Seat(MarkerWorker(setup, brokers[place % len(brokers)]), brokers[place % len(brokers)])
            for place in range(writers)
        ]

    def main(self, time_ns: int) -> Generator:
        observing = Stagger(OBSERVES_PER_S * len(self._nodes), Ops(self._observe), self._setup.random_source)
        writing = Stagger(self._setup.rate, Ops(self._commit), self._setup.random_source)
        return TimeLimit(
            time_ns, SideBySide(Only(self._is_observer, observing), Only(self._is_writer, writing))
        )

    def final(self) -> Generator:
        """A marker by each broker and a last one; then every observer looks until it was shown that, and all images
        until they are the same."""
        by_each = OncePerNode(
            self._setup.members.brokers, self._final_commit, lambda op: op.type is OpType.OK
        )
        barrier = Only(self._is_writer, UntilOk(self._commit_last))
        looks = Only(self._is_observer, OncePerNode(self._nodes, self._look_at_last, self._has_seen_last))
        pictures = OncePerNode(
            self._nodes, self._picture, SameImage(self._nodes).is_shown_with, _PICTURE_PAUSE_NS
        )
        return Phases(
            TimeLimit(RECOVERY_NS, Only(self._is_writer, by_each)),
            TimeLimit(RECOVERY_NS, barrier),
            TimeLimit(RECOVERY_NS, looks),
            TimeLimit(RECOVERY_NS, Only(self._is_observer, pictures)),
        )

    def _is_observer(self, turn: Turn) -> bool:
        return 0 <= turn.seat < len(self._nodes)

    def _is_writer(self, turn: Turn) -> bool:
        return turn.seat >= len(self._nodes)

    def _observe(self, turn: Turn, *, final: bool = False) -> Op:
        return turn.invoke(OBSERVE, {"observer": turn.node}, final=final)

    def _commit(self, turn: Turn, *, final: bool = False) -> Op:
        self._count += 1
        return turn.invoke(COMMIT, {"marker": f"{MARKER_PREFIX}{self._count:06d}"}, final=final)

    def _final_commit(self, turn: Turn) -> Op:
        return self._commit(turn, final=True)

    def _commit_last(self, turn: Turn) -> Op:
        op = self._final_commit(turn)
        self._barrier = op.value["marker"]
        return op

    def _look_at_last(self, turn: Turn) -> Op:
        return self._observe(turn, final=True)

    def _picture(self, turn: Turn) -> Op:
        return turn.invoke(PICTURE, {"observer": turn.node}, final=True)

    def _has_seen_last(self, op: Op) -> bool:
        """The last marker, or what stands behind it: who was down may find it in a snapshot only."""
        if op.type is not OpType.OK:
            return False
        for offset, _, _, marker in op.value["records"]:
            if marker == self._barrier:
                self._barrier_offset = offset
        place = self._barrier_offset
        return place is not None and any(offset >= place for offset, *_ in op.value["records"])


class SameImage:
    """Whether there is an image that all nodes have shown; once there is, that is enough."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self._shown: dict[int | None, set[str]] = {node: set() for node in nodes}

    def is_shown_with(self, op: Op) -> bool:
        if op.type is OpType.OK:
            self._shown[op.node].add(op.value["digest"])
        return bool(set.intersection(*self._shown.values()))


class ObserverWorker:
    def __init__(self, setup: Setup, node_id: int) -> None:
        self._address = setup.cluster.grpc_address(node_id)
        self._network = setup.network
        self._node_id = node_id
        self._timeout_s = setup.op_timeout_s
        self._follower: LogFollower | None = None

    def open(self) -> None:
        if self._follower is None:
            self._network.enter_as_client()
            self._follower = LogFollower(Inspector(self._address, self._timeout_s))

    def invoke(self, op: Op) -> Op:
        assert self._follower is not None
        if op.f == PICTURE:
            return self._picture(op)
        return op.ended(OpType.OK, value_of(self._node_id, self._follower.take(_WAIT_S)))

    def close(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower = None

    def _picture(self, op: Op) -> Op:
        inspector = Inspector(self._address, _PICTURE_TIMEOUT_S)
        try:
            return op.ended(OpType.OK, picture_of(self._node_id, inspector.image(pb.COMMITTED)))
        except ClientError as error:
            return op.ended(OpType.FAIL, op.value, error.reason)  # a read has no effect
        finally:
            inspector.close()


def value_of(observer: int, delivered: Delivered) -> dict[str, Any]:
    value: dict[str, Any] = {
        "observer": observer,
        "records": [[seen.offset, seen.epoch, seen.digest, marker_of(seen)] for seen in delivered.records],
    }
    if delivered.is_reset:
        value["reset"] = True
    if delivered.image is not None:
        offset, epoch = delivered.image
        value["snapshot"] = [offset + 1, epoch]
    if delivered.broken:
        value["broken"] = list(delivered.broken)
    return value


def marker_of(seen: Seen) -> str | None:
    """The marker's name, in the record that makes its topic; asked without parsing, for most records are others."""
    if seen.type != "TopicRecord":
        return None
    _, found, rest = seen.json.partition(f'"{MARKER_PREFIX}')
    return f"{MARKER_PREFIX}{rest.partition(chr(34))[0]}" if found else None


class MarkerWorker:
    def __init__(self, setup: Setup, broker_id: int) -> None:
        self._address = setup.network.address_of(broker_id)
        self._network = setup.network
        self._timeout_s = setup.op_timeout_s
        self._client: TopicsClient | None = None

    def open(self) -> None:
        self._network.enter_as_client()
        raw = RawClient(self._address.host, self._address.port, self._timeout_s)
        self._client = TopicsClient(raw, timeout_ms=round(self._timeout_s * 1000))

    def invoke(self, op: Op) -> Op:
        assert self._client is not None
        try:
            self._client.create(op.value["marker"])
        except ClientError as error:
            return op.ended(OpType.FAIL if error.definite else OpType.INFO, op.value, error.reason)
        return op.ended(OpType.OK, op.value)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def _checkers(judged: Judged) -> list[Checker]:
    return [LogOrder(judged.members.all), Images(judged.members.all)]


KIND = WorkloadKind(
    name=NAME,
    about="markers committed, and every node's log followed: all see one log, without gap, change or phantom",
    make=LogOrderWorkload,
    checkers=_checkers,
    writes=frozenset({COMMIT}),
    reads=frozenset({OBSERVE}),
    seats_min=lambda members: len(members.all) + _WRITERS,
)
