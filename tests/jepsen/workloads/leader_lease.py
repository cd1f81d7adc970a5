"""The workload leader-lease: who may write, asked of the controllers themselves, and who leads partitions.

Writers speak to one controller each, leader or not, and go on asking one that lost leadership. What was acknowledged
is then looked up in the committed log of that same controller: there it has an offset and an epoch. Meanwhile the
leader is asked to hand over now and then, the preferred leaders of some partitions change, every controller is asked
whether it leads, and a broker that does not exist registers again and again.
"""

from collections.abc import Callable, Container, Sequence

from tests.jepsen.checkers.broker_epochs import REJOIN, BrokerEpochs
from tests.jepsen.checkers.claims import CLAIM, Claims
from tests.jepsen.checkers.lease import LEADERSHIP, WRITE_AT, LeaderLease
from tests.jepsen.checkers.lease_writes import LIST_WRITES, LeaseWrites
from tests.jepsen.checkers.verdicts import Checker
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
from tests.jepsen.workloads.leadership_workers import ClaimWorker, RejoinWorker, TransferWorker
from tests.jepsen.workloads.lease_workers import (
    MARKER_PREFIX,
    BrokerWorker,
    MarkerPlaces,
    WriteAtWorker,
)
from tests.jepsen.workloads.workload import RECOVERY_NS, Judged, Seat, Setup, WorkloadKind

NAME = "leader-lease"
MAKE_LEADERSHIPS, SWAP, TRANSFER = "make-leaderships", "swap", "transfer"
OFFICES_PER_S, SWAPS_PER_S, TRANSFERS_PER_S = 4.0, 1.0, 0.12
CLAIMS_PER_S, REJOINS_PER_S = 6.0, 0.3
_WRITERS_EACH = 2


class LeaderLeaseWorkload:
    """Seats in this order: writers at the controllers, readers at the brokers, one who asks each controller whether it
    leads, one who swaps partitions' leaders, one who transfers leadership, one broker that rejoins."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._controllers = setup.members.quorum
        self._brokers = setup.members.brokers
        self._writers = _WRITERS_EACH * len(self._controllers)
        self._readers = self._writers + len(self._brokers)
        self._askers = self._readers + len(self._controllers)
        self._count = 0
        self._barrier: str | None = None

    def seats(self) -> Sequence[Seat]:
        setup, seats = self._setup, []
        for node_id in self._controllers:
            places = MarkerPlaces(setup.cluster.grpc_address(node_id), setup.op_timeout_s)
            seats += [Seat(WriteAtWorker(setup, node_id, places), node_id) for _ in range(_WRITERS_EACH)]
        seats += [Seat(BrokerWorker(setup, node_id), node_id) for node_id in self._brokers]
        seats += [Seat(ClaimWorker(setup, node_id), node_id) for node_id in self._controllers]
        seats.append(Seat(BrokerWorker(setup, self._brokers[-1]), None))
        seats.append(Seat(TransferWorker(setup), None))
        seats.append(Seat(RejoinWorker(setup), None))
        return seats

    def main(self, time_ns: int) -> Generator:
        swapper, transferrer, joiner = range(self._askers, self._askers + 3)
        going_on = SideBySide(
            self._at(range(self._writers), self._setup.rate, self._write),
            self._at(
                range(self._writers, self._readers), OFFICES_PER_S, lambda turn: turn.invoke(LEADERSHIP)
            ),
            self._at(range(self._readers, self._askers), CLAIMS_PER_S, lambda turn: turn.invoke(CLAIM)),
            self._at([swapper], SWAPS_PER_S, lambda turn: turn.invoke(SWAP)),
            self._at([transferrer], TRANSFERS_PER_S, lambda turn: turn.invoke(TRANSFER)),
            self._at([joiner], REJOINS_PER_S, lambda turn: turn.invoke(REJOIN)),
        )
        return TimeLimit(time_ns, Phases(self._made(), going_on))

    def final(self) -> Generator:
        """A write at whichever node leads; then every broker is read until it shows that one, and all that was before.

        Meanwhile the broker that rejoins does so twice: in a run with few moments of peace it may not have yet.
        """
        writes = Only(lambda turn: turn.seat < self._writers, UntilOk(self._write_last))
        rejoins = Phases(self._rejoined(), self._rejoined())
        leaderships = self._at_each_broker(LEADERSHIP, lambda op: op.type is OpType.OK)
        return Phases(
            SideBySide(TimeLimit(RECOVERY_NS, writes), TimeLimit(RECOVERY_NS, rejoins)),
            self._at_each_broker(LIST_WRITES, self._shows_last),
            leaderships,
        )

    def _at_each_broker(self, f: str, is_done: Callable[[Op], bool]) -> Generator:
        reads = OncePerNode(self._brokers, lambda turn: turn.invoke(f, final=True), is_done)
        return TimeLimit(RECOVERY_NS, Only(lambda turn: self._writers <= turn.seat < self._readers, reads))

    def _write_last(self, turn: Turn) -> Op:
        op = self._write(turn)
        self._barrier = op.value["marker"]
        return op

    def _shows_last(self, op: Op) -> bool:
        return op.type is OpType.OK and self._barrier in op.value

    def _made(self) -> Generator:
        make = UntilOk(lambda turn: turn.invoke(MAKE_LEADERSHIPS))
        return Only(lambda turn: turn.seat == self._askers, make)

    def _rejoined(self) -> Generator:
        rejoin = UntilOk(lambda turn: turn.invoke(REJOIN, final=True), pause_ns=SECOND_NS // 2)
        return Only(lambda turn: turn.seat == self._askers + 2, rejoin)

    def _at(self, seats: Container[int], rate: float, make: Callable[[Turn], Op]) -> Generator:
        return Stagger(rate, Only(lambda turn: turn.seat in seats, Ops(make)), self._setup.random_source)

    def _write(self, turn: Turn) -> Op:
        self._count += 1
        return turn.invoke(WRITE_AT, {"controller": turn.node, "marker": f"{MARKER_PREFIX}{self._count:06d}"})


def _checkers(judged: Judged) -> list[Checker]:
    return [LeaderLease(), LeaseWrites(judged.members.brokers), Claims(), BrokerEpochs()]


KIND = WorkloadKind(
    name=NAME,
    about="writes at every controller itself; one acknowledges at a time, and leader epochs never go back",
    make=LeaderLeaseWorkload,
    checkers=_checkers,
    writes=frozenset({WRITE_AT}),
    reads=frozenset({LEADERSHIP}),
    incidental=frozenset({SWAP, TRANSFER, REJOIN}),
    seats_min=lambda members: _WRITERS_EACH * len(members.quorum) + len(members.all) + 3,
)
