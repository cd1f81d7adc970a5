"""The workload membership: two clients at once add and remove voters, while topics are created (KIP-853)."""

from collections.abc import Sequence

from tests.jepsen.checkers.voter_logs import VoterLogs
from tests.jepsen.checkers.voters import LIST, PUT, READ, Voters
from tests.jepsen.core.generator import (
    Generator,
    OncePerNode,
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
from tests.jepsen.workloads.agreement import Agreement, OfSeats
from tests.jepsen.workloads.voter_book import VoterBook
from tests.jepsen.workloads.voter_changes import (
    ChangeWorker,
    TopicWorker,
    VotersReader,
)
from tests.jepsen.workloads.workload import RECOVERY_NS, Seat, Setup, WorkloadKind

NAME = "membership"
SPARES = 2
_CHANGERS = 2
_CHANGES_A_SECOND_MIN = 0.5
_VIA_A_BROKER = 0.3


class Membership:
    """The first seats change the voters, then each controller has one that reads, and the rest write at brokers."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._random_source = setup.random_source
        self._quorum = setup.members.quorum
        self._brokers = setup.members.brokers
        self._book = VoterBook(setup.members)
        self._next_element = 0
        self._barrier: int | None = None
        self._agreement = Agreement(self._quorum, READ)

    def seats(self) -> Sequence[Seat]:
        network, timeout_s = self._setup.network, self._setup.op_timeout_s
        writers = max(len(self._brokers), self._setup.concurrency - self._first_writer)
        nodes = [self._brokers[place % len(self._brokers)] for place in range(writers)]
        return [
            *(Seat(ChangeWorker(network, timeout_s), None) for _ in range(_CHANGERS)),
            *(Seat(VotersReader(network, node, timeout_s, READ), node) for node in self._quorum),
            *(Seat(TopicWorker(network, node, timeout_s), node) for node in nodes),
        ]

    @property
    def _first_writer(self) -> int:
        return _CHANGERS + len(self._quorum)

    def main(self, time_ns: int) -> Generator:
        rate = self._setup.rate
        changes = self._at(max(_CHANGES_A_SECOND_MIN, rate / 20), Ops(self._change))
        reads = self._at(rate / 2, Ops(self._read, self._book.hear))
        writes = self._at(rate / 2, Ops(self._write))
        together = SideBySide(
            OfSeats(lambda seat: seat < _CHANGERS, changes),
            OfSeats(lambda seat: _CHANGERS <= seat < self._first_writer, reads),
            OfSeats(self._writes, writes),
        )
        return TimeLimit(time_ns, together)

    def final(self) -> Generator:
        """A last topic, which shows that a leader commits; the voters, until all controllers agree; the topics."""
        barrier = OfSeats(self._writes, UntilOk(self._put_barrier))
        lists = OncePerNode(self._brokers, lambda turn: turn.invoke(LIST, final=True), self._shows_barrier)
        return Phases(TimeLimit(RECOVERY_NS, barrier), self._agreement.phase(), TimeLimit(RECOVERY_NS, lists))

    def _at(self, rate: float, inner: Generator) -> Generator:
        return Stagger(rate, inner, self._random_source)

    def _writes(self, seat: int) -> bool:
        return seat >= self._first_writer

    def _change(self, turn: Turn) -> Op | Wait:
        chosen, leader = self._book.choose(self._random_source), self._book.leader
        if chosen is None:
            return Wait()
        assert leader is not None
        via = (
            self._random_source.choice(self._brokers)
            if self._random_source.random() < _VIA_A_BROKER
            else leader
        )
        value = {"voter": chosen.voter, "directory": chosen.directory, "via": via}
        return turn.invoke(chosen.f, value)

    def _read(self, turn: Turn) -> Op:
        return turn.invoke(READ)

    def _write(self, turn: Turn) -> Op:
        return turn.invoke(PUT, self._new_element())

    def _put_barrier(self, turn: Turn) -> Op:
        self._barrier = self._new_element()
        return turn.invoke(PUT, self._barrier, final=True)

    def _shows_barrier(self, op: Op) -> bool:
        return op.type is OpType.OK and self._barrier in op.value

    def _new_element(self) -> int:
        self._next_element += 1
        return self._next_element


KIND = WorkloadKind(
    name=NAME,
    about="voters added and removed by two clients at once; no acknowledged change and no topic is lost",
    make=Membership,
    checkers=lambda judged: [Voters(judged.members), VoterLogs(judged.folder, judged.members)],
    writes=frozenset({PUT}),
    seats_min=lambda members: _CHANGERS + len(members.quorum) + len(members.brokers),
    spares=SPARES,
)
