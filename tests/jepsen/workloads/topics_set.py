"""The workload topics-set: brokers are asked to create, delete and list topics whose names are never used twice.

Beside that, on seats of their own, two clients race for one name now and then, and another gives a name to a second
topic (tests.jepsen.checkers.names). These names are none of the set's.
"""

from collections.abc import Sequence
from functools import partial
from random import Random

from tests.jepsen.checkers.names import RACE, REBIRTH, Names
from tests.jepsen.checkers.set_full import SetFull
from tests.jepsen.checkers.set_lives import CREATE, DELETE, LIST
from tests.jepsen.core.client import TopicsClient
from tests.jepsen.core.errors import ClientError
from tests.jepsen.core.generator import (
    SECOND_NS,
    Context,
    Generator,
    Next,
    OncePerNode,
    Only,
    Ops,
    Phases,
    SideBySide,
    Stagger,
    TimeLimit,
    Turn,
    UntilOk,
    Wait,
)
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.net.network import Network
from tests.jepsen.workloads.connected import Connected, raw_client, topics_client
from tests.jepsen.workloads.name_workers import NameWorker
from tests.jepsen.workloads.workload import RECOVERY_NS, Seat, Setup, WorkloadKind

NAME = "topics-set"
TOPIC_PREFIX = "jepsen-"
RACES_PER_S, REBIRTHS_PER_S = 0.5, 0.5
_RACE_PREFIX, _REBIRTH_PREFIX = "names-race-", "names-rebirth-"
_FIRST_RETENTION_MS = 3_600_000
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
    brokers show in that time is what matters most. The last three seats are two that race for names, and one for
    rebirths.
    """

    def __init__(self, setup: Setup) -> None:
        self._nodes = setup.members.brokers
        assert setup.concurrency >= 2 * len(self._nodes), (
            "each broker needs a client that reads and one that writes"
        )
        self._setup = setup
        self._random_source = setup.random_source
        self._next_element = 0
        self._next_rebirth = 0
        self._deletable: list[int] = []
        self._barrier: int | None = None

    def seats(self) -> Sequence[Seat]:
        setup, nodes = self._setup, self._nodes
        places = [nodes[place % len(nodes)] for place in range(setup.concurrency)]
        of_set = [Seat(make_worker(setup.network, node, setup.op_timeout_s), node) for node in places]
        # The racing client uses another broker, if there is one: the controller has to decide.
        others = (nodes[0], nodes[-1], nodes[-1])
        return of_set + [
            Seat(make_name_worker(setup.network, node, setup.op_timeout_s), node) for node in others
        ]

    def main(self, time_ns: int) -> Generator:
        count, random_source = self._setup.concurrency, self._random_source
        rebirths = Only(lambda turn: turn.seat == count + 2, Ops(self._rebirth))
        going_on = SideBySide(
            self._of_set(Stagger(self._setup.rate, Ops(self._any, self._hear), random_source)),
            Races(RACES_PER_S, (count, count + 1), random_source),
            Stagger(REBIRTHS_PER_S, rebirths, random_source),
        )
        return TimeLimit(time_ns, going_on)

    def final(self) -> Generator:
        """Each part gives up after RECOVERY_NS; the checker sees what is missing then."""
        barrier = UntilOk(self._create_barrier)
        reads = OncePerNode(self._nodes, self._final_list, self._shows_barrier)
        return self._of_set(Phases(TimeLimit(RECOVERY_NS, barrier), TimeLimit(RECOVERY_NS, reads)))

    def _of_set(self, inner: Generator) -> Generator:
        return Only(lambda turn: turn.seat < self._setup.concurrency, inner)

    def _any(self, turn: Turn) -> Op:
        if turn.seat < len(self._nodes):
            return turn.invoke(LIST)
        kinds = {CREATE: _CREATES, LIST: _LISTS, DELETE: _DELETES if self._deletable else 0}
        (f,) = self._random_source.choices(list(kinds), weights=list(kinds.values()))
        if f == CREATE:
            return turn.invoke(CREATE, self._new_element())
        if f == DELETE:
            return turn.invoke(
                DELETE, self._deletable.pop(self._random_source.randrange(len(self._deletable)))
            )
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

    def _rebirth(self, turn: Turn) -> Op:
        """The config is unlike that of any other, so that what is left over says of whom."""
        self._next_rebirth += 1
        name = f"{_REBIRTH_PREFIX}{self._next_rebirth:06d}"
        retention_ms = _FIRST_RETENTION_MS + self._next_rebirth
        return turn.invoke(REBIRTH, {"name": name, "retention_ms": retention_ms})


class Races:
    """When both racers are free: one operation for each, at once, for one new name. So many races a second at most."""

    def __init__(self, rate: float, seats: tuple[int, int], random_source: Random) -> None:
        self._mean_ns = SECOND_NS / rate
        self._seats = seats
        self._random_source = random_source
        self._due_ns = 0
        self._count = 0
        self._not_off: list[int] = []

    def next(self, context: Context) -> Next:
        racers = {turn.seat: turn for turn in context.free if turn.seat in self._seats}
        if not self._not_off:
            if context.time_ns < self._due_ns:
                return Wait(self._due_ns)
            if len(racers) < len(self._seats):
                return Wait()
            self._not_off = self._random_source.sample(self._seats, len(self._seats))
            self._count += 1
            self._due_ns = context.time_ns + round(self._random_source.expovariate(1) * self._mean_ns)
        # No other operation uses the one that is to go second, so it is free still.
        turn = racers[self._not_off.pop()]
        return turn.invoke(RACE, {"name": f"{_RACE_PREFIX}{self._count:06d}"})

    def update(self, op: Op) -> None:
        pass


class TopicsWorker(Connected[TopicsClient]):
    """Does what TopicsSet asks at one broker."""

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


def make_worker(network: Network, node_id: int, timeout_s: float) -> TopicsWorker:
    return TopicsWorker(partial(topics_client, network, node_id, timeout_s), network)


def make_name_worker(network: Network, node_id: int, timeout_s: float) -> NameWorker:
    return NameWorker(partial(raw_client, network, node_id, timeout_s), network, timeout_s)


KIND = WorkloadKind(
    name=NAME,
    about="topics created, deleted and listed; nothing acknowledged is lost, nothing deleted comes back",
    make=TopicsSet,
    checkers=lambda judged: [SetFull(judged.members.brokers), Names()],
    writes=frozenset({CREATE, DELETE}),
    reads=frozenset({LIST}),
    incidental=frozenset({RACE, REBIRTH}),
    seats_min=lambda members: 2 * len(members.brokers),
)
