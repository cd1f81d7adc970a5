"""Generators say when what is to be done, and the interpreter does it."""

import threading
from random import Random
from typing import Any

import pytest

from tests.jepsen.checkers.availability import HEAL
from tests.jepsen.core.generator import (
    SECOND_NS,
    Context,
    Generator,
    Next,
    OncePerNode,
    OnSeats,
    Ops,
    Phases,
    Schedule,
    SideBySide,
    Stagger,
    Step,
    TimeLimit,
    Together,
    Turn,
    UntilOk,
    Wait,
)
from tests.jepsen.core.history import NEMESIS, Op, OpType
from tests.jepsen.core.interpreter import Interpreter
from tests.jepsen.core.members import Members
from tests.jepsen.faults.catalogue import FAULTS, UnknownFault, plan
from tests.jepsen.workloads.topics_set import TopicsSet
from tests.jepsen.workloads.workload import Setup


def make(turn: Turn) -> Op:
    return turn.invoke("create")


def at(time_ns: int, *free: int) -> Context:
    """Seats are as many as processes here: no process crashed."""
    return Context(time_ns, tuple(Turn(process, process, 11 + process % 2) for process in free))


def topics_set(brokers: tuple[int, ...], rate: float, seed: int) -> TopicsSet:
    """Its generators send no requests, so it has no cluster."""
    nowhere: Any = None
    setup = Setup(
        network=nowhere,
        cluster=nowhere,
        members=Members((1,), brokers),
        random_source=Random(seed),
        rate=rate,
        concurrency=4,
        op_timeout_s=1.0,
    )
    return TopicsSet(setup)


def run_instantly(generator: Generator, processes: int, until_ns: int) -> list[Op]:
    """What is invoked when every operation ends as ok at once, in simulated time."""
    now_ns = 0
    done: list[Op] = []
    while now_ns <= until_ns:
        turn = len(done) % processes
        clients = [(turn + place) % processes for place in range(processes)]
        answer: Next = generator.next(at(now_ns, *clients, NEMESIS))
        if answer is None:
            break
        if isinstance(answer, Wait):
            assert answer.until_ns is None or answer.until_ns > now_ns, "waiting for the past never ends"
            now_ns = now_ns + 1_000_000 if answer.until_ns is None else answer.until_ns
            continue
        op = Op(
            type=OpType.INVOKE,
            f=answer.f,
            value=answer.value,
            process=answer.process,
            time_ns=now_ns,
            node=11 + answer.process % 2,
            final=answer.final,
        )
        generator.update(op)
        generator.update(op.ended(OpType.OK, op.value))
        done.append(op)
    return done


def test_stagger_keeps_the_rate() -> None:
    generator = TimeLimit(100 * SECOND_NS, Stagger(20.0, Ops(make), Random(1)))
    assert 1800 < len(run_instantly(generator, 3, 1000 * SECOND_NS)) < 2200


def test_a_time_limit_ends_what_would_go_on() -> None:
    generator = TimeLimit(SECOND_NS, Ops(make))
    assert isinstance(generator.next(at(5, 0)), Op)
    assert isinstance(generator.next(at(SECOND_NS + 4, 0)), Op)
    assert generator.next(at(SECOND_NS + 5, 0)) is None


def test_a_phase_begins_when_all_of_the_one_before_has_ended() -> None:
    generator = Phases(TimeLimit(10, Ops(make)), Ops(make))
    op = generator.next(at(0, 0, 1))
    assert isinstance(op, Op)
    generator.update(op)
    assert generator.next(at(20, 1)) == Wait()
    generator.update(op.ended(OpType.INFO, None))
    assert isinstance(generator.next(at(21, 1)), Op)


def test_clients_and_nemesis_have_processes_of_their_own() -> None:
    generator = Together(
        TimeLimit(10 * SECOND_NS, Stagger(5.0, Ops(make), Random(2))),
        Schedule([Step(2, "cut"), Step(3, "heal")]),
    )
    ops = run_instantly(generator, 2, 60 * SECOND_NS)
    assert [(op.f, op.time_ns) for op in ops if op.process == NEMESIS] == [
        ("cut", 2 * SECOND_NS),
        ("heal", 5 * SECOND_NS),
    ]
    assert {op.f for op in ops if op.process != NEMESIS} == {"create"}


def test_until_ok_tries_one_at_a_time_until_it_succeeds() -> None:
    generator = UntilOk(make, pause_ns=10)
    op = generator.next(at(0, 4, 5))
    assert isinstance(op, Op)
    generator.update(op)
    assert generator.next(at(1, 5)) == Wait()
    generator.update(op.ended(OpType.INFO, None))
    assert generator.next(at(1, 5)) == Wait(10)
    again = generator.next(at(10, 5))
    assert isinstance(again, Op)
    generator.update(again.ended(OpType.OK, None))
    assert generator.next(at(11, 4, 5)) is None


def test_once_per_node_asks_every_node_until_it_is_content() -> None:
    contents = {11: [False, True], 12: [True]}

    def is_done(op: Op) -> bool:
        return contents[op.node or 0].pop(0)

    asked = run_instantly(OncePerNode((11, 12), make, is_done), 4, 10 * SECOND_NS)
    assert sorted(op.node or 0 for op in asked) == [11, 11, 12]
    assert contents == {11: [], 12: []}


def test_topics_set_deletes_only_what_was_acknowledged_and_never_uses_a_name_twice() -> None:
    workload = topics_set((11, 12), rate=100.0, seed=3)
    ops = run_instantly(workload.main(20 * SECOND_NS), 4, 60 * SECOND_NS)
    created = [op.value for op in ops if op.f == "create"]
    deleted = [op.value for op in ops if op.f == "delete"]
    assert len(created) == len(set(created)) > 100
    assert len(deleted) == len(set(deleted)) > 10
    assert set(deleted) <= set(created)
    assert {op.f for op in ops if op.process < 2} == {"list"}, "one client of each broker only reads"


def test_one_seed_asks_the_same_questions() -> None:
    asked = [
        [
            (op.f, op.value, op.time_ns)
            for op in run_instantly(topics_set((11,), rate=50.0, seed=4).main(SECOND_NS), 4, SECOND_NS)
        ]
        for _ in range(2)
    ]
    assert asked[0] == asked[1] != []


def test_the_plan_has_whole_faults_only() -> None:
    assert plan("kill-one", 20, 5, 8, Random(0)).steps == (Step(5, "kill-one"), Step(8, HEAL))
    assert len(plan("kill-one", 60, 5, 8, Random(0)).steps) == 8
    assert plan("kill-one", 10, 5, 8, Random(0)).steps == plan("none", 60, 5, 8, Random(0)).steps == ()


def test_faults_come_in_turn_or_at_the_same_time() -> None:
    in_turn = plan("kill-one,isolate-leader", 30, 5, 8, Random(0)).steps
    assert [step.f for step in in_turn] == ["kill-one", HEAL, "isolate-leader", HEAL]
    both = plan("kill-one+isolate-leader", 20, 5, 8, Random(0)).steps
    assert both == (Step(5, "kill-one"), Step(0, "isolate-leader"), Step(8, HEAL))


def test_one_fault_comes_half_way_through_another() -> None:
    steps = plan("slow-fsync>kill-one+isolate-leader", 20, 5, 8, Random(0)).steps
    assert steps == (Step(5, "slow-fsync"), Step(4, "kill-one"), Step(0, "isolate-leader"), Step(4, HEAL))


def test_an_unknown_fault_is_named_with_those_that_there_are() -> None:
    with pytest.raises(UnknownFault, match=r"no nemesis 'rust'; there are none, .*kill-one.*, all"):
        plan("kill-one,rust", 20, 5, 8, Random(0))


def test_at_random_every_fault_comes_and_is_healed_and_few_go_on_at_once() -> None:
    steps = plan("all", 1800, 5, 8, Random(5)).steps
    going_on: set[str] = set()
    seen: set[str] = set()
    for step in steps:
        if step.f == HEAL:
            going_on.remove(step.value["fault"])
        else:
            assert step.f not in going_on
            going_on.add(step.f)
            seen.add(step.f)
            assert len(going_on) <= 3
    assert not going_on
    assert seen == set(FAULTS)
    assert sum(step.delay_s for step in steps) < 1800
    assert steps == plan("all", 1800, 5, 8, Random(5)).steps


def test_parts_side_by_side_have_seats_of_their_own() -> None:
    def counting(name: str) -> tuple[list[int], Generator]:
        seats: list[int] = []

        def make_one(turn: Turn) -> Op:
            seats.append(turn.seat)
            return turn.invoke(name)

        return seats, TimeLimit(SECOND_NS, Stagger(50.0, Ops(make_one), Random(1)))

    (left, a), (right, b) = counting("a"), counting("b")
    ops = run_instantly(SideBySide(OnSeats(0, 2, 5, a), OnSeats(2, 3, 5, b)), 5, 10 * SECOND_NS)
    assert set(left) == {0, 1}
    assert set(right) == {0, 1, 2}
    assert {op.process for op in ops if op.f == "a"} == {0, 1}
    assert {op.process for op in ops if op.f == "b"} == {2, 3, 4}


class FakeWorker:
    """Ends its operations as told; hears how often it was opened and closed."""

    def __init__(self, ends: list[OpType | type[Exception]]) -> None:
        self._ends = ends
        self.calls: list[str] = []
        self.threads: set[str] = set()

    def open(self) -> None:
        self.calls.append("open")

    def invoke(self, op: Op) -> Op:
        self.threads.add(threading.current_thread().name)
        end: Any = self._ends.pop(0)
        if isinstance(end, OpType):
            return op.ended(end, op.value)
        raise end("it broke")

    def close(self) -> None:
        self.calls.append("close")


class Exactly:
    """So many operations."""

    def __init__(self, count: int) -> None:
        self._left = count

    def next(self, context: Context) -> Next:
        if not self._left:
            return None
        clients = [turn for turn in context.free if turn.process != NEMESIS]
        if not clients:
            return Wait()
        self._left -= 1
        return make(clients[0])

    def update(self, op: Op) -> None:
        pass


def test_a_client_that_crashed_goes_on_as_another_process() -> None:
    worker = FakeWorker([OpType.OK, OpType.INFO, RuntimeError, OpType.FAIL])
    history = Interpreter([worker], [11], FakeWorker([])).run(Exactly(4))
    ends = [(op.type, op.process) for op in history if op.type is not OpType.INVOKE]
    assert ends == [(OpType.OK, 0), (OpType.INFO, 0), (OpType.INFO, 1), (OpType.FAIL, 2)]
    assert [op.error for op in history if op.process == 1][-1] == "RuntimeError: it broke"
    assert worker.calls == ["open", "close", "open", "close", "open", "close"]
    assert len(worker.threads) == 1


def test_the_history_is_in_the_order_in_which_things_happened() -> None:
    workers = [FakeWorker([OpType.OK] * 50) for _ in range(3)]
    history = Interpreter(workers, [11, 12, 13], FakeWorker([])).run(Exactly(50))
    assert [op.time_ns for op in history] == sorted(op.time_ns for op in history)
    assert [op.index for op in history] == list(range(100))
    assert all(operation.is_ok for operation in history.operations())
    assert {op.node for op in history} == {11, 12, 13}


class WithShortWaits(Exactly):
    """Between two operations it asks for moments of 1 us, with no client at work."""

    _turns = 0

    def next(self, context: Context) -> Next:
        if len(context.free) < 4:
            return Wait()
        self._turns += 1
        return super().next(context) if self._turns % 30 == 0 else Wait(context.time_ns + 1_000)


def test_a_wait_that_is_over_at_once_ends() -> None:
    """A queue of the standard library waited for ever there."""
    workers = [FakeWorker([OpType.OK] * 1000) for _ in range(3)]
    interpreter = Interpreter(workers, [11, 12, 13], FakeWorker([]))
    thread = threading.Thread(target=interpreter.run, args=(WithShortWaits(1000),), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert len(interpreter.history.operations()) == 1000
