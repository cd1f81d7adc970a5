"""Leadership handed from voter to voter in calm worlds of every kind: how long it takes until the next leader commits.

    python -m tests.simulation.transfers [--seed 1] [--runs 300] [--json]

Nothing fails in these worlds. Messages, flushes and election states take their time, records are written all the
while, and a transfer comes at a bad moment: right after another, with a target that lags behind, was started again,
or has just become a voter. What must hold (Raft, section 3.10): the target leads in the very next epoch, the operator
hears of it then, and the quorum is without a leader no longer than messages and disks need, which is less than an
election timeout.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from random import Random

from kquorum.raft.inputs import RequestReceived
from kquorum.raft.messages import (
    AddRaftVoterRequest,
    ChangeVotersResponse,
    Request,
    Response,
    TransferLeadershipRequest,
    TransferLeadershipResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from tests.simulation.errors import InvariantBroken
from tests.simulation.hosts import Host, WaitingReply
from tests.simulation.membership import Operator
from tests.simulation.options import Options
from tests.simulation.run import plan_of
from tests.simulation.world import World

CONDITIONS = ("idle", "under load", "back to back", "lagging", "restarted", "added")
PATIENCE_MS = 30_000
# One after the other: EndQuorumEpoch, pre-vote and vote with their answers, the leader's word, a Fetch, its answer, and
# the Fetch that acknowledges.
MESSAGES = 9
# The candidate's vote, the voter's, the leader's own state, the follower's.
STATES = 4
# The first record of the epoch at the leader and at the follower, each behind a flush that is under way.
FLUSHES = 4


@dataclass(frozen=True, slots=True)
class Transfer:
    """In milliseconds: from the request to the answer, and how long no leader could commit, with the bound of that."""

    seed: int
    condition: str
    to_answer_ms: int
    without_leader_ms: int
    bound_ms: int


class TransferOperator(Operator):
    """Asks one thing at a time, and keeps the answer."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.answer: Response | None = None

    def answered(self, host: Host, request: Request, response: Response) -> None:
        self.answer = response

    def ask(self, host: Host, request: Request) -> None:
        self.answer = None
        host.next_request_id += 1
        host.waiting_replies[host.next_request_id] = WaitingReply(None, 0, 0, 0, request, 0)
        self.world.deliver(host, host.life, RequestReceived(host.next_request_id, request))


class TransferWorld(World):
    """`script` is the random source of what happens; the rest of the world has its own."""

    operator: TransferOperator

    def __init__(self, seed: int, *, is_traced: bool = False) -> None:
        self.script = Random(seed ^ 0x7A45)
        super().__init__(seed, calm_options(seed), is_traced=is_traced)
        self.operator = TransferOperator(self)
        self.clients.begin()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        bound_ms = self.now_ms + PATIENCE_MS
        while not condition():
            if self.now_ms >= bound_ms:
                raise InvariantBroken(f"not within {PATIENCE_MS} ms: {what}")
            self.run_until(self.now_ms + 1)

    def until_both(self, first: Callable[[], bool], second: Callable[[], bool]) -> tuple[int, int]:
        """When each of them was true for the first time."""
        since_ms: list[int | None] = [None, None]

        def look() -> bool:
            for index, condition in enumerate((first, second)):
                if since_ms[index] is None and condition():
                    since_ms[index] = self.now_ms
            return None not in since_ms

        self.until(look, "the transfer is answered, and the new leader commits")
        answered_ms, committed_ms = since_ms
        assert answered_ms is not None
        assert committed_ms is not None
        return answered_ms, committed_ms

    def ask(self, host: Host, request: Request) -> Response:
        self.operator.ask(host, request)
        self.until(lambda: self.operator.answer is not None, f"{type(request).__name__} is answered")
        assert self.operator.answer is not None
        return self.operator.answer

    def has_committed_in(self, epoch: int) -> bool:
        """Whether the leader of this epoch, or of a later one, tells its state machine that it leads."""
        leader = self.leader()
        if leader is None or leader.node is None or leader.node.leader_epoch < epoch:
            return False
        announced = leader.node.replica.announced
        return announced.leader_id == leader.node_id and announced.epoch == leader.node.leader_epoch

    def settled_leader(self) -> Host:
        """A leader that has committed, and whom every voter that runs fetches from."""
        self.until(self._is_settled, "a leader is followed by all")
        leader = self.leader()
        assert leader is not None
        return leader

    def _is_settled(self) -> bool:
        leader = self.leader()
        return leader is not None and self.has_committed_in(0) and self.checkers.is_settled(leader)

    @property
    def bound_ms(self) -> int:
        """With the slowest of all messages and disks, and one pre-vote that was asked too early."""
        slowest_state_ms = max(host.state_ms[1] for host in self.hosts.values())
        slowest_flush_ms = max(host.flush_ms_max for host in self.hosts.values())
        retry_ms = max(20, self.options.election_timeout_ms // 10)
        return (
            MESSAGES * self.options.delay_ms_max
            + STATES * slowest_state_ms
            + FLUSHES * slowest_flush_ms
            + 2 * retry_ms
        )


def calm_options(seed: int) -> Options:
    """A world of `options_of`, in which nothing fails, and whose disks and messages are fast enough for its times: an
    election that cannot be over within its timeout is no fault of the leader that hands over."""
    options, _ = plan_of(seed)
    random_source = Random(seed ^ 0xCA1)
    election_timeout_ms, fetch_timeout_ms = random_source.choice(((100, 300), (200, 500), (1000, 2000)))
    return replace(
        options,
        quorum=random_source.choice(("static", "dynamic", "dynamic")),
        voters=random_source.choice((2, 3, 3, 4, 5)),
        spares=1,
        observers=0,
        auto_join=False,
        election_timeout_ms=election_timeout_ms,
        fetch_timeout_ms=fetch_timeout_ms,
        delay_ms_max=random_source.choice((1, 2, election_timeout_ms // 50)),
        flush_ms_max=random_source.choice((0, 1, election_timeout_ms // 100)),
        state_ms_max=random_source.choice((0, 1, election_timeout_ms // 40)),
        operation_every_ms=random_source.choice((1, 5, 50)),
        clock_drift_percent=0,
        mixes_releases=False,
        max_fetch_bytes=1_000_000,
        faults=(),
        fault_count=0,
    )


def transfers_of(seed: int, *, is_traced: bool = False) -> list[Transfer]:
    """One transfer in each condition that the world of this seed has a place for; raises InvariantBroken."""
    world = TransferWorld(seed, is_traced=is_traced)
    conditions = list(CONDITIONS)
    world.script.shuffle(conditions)
    try:
        done = [transfer for condition in conditions for transfer in _transfers_in(world, condition)]
        world.clients.history.check_against(world.checkers.committed.batches)
    except InvariantBroken as broken:
        trace = "\n".join(world.trace[-40:])
        raise InvariantBroken(
            f"seed {seed}: {broken}\n"
            f"replay: python -m tests.simulation.transfers --seed {seed} --runs 1 --trace\n{trace}"
        ) from broken
    return done


def _transfers_in(world: TransferWorld, condition: str) -> list[Transfer]:
    """Make the condition true, and hand over; twice for two in a row, and not at all where it cannot be true."""
    leader = world.settled_leader()
    assert leader.node is not None
    others = [world.hosts[voter_id] for voter_id in leader.node.voters.others(leader.node_id)]
    target = world.script.choice(others)
    match condition:
        case "idle":
            world.clients.is_working = False
            world.run_until(world.now_ms + 2 * world.options.fetch_timeout_ms)
            world.clients.is_working = True
            world.clients.begin()
        case "under load":
            world.clients.burst(leader, 20)
        case "lagging":
            target.paused_until_ms = world.now_ms + world.options.election_timeout_ms // 2
            world.clients.burst(leader, 20)
        case "restarted":
            world.crash(target)
            world.revive(target)
        case "added" if world.options.quorum == "static":
            return []
        case "added":
            target = _added(world, leader)
        case _:
            there = _transfer(world, condition, leader, target)
            return [there, _transfer(world, condition, target, leader)]
    return [_transfer(world, condition, leader, target)]


def _added(world: TransferWorld, leader: Host) -> Host:
    """The spare node as a voter, as soon as the leader says that it is one."""
    assert leader.node is not None
    voters = leader.node.voters.voters
    target = next(host for host in world.hosts.values() if host.node_id not in voters)
    request = AddRaftVoterRequest(
        cluster_id=world.cluster_id, timeout_ms=5000, voter=target.key, endpoints=(target.endpoint,)
    )
    bound_ms = world.now_ms + PATIENCE_MS
    while world.now_ms < bound_ms:
        answer = world.ask(leader, request)
        assert isinstance(answer, ChangeVotersResponse)
        if answer.error is ErrorCode.none:
            return target
        world.run_until(world.now_ms + 20)
    raise InvariantBroken(f"node {target.node_id} was not added within {PATIENCE_MS} ms")


def _transfer(world: TransferWorld, condition: str, leader: Host, target: Host) -> Transfer:
    assert leader.node is not None
    assert target.node is not None
    epoch, asked_ms = leader.node.leader_epoch, world.now_ms
    world.note("%s: leadership is to go from node %d to node %d", condition, leader.node_id, target.node_id)
    world.operator.ask(leader, TransferLeadershipRequest(target_id=target.node_id))
    world.until(lambda: leader.node is None or leader.node.role != "leader", "the leader resigns")
    resigned_ms = world.now_ms
    answered_ms, committed_ms = world.until_both(
        lambda: world.operator.answer is not None, lambda: world.has_committed_in(epoch + 1)
    )
    if world.operator.answer != TransferLeadershipResponse():
        raise InvariantBroken(f"{condition}: node {target.node_id} does not lead: {world.operator.answer}")
    if target.node.role != "leader" or target.node.leader_epoch != epoch + 1:
        raise InvariantBroken(f"{condition}: node {target.node_id} does not lead epoch {epoch + 1}")
    without_leader_ms = committed_ms - resigned_ms
    if without_leader_ms > world.bound_ms:
        raise InvariantBroken(
            f"{condition}: for {without_leader_ms} ms no leader could commit, and {world.bound_ms} are enough"
        )
    return Transfer(world.seed, condition, answered_ms - asked_ms, without_leader_ms, world.bound_ms)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--runs", type=int, default=60, help="worlds, each of them with up to seven transfers"
    )
    parser.add_argument("--trace", action="store_true", help="with a failure, its trace")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    done: list[Transfer] = []
    for seed in range(options.seed, options.seed + options.runs):
        try:
            done += transfers_of(seed, is_traced=options.trace)
        except InvariantBroken as broken:
            sys.stderr.write(f"{broken}\n")
            return 1
    if options.json:
        print(json.dumps([asdict(transfer) for transfer in done]))
        return 0
    by_condition = defaultdict(list)
    for transfer in done:
        by_condition[transfer.condition].append(transfer)
    for condition, transfers in sorted(by_condition.items()):
        shares = sorted(transfer.without_leader_ms / transfer.bound_ms for transfer in transfers)
        longest = max(transfer.without_leader_ms for transfer in transfers)
        print(
            f"{condition:<14}{len(transfers):>5} transfers, without a leader for {longest} ms at most; "
            f"of the bound: p50 {shares[len(shares) // 2]:.2f}, max {shares[-1]:.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
