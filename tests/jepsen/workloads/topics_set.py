"""The workload topics-set: brokers are asked to create, delete and list topics whose names are never used twice."""

from collections.abc import Callable
from random import Random

from tests.jepsen.checkers.set_lives import CREATE, DELETE, LIST
from tests.jepsen.client import RawClient, TopicsClient
from tests.jepsen.errors import ClientError
from tests.jepsen.generator import SECOND_NS, Generator, OncePerNode, Ops, Phases, Stagger, TimeLimit, UntilOk
from tests.jepsen.history import Op, OpType
from tests.jepsen.net.network import Network

NAME = "topics-set"
TOPIC_PREFIX = "jepsen-"
RECOVERY_NS = 30 * SECOND_NS
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

    def __init__(self, nodes: tuple[int, ...], rate: float, concurrency: int, dice: Random) -> None:
        assert concurrency >= 2 * len(nodes), "each broker needs a client that reads and one that writes"
        self._nodes = nodes
        self._concurrency = concurrency
        self._rate = rate
        self._dice = dice
        self._next_element = 0
        self._deletable: list[int] = []
        self._barrier: int | None = None

    def main(self, time_ns: int) -> Generator:
        return TimeLimit(time_ns, Stagger(self._rate, Ops(self._any, self._hear), self._dice))

    def final(self) -> Generator:
        """Each part gives up after RECOVERY_NS; the checker sees what is missing then."""
        barrier = UntilOk(self._create_barrier)
        reads = OncePerNode(self._nodes, self._final_list, self._shows_barrier)
        return Phases(TimeLimit(RECOVERY_NS, barrier), TimeLimit(RECOVERY_NS, reads))

    def _any(self, process: int) -> Op:
        if process % self._concurrency < len(self._nodes):
            return Op(type=OpType.INVOKE, f=LIST, process=process)
        kinds = {CREATE: _CREATES, LIST: _LISTS, DELETE: _DELETES if self._deletable else 0}
        (f,) = self._dice.choices(list(kinds), weights=list(kinds.values()))
        if f == CREATE:
            return Op(type=OpType.INVOKE, f=CREATE, value=self._new_element(), process=process)
        if f == DELETE:
            element = self._deletable.pop(self._dice.randrange(len(self._deletable)))
            return Op(type=OpType.INVOKE, f=DELETE, value=element, process=process)
        return Op(type=OpType.INVOKE, f=LIST, process=process)

    def _hear(self, op: Op) -> None:
        if op.f == CREATE and op.type is OpType.OK:
            self._deletable.append(op.value)

    def _create_barrier(self, process: int) -> Op:
        self._barrier = self._new_element()
        return Op(type=OpType.INVOKE, f=CREATE, value=self._barrier, process=process, final=True)

    def _final_list(self, process: int) -> Op:
        return Op(type=OpType.INVOKE, f=LIST, process=process, final=True)

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
