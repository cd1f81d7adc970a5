"""For tests of workloads: their generators driven in simulated time, against a function in place of a cluster."""

from collections.abc import Callable
from random import Random
from typing import Any

from kquorum.node.config.addresses import HostPort
from tests.jepsen.core.generator import Context, Generator, Turn, Wait
from tests.jepsen.core.history import History, Op
from tests.jepsen.core.members import Members
from tests.jepsen.workloads.workload import Setup, Workload

_LATENCY_NS = 2_000_000


class Nowhere:
    """In place of a network and of a cluster."""

    def address_of(self, _node_id: int) -> HostPort:
        return HostPort("127.0.0.1", 1)


def setup_of(seed: int, *, brokers: tuple[int, ...] = (11, 12), concurrency: int = 6) -> Setup:
    """Workers made from it have no connections; generators use none."""
    nowhere: Any = Nowhere()
    return Setup(
        network=nowhere,
        cluster=nowhere,
        members=Members((1, 2, 3), brokers),
        random_source=Random(seed),
        rate=50.0,
        concurrency=concurrency,
        op_timeout_s=1.0,
    )


def drive(workload: Workload, generator: Generator, answer: Callable[[Op], Op]) -> History:
    """Each operation ends with `answer` before the next one begins; until the generator has nothing more."""
    history = History()
    seats = [seat.node for seat in workload.seats()]
    process_at = list(range(len(seats)))
    now_ns, first = 0, 0
    while True:
        order = [*range(first, len(seats)), *range(first)]
        turns = tuple(Turn(process_at[seat], seat, seats[seat]) for seat in order)
        found = generator.next(Context(now_ns, turns))
        if found is None:
            return history
        if isinstance(found, Wait):
            assert found.until_ns is None or found.until_ns > now_ns, "waiting for the past never ends"
            now_ns = now_ns + _LATENCY_NS if found.until_ns is None else found.until_ns
            continue
        first = (first + 1) % len(seats)
        for op in (found, answer(found)):
            now_ns += _LATENCY_NS
            generator.update(history.append(_at(op, now_ns)))
        if history[-1].type == "info":
            process_at[found.process % len(seats)] += len(seats)


def _at(op: Op, time_ns: int) -> Op:
    return Op(
        type=op.type,
        f=op.f,
        value=op.value,
        process=op.process,
        time_ns=time_ns,
        node=op.node,
        error=op.error,
        final=op.final,
    )
