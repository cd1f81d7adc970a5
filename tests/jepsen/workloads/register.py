"""The workload register: compare-and-set of in-sync sets through partition epochs (KIP-497).

A key is a topic with one partition on pretend brokers. Its value is the in-sync set, in order; its version the
partition epoch, which every change raises by one. A leader's report says on which epoch it rests, and is refused if
the partition has moved on: so `cas` is AlterPartition, and the epoch tells everybody's order.

Only clients change a partition here, for the pretend brokers stay alive: their heartbeats have a thread of their
own, which is on no link that a fault could cut. Should one be fenced nevertheless, the controller has changed
in-sync sets by itself, and what looks like a violation is in doubt (`Undisturbed`).

Some reports are a `trespass` (tests.jepsen.checkers.trespass): they are forbidden, and have no effect. If one were
accepted, or refused and carried out all the same, the epoch would have moved without a cas, and the checkers of the
order say so as well: a phantom.

A key is given up after `_KEY_OPS` operations that did not fail, so that the search for an order of them stays short,
and another topic is created in its place. At the end every key is read once more.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from random import Random

from tests.jepsen.checkers.linear.checker import Linearizable
from tests.jepsen.checkers.linear.versioned import VersionedRegister
from tests.jepsen.checkers.linear.versions import VersionOrder
from tests.jepsen.checkers.trespass import OWN_CODES, TRESPASS, Trespass
from tests.jepsen.checkers.verdicts import VALID_KEY, Checker, Results, Verdict
from tests.jepsen.core.generator import (
    SECOND_NS,
    Context,
    Generator,
    Next,
    Ops,
    Phases,
    Stagger,
    TimeLimit,
    Turn,
    UntilOk,
    Wait,
)
from tests.jepsen.core.history import History, Op, OpType
from tests.jepsen.porcupine.judge import Porcupine, Spec
from tests.jepsen.workloads.pretend_broker import SESSION_TIMEOUT_MS, PretendBrokers
from tests.jepsen.workloads.register_client import ADD_KEY, CAS, LEADER, READ, REPLICAS, RegisterWorker
from tests.jepsen.workloads.register_controllers import Controllers
from tests.jepsen.workloads.workload import RECOVERY_NS, Judged, Seat, Setup, WorkloadKind

NAME = "register"
_KEYS, _KEY_OPS = 5, 100
_ADDS = 0.25
_READS, _CASES, _STALE_CASES, _TRESPASSES = 16, 58, 10, 16  # of a hundred operations of a client that writes
_IMPATIENT_S = 0.7


@dataclass(slots=True)
class Key:
    """What clients saw of its versions, and how many operations did not fail. `is_doubtful`: it is unknown
    whether the newest one told of is still the one that counts."""

    number: int
    values: dict[int, list[int]] = field(default_factory=lambda: {0: list(REPLICAS)})
    done: int = 0
    is_doubtful: bool = False

    def learn(self, version: int, value: list[int] | None) -> None:
        self.is_doubtful = False
        if value is not None:
            self.values.setdefault(version, value)

    @property
    def newest(self) -> int:
        return max(self.values)


class Register:
    """What to do: reads, cas of the newest version known, and what must be refused: cas of an older one, trespasses."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._random_source = setup.random_source
        self._brokers = PretendBrokers(setup, REPLICAS)
        self._topic_ids: dict[int, uuid.UUID] = {}
        self._keys: dict[int, Key] = {}
        self._in_use: list[Key] = []
        self._asked_for: set[int] = set()
        self._next_key = 0
        self._trespasses = cycle(OWN_CODES)

    def seats(self) -> Sequence[Seat]:
        """Each client is at home at one controller, so that some are with a leader that no node follows any more.

        The first at each home only reads, for all that write there soon wait; and every other round is impatient,
        so that a client writes as soon as another controller leads.
        """
        setup, controllers = self._setup, self._setup.members.quorum
        assert setup.concurrency >= 2 * len(controllers), (
            "each home needs a client that reads and one that writes"
        )
        seats = []
        for place in range(setup.concurrency):
            rounds, turn = divmod(place, len(controllers))
            patience_s = min(_IMPATIENT_S, setup.op_timeout_s) if rounds % 2 else setup.op_timeout_s
            seats.append(Seat(self._worker(controllers[turn], patience_s), controllers[turn]))
        return seats

    def main(self, time_ns: int) -> Generator:
        return TimeLimit(time_ns, Stagger(self._setup.rate, Ops(self._any, self._hear), self._random_source))

    def final(self) -> Generator:
        """A last key, which tells that the cluster writes again; then each is read. Each part gives up after
        RECOVERY_NS; the checkers see what is missing then."""
        return Phases(
            TimeLimit(RECOVERY_NS, Heard(UntilOk(self._add_key), self._hear)),
            TimeLimit(RECOVERY_NS, EachUntilOk(lambda: self._keys, self._final_read)),
        )

    def _worker(self, home: int, patience_s: float) -> RegisterWorker:
        controllers = Controllers(self._setup, home, patience_s)
        return RegisterWorker(
            self._setup.network, controllers, self._brokers, self._topic_ids, self._setup.op_timeout_s
        )

    def _any(self, turn: Turn) -> Op | Wait:
        is_missing = len(self._in_use) + len(self._asked_for) < _KEYS
        if is_missing and (not self._in_use or self._random_source.random() < _ADDS):
            return self._add_key(turn)
        if not self._in_use:
            return Wait()
        key = self._random_source.choice(self._in_use)
        shares = {"read": _READS, "cas": _CASES, "stale": _STALE_CASES, "trespass": _TRESPASSES}
        (share,) = self._random_source.choices(list(shares), weights=list(shares.values()))
        only_reads = turn.seat < len(self._setup.members.quorum)
        if share == "read" or only_reads or key.is_doubtful:
            return turn.invoke(READ, {"key": key.number})
        older = [version for version in key.values if version < key.newest]
        expected = self._random_source.choice(older) if share == "stale" and older else key.newest
        value = another_isr(key.values[expected], self._random_source)
        asked = {"key": key.number, "expected": expected, "value": value}
        if share == "trespass":
            # Nothing is to be wrong with it but what it is.
            return turn.invoke(TRESPASS, {"as": next(self._trespasses), **asked})
        return turn.invoke(CAS, asked)

    def _add_key(self, turn: Turn) -> Op:
        self._next_key += 1
        self._asked_for.add(self._next_key)
        return turn.invoke(ADD_KEY, {"key": self._next_key})

    def _hear(self, op: Op) -> None:
        if op.type is OpType.INVOKE:
            return
        number = int(op.value["key"])
        if op.f == ADD_KEY:
            self._asked_for.discard(number)
            if op.type is OpType.OK:
                self._keys[number] = Key(number)
                self._in_use.append(self._keys[number])
            return
        key = self._keys[number]
        if op.f == TRESPASS:
            key.is_doubtful |= op.type is OpType.OK and op.value["refused"] is None
            return
        if op.type is not OpType.FAIL:
            key.done += 1
            if key.done == _KEY_OPS:
                self._in_use.remove(key)
        if op.type is OpType.OK:
            key.learn(op.value["version"], op.value["value"])
        elif op.f == CAS and op.value["expected"] == key.newest:
            key.is_doubtful = True

    def _final_read(self, turn: Turn, number: int) -> Op:
        return turn.invoke(READ, {"key": number}, final=True)


def another_isr(current: list[int], random_source: Random) -> list[int]:
    """Some of the replicas in some order, the leader among them, and not what is there already."""
    followers = [replica for replica in REPLICAS if replica != LEADER]
    while True:
        isr = [LEADER, *random_source.sample(followers, random_source.randint(0, len(followers)))]
        random_source.shuffle(isr)
        if isr != current:
            return isr


class EachUntilOk:
    """One operation for each key, again until it ends as ok; as many at a time as there are processes."""

    def __init__(
        self,
        keys: Callable[[], Iterable[int]],
        make: Callable[[Turn, int], Op],
        pause_ns: int = SECOND_NS // 20,
    ) -> None:
        """`keys` is asked when the first operation is due."""
        self._keys = keys
        self._make = make
        self._pause_ns = pause_ns
        self._due_ns: dict[int, int] | None = None
        self._busy: dict[int, int] = {}

    def next(self, context: Context) -> Next:
        if self._due_ns is None:
            self._due_ns = dict.fromkeys(self._keys(), context.time_ns)
        if not self._due_ns and not self._busy:
            return None
        if not context.free:
            return Wait()
        for key, due_ns in self._due_ns.items():
            if due_ns <= context.time_ns:
                del self._due_ns[key]
                turn = context.free[0]
                self._busy[turn.process] = key
                return self._make(turn, key)
        return Wait(min(self._due_ns.values(), default=None))

    def update(self, op: Op) -> None:
        if op.type is OpType.INVOKE or self._due_ns is None or op.process not in self._busy:
            return
        key = self._busy.pop(op.process)
        if op.type is not OpType.OK:
            self._due_ns[key] = op.time_ns + self._pause_ns


class Heard:
    """The inner generator, with a listener from when it is asked first: what was before, others have heard."""

    def __init__(self, inner: Generator, hear: Callable[[Op], None]) -> None:
        self._inner = inner
        self._hear = hear
        self._has_begun = False

    def next(self, context: Context) -> Next:
        self._has_begun = True
        return self._inner.next(context)

    def update(self, op: Op) -> None:
        if self._has_begun:
            self._hear(op)
        self._inner.update(op)


class Undisturbed:
    """A checker's violations are in doubt if a controller had reason to fence a pretend broker; but not those of the
    time well before anything of that kind was noticed."""

    MARGIN_NS = 120 * SECOND_NS

    def __init__(self, inner: Checker) -> None:
        self.name = inner.name
        self._inner = inner

    def check(self, history: History) -> Results:
        results = self._inner.check(history)
        noticed = next((op for op in history if _fencings(op)), None)
        if noticed is None:
            return results
        fencings = max(_fencings(op) for op in history)
        verdict = results[VALID_KEY]
        if verdict is Verdict.INVALID:
            before = History(op for op in history if op.time_ns < noticed.time_ns - self.MARGIN_NS)
            earlier = self._inner.check(before)
            if earlier[VALID_KEY] is Verdict.INVALID:
                return earlier | {"fencings": fencings}
            verdict = Verdict.UNKNOWN
        return results | {VALID_KEY: verdict, "fencings": fencings}


def _fencings(op: Op) -> int:
    if op.f != READ or op.type is not OpType.OK or not isinstance(op.value, Mapping):
        return 0
    return int(op.value.get("fencings", 0))


def checkers(judged: Judged) -> list[Checker]:
    model = VersionedRegister(version=0, value=list(REPLICAS))
    names = (READ, CAS)
    spec = Spec(read=READ, cas=CAS, value=list(REPLICAS))
    return [
        Undisturbed(Linearizable(model, names, name="register-linear")),
        Undisturbed(VersionOrder(model, names, name="register-versions")),
        Undisturbed(Porcupine(judged.folder, spec=spec)),
        Trespass(),
    ]


KIND = WorkloadKind(
    name=NAME,
    about="in-sync sets compared and set by partition epochs; reads and changes are linearizable",
    make=Register,
    checkers=checkers,
    writes=frozenset({CAS, ADD_KEY}),
    reads=frozenset({READ}),
    seats_min=lambda members: 2 * len(members.quorum),
    config={"broker.session.timeout.ms": SESSION_TIMEOUT_MS},
)
