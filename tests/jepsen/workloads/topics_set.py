"""The workload topics-set: brokers are asked to create, delete and list topics whose names are never used twice."""

from collections.abc import Callable, Sequence

from tests.jepsen.checkers.set_full import SetFull
from tests.jepsen.checkers.set_lives import CREATE, DELETE, LIST
from tests.jepsen.client import RawClient, TopicsClient
from tests.jepsen.errors import ClientError
from tests.jepsen.generator import (
    Generator,
    OncePerNode,
    Ops,
    Phases,
    Stagger,
    TimeLimit,
    Turn,
    UntilOk,
)
from tests.jepsen.history import Op, OpType
from tests.jepsen.net.network import Network
from tests.jepsen.workloads.workload import RECOVERY_NS, Seat, Setup, WorkloadKind

NAME = "topics-set"
TOPIC_PREFIX = "jepsen-"
_CREATES, _DELETES, _LISTS = 60, 12, 28  # of a hundred operations of a client that writes


def topic_name(element: int) -> str:
    return f"{TOPIC_PREFIX}{element:06d}"


def element_of(topic: str) -> int | None:
    """None for a topic which is none of ours."""
    digits = topic.removeprefix(TOPIC_PREFIX)
    return int(digits) if topic.startswith(TOPIC_PREFIX) and digits.isdigit() else None


class TopicsSet:
    """What to do: creates, lists and some deletes at a rate; at the end a barrier, and every broker's final read.

    One client of each broker only reads: when no controller answers, all that write are soon waiting, and what
    brokers show in that time is what matters most.
    """

    def __init__(self, setup: Setup) -> None:
        self._nodes = setup.members.brokers
        assert setup.concurrency >= 2 * len(self._nodes), (
            "each broker needs a client that reads and one that writes"
        )
        self._setup = setup
        self._dice = setup.dice
        self._next_element = 0
        self._deletable: list[int] = []
        self._barrier: int | None = None

    def seats(self) -> Sequence[Seat]:
        nodes = [self._nodes[place % len(self._nodes)] for place in range(self._setup.concurrency)]
        return [
            Seat(make_worker(self._setup.network, node, self._setup.op_timeout_s), node) for node in nodes
        ]

    def main(self, time_ns: int) -> Generator:
        return TimeLimit(time_ns, Stagger(self._setup.rate, Ops(self._any, self._hear), self._dice))

    def final(self) -> Generator:
        """Each part gives up after RECOVERY_NS; the checker sees what is missing then."""
        barrier = UntilOk(self._create_barrier)
        reads = OncePerNode(self._nodes, self._final_list, self._shows_barrier)
        return Phases(TimeLimit(RECOVERY_NS, barrier), TimeLimit(RECOVERY_NS, reads))

    def _any(self, turn: Turn) -> Op:
        if turn.seat < len(self._nodes):
            return turn.invoke(LIST)
        kinds = {CREATE: _CREATES, LIST: _LISTS, DELETE: _DELETES if self._deletable else 0}
        (f,) = self._dice.choices(list(kinds), weights=list(kinds.values()))
        if f == CREATE:
            return turn.invoke(CREATE, self._new_element())
        if f == DELETE:
            return turn.invoke(DELETE, self._deletable.pop(self._dice.randrange(len(self._deletable))))
        return turn.invoke(LIST)

    def _hear(self, op: Op) -> None:
        if op.f == CREATE and op.type is OpType.OK:
            self._deletable.append(op.value)

    def _create_barrier(self, turn: Turn) -> Op:
        self._barrier = self._new_element()
        return turn.invoke(CREATE, self._barrier, final=True)

    def _final_list(self, turn: Turn) -> Op:
        return turn.invoke(LIST, final=True)

    def _shows_barrier(self, op: Op) -> bool:
        return op.type is OpType.OK and self._barrier in op.value

    def _new_element(self) -> int:
        self._next_element += 1
        return self._next_element


class TopicsWorker:
    """Does what TopicsSet asks at one broker."""

    def __init__(self, make_client: Callable[[], TopicsClient], network: Network) -> None:
        self._make_client = make_client
        self._network = network
        self._client: TopicsClient | None = None

    def open(self) -> None:
        if self._client is None:
            self._network.enter_as_client()
        self._client = self._make_client()

    def invoke(self, op: Op) -> Op:
        assert self._client is not None
        try:
            return op.ended(OpType.OK, self._do(self._client, op))
        except ClientError as error:
            # A read that failed has no effect, whatever became of it.
            surely_not = error.definite or op.f == LIST
            return op.ended(OpType.FAIL if surely_not else OpType.INFO, op.value, error.reason)

    def _do(self, client: TopicsClient, op: Op) -> object:
        if op.f == CREATE:
            client.create(topic_name(op.value))
        elif op.f == DELETE:
            client.delete(topic_name(op.value))
        else:
            assert op.f == LIST, op.f
            return [element for topic in client.list() if (element := element_of(topic)) is not None]
        return op.value

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def make_worker(network: Network, node_id: int, timeout_s: float) -> TopicsWorker:
    address = network.address_of(node_id)

    def make_client() -> TopicsClient:
        raw = RawClient(address.host, address.port, timeout_s)
        return TopicsClient(raw, timeout_ms=round(timeout_s * 1000))

    return TopicsWorker(make_client, network)


KIND = WorkloadKind(
    name=NAME,
    about="topics created, deleted and listed; nothing acknowledged is lost, nothing deleted comes back",
    make=TopicsSet,
    checkers=lambda judged: [SetFull(judged.members.brokers)],
    writes=frozenset({CREATE, DELETE}),
    reads=frozenset({LIST}),
    seats_min=lambda members: 2 * len(members.brokers),
)
