"""The workload config-set: items appended to and subtracted from list configs, and a plain config that is set.

Two clients who append at the same time must both be heard: an item whose append was acknowledged is there until
a client asks to subtract it. Items are never used twice, so they live as the topics of topics-set do, and brokers'
answers are judged by the same rules (`SetFull`). Half of the clients ask controllers, which are to answer for their
own changes; these also read with a promise, and what they read must be linearizable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.jepsen.checkers.linear.checker import Linearizable
from tests.jepsen.checkers.linear.models import ConfigSet as ConfigSetModel
from tests.jepsen.checkers.linear.models import Register as RegisterModel
from tests.jepsen.checkers.set_full import SetFull
from tests.jepsen.checkers.set_lives import CREATE, DELETE, LIST
from tests.jepsen.checkers.verdicts import Checker, Results
from tests.jepsen.core.generator import (
    SECOND_NS,
    Generator,
    OncePerNode,
    Only,
    Ops,
    Phases,
    Stagger,
    TimeLimit,
    Turn,
    UntilOk,
)
from tests.jepsen.core.history import History, Op, OpType
from tests.jepsen.workloads.config_workers import (
    ADD_TOPIC,
    APPEND,
    DESCRIBE,
    READ_CONFIG,
    READ_ITEMS,
    SET_CONFIG,
    SUBTRACT,
    TOPICS,
    BrokerPlace,
    ConfigWorker,
    ControllerPlace,
    item_of,
)
from tests.jepsen.workloads.workload import RECOVERY_NS, Judged, Seat, Setup, WorkloadKind

NAME = "config-set"
_ITEMS_MAX = 400
"""So many at a time: a config's value has an end."""
_CONFIRMED_READ_NS = 20 * SECOND_NS


class ConfigSet:
    """One client of each broker only describes, as in topics-set; the others ask brokers and controllers in turn."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._brokers = setup.members.brokers
        self._random_source = setup.random_source
        self._last_item = 0
        self._last_value = 0
        self._there: list[str] = []
        self._barrier: str | None = None

    def seats(self) -> Sequence[Seat]:
        setup, quorum = self._setup, self._setup.members.quorum
        seats = [self._broker_seat(node) for node in self._brokers]
        for place in range(setup.concurrency - len(seats)):
            turn, is_broker = divmod(place, 2)
            if is_broker:
                seats.append(self._broker_seat(self._brokers[turn % len(self._brokers)]))
            else:
                home = quorum[turn % len(quorum)]
                seats.append(Seat(ConfigWorker(setup, ControllerPlace(setup, home)), home))
        return seats

    def main(self, time_ns: int) -> Generator:
        topics = [UntilOk(lambda turn, name=name: turn.invoke(ADD_TOPIC, name)) for name in TOPICS]  # type: ignore[misc]
        load = Stagger(self._setup.rate, Ops(self._any, self._hear), self._random_source)
        return TimeLimit(time_ns, Phases(*topics, load))

    def final(self) -> Generator:
        """Each part gives up some time; the checkers see what is missing then."""
        confirmed = Phases(
            UntilOk(lambda turn: turn.invoke(READ_ITEMS, final=True)),
            *(UntilOk(lambda turn, key=key: self._final_config(turn, key)) for key in TOPICS),  # type: ignore[misc]
        )
        return Phases(
            TimeLimit(RECOVERY_NS, UntilOk(self._append_barrier)),
            TimeLimit(RECOVERY_NS, OncePerNode(self._brokers, self._final_describe, self._shows_barrier)),
            TimeLimit(_CONFIRMED_READ_NS, Only(self._is_at_controller, confirmed)),
        )

    def _broker_seat(self, node: int) -> Seat:
        return Seat(ConfigWorker(self._setup, BrokerPlace(self._setup, node)), node)

    def _is_at_controller(self, turn: Turn) -> bool:
        return turn.node not in self._brokers

    def _any(self, turn: Turn) -> Op:
        if turn.seat < len(self._brokers):
            return turn.invoke(DESCRIBE)
        subtracts = 0 if not self._there else 40 if len(self._there) > _ITEMS_MAX else 12
        shares = {APPEND: 44, SUBTRACT: subtracts, SET_CONFIG: 10}
        shares |= {READ_ITEMS: 20, READ_CONFIG: 14} if self._is_at_controller(turn) else {DESCRIBE: 34}
        (f,) = self._random_source.choices(list(shares), weights=list(shares.values()))
        if f == APPEND:
            return turn.invoke(APPEND, self._new_item())
        if f == SUBTRACT:
            return turn.invoke(SUBTRACT, self._there.pop(self._random_source.randrange(len(self._there))))
        if f == SET_CONFIG:
            self._last_value += 1
            return turn.invoke(
                SET_CONFIG, {"key": self._random_source.choice(TOPICS), "value": self._last_value}
            )
        if f == READ_CONFIG:
            return turn.invoke(READ_CONFIG, {"key": self._random_source.choice(TOPICS)})
        return turn.invoke(f)

    def _hear(self, op: Op) -> None:
        if op.f == APPEND and op.type is OpType.OK:
            self._there.append(op.value)

    def _append_barrier(self, turn: Turn) -> Op:
        self._barrier = self._new_item()
        return turn.invoke(APPEND, self._barrier, final=True)

    def _final_describe(self, turn: Turn) -> Op:
        return turn.invoke(DESCRIBE, final=True)

    def _final_config(self, turn: Turn, key: str) -> Op:
        return turn.invoke(READ_CONFIG, {"key": key}, final=True)

    def _shows_barrier(self, op: Op) -> bool:
        return op.type is OpType.OK and self._barrier in op.value

    def _new_item(self) -> str:
        self._last_item += 1
        return item_of(self._last_item)


class Renamed:
    """A checker for operations that have other names here; all others it does not see as its own."""

    def __init__(self, inner: Checker, names: Mapping[str, str], name: str) -> None:
        self.name = name
        self._inner = inner
        self._names = dict(names)

    def check(self, history: History) -> Results:
        """Every line stays where it is, so that indexes are those of the history."""
        return self._inner.check(
            History(replace(op, f=self._names.get(op.f, f"other {op.f}")) for op in history)
        )


def checkers(judged: Judged) -> list[Checker]:
    names = {APPEND: CREATE, SUBTRACT: DELETE, DESCRIBE: LIST}
    items = {APPEND: "append", SUBTRACT: "subtract", READ_ITEMS: "describe"}
    return [
        Renamed(SetFull(judged.members.brokers), names, NAME),
        Linearizable(ConfigSetModel(), items, name="config-items-linear"),
        Linearizable(RegisterModel(), {SET_CONFIG: "write", READ_CONFIG: "read"}, name="config-plain-linear"),
    ]


KIND = WorkloadKind(
    name=NAME,
    about="list configs appended to and subtracted from by many at once; no acknowledged change is lost",
    make=ConfigSet,
    checkers=checkers,
    writes=frozenset({APPEND, SUBTRACT, SET_CONFIG}),
    reads=frozenset({DESCRIBE}),
    incidental=frozenset({ADD_TOPIC, SUBTRACT, SET_CONFIG}),
    seats_min=lambda members: len(members.brokers) + 2,
)
