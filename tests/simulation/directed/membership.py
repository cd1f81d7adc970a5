"""Changes of the voters, where the rules of KIP-853 are all that keeps two majorities together."""

from collections.abc import Callable
from functools import partial

from kquorum.raft.messages import (
    AddRaftVoterRequest,
    ChangeVotersResponse,
    FetchRequest,
    FetchResponse,
    RemoveRaftVoterRequest,
    VoteRequest,
)
from kquorum.wire.messages.error_codes import ErrorCode
from tests.simulation.building import CLUSTER_ID
from tests.simulation.directed.elections import deliver_vote_request
from tests.simulation.directed.registry import schedule
from tests.simulation.directed.stage import Stage
from tests.simulation.errors import InvariantBroken

dynamic = partial(Stage, dynamic=True)


def add(stage: Stage, leader_id: int, node_id: int, within_ms: int = 0) -> ChangeVotersResponse | None:
    host = stage.hosts[node_id]
    request = AddRaftVoterRequest(
        cluster_id=CLUSTER_ID, timeout_ms=1000, voter=host.key, endpoints=(host.endpoint,)
    )
    answer = stage.ask(leader_id, request, within_ms)
    assert answer is None or isinstance(answer, ChangeVotersResponse)
    return answer


def remove(stage: Stage, leader_id: int, node_id: int, within_ms: int = 0) -> ChangeVotersResponse | None:
    request = RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter=stage.hosts[node_id].key)
    answer = stage.ask(leader_id, request, within_ms)
    assert answer is None or isinstance(answer, ChangeVotersResponse)
    return answer


def check_done(answer: ChangeVotersResponse | None, what: str) -> None:
    if answer is None or answer.error is not ErrorCode.none:
        raise InvariantBroken(f"{what}: {answer}")


@schedule(partial(dynamic, 1, 2))
def grow_and_shrink(stage: Stage) -> None:
    """Voters come and go one at a time, the first leader last."""
    stage.elect(1)
    stage.settle()
    check_done(add(stage, 1, 2, 500), "node 2 becomes a voter")
    check_done(add(stage, 1, 3, 500), "node 3 becomes a voter")
    stage.append(1)
    stage.settle()
    check_done(remove(stage, 1, 1, 500), "node 1 is removed")
    stage.until(lambda: stage.leads() in (2, 3), 2000, "another node leads")


@schedule(partial(dynamic, 3, 1))
def uncommitted_voters_are_cut(stage: Stage) -> None:
    """A voter set that is cut off the log is in force no longer."""
    stage.elect(1)
    stage.settle()
    alone = stage.cut_off(1, 4)
    add(stage, 1, 4)
    stage.run(20)
    assert 4 in stage.node(1).voters.ids
    stage.elect(2)
    stage.until(lambda: stage.node(1).role != "leader", 3000, "node 1 steps down")
    stage.end(alone)
    stage.settle()


@schedule(dynamic)
def two_changes_in_a_row(stage: Stage) -> None:
    """A second change waits until the first is committed."""
    stage.elect(1)
    stage.settle()
    silent = stage.drop(lambda message: isinstance(message.body, FetchRequest))
    remove(stage, 1, 3)
    answer = remove(stage, 1, 2, 10)
    stage.run(10)
    if answer is None or answer.error is not ErrorCode.request_timed_out:
        raise InvariantBroken(f"a second change was not turned away: {answer}")
    stage.end(silent)


@schedule(partial(dynamic, 4, 1))
def ongaros_trace(stage: Stage) -> None:
    """A leader changes no voters before it has committed in its epoch (Ongaro, 2015).

    Node 1 adds node 5; no other node gets the record. Node 2, leading with the old voters, removes node 1 at once and
    gets that to node 3 only, which are two of the three that are left. Then node 1, with the votes of 4 and 5,
    has three of its five.
    """
    stage.elect(1)
    stage.settle()
    first = stage.cut_off(1, 5)
    add(stage, 1, 5)
    stage.run(20)
    assert stage.node(5).voters.ids == (1, 2, 3, 4, 5)
    stage.power_off(1)
    silent = stage.drop(lambda message: message.source == 4 and isinstance(message.body, FetchRequest))
    only_votes = stage.drop(lambda message: message.source == 3 and isinstance(message.body, FetchRequest))
    stage.elect(2)
    stage.end(only_votes)
    _remove_as_soon_as_possible(stage)
    stage.run(30)
    for node_id in (2, 3):
        stage.power_off(node_id)
    stage.end(first, silent)
    stage.power_on(1)
    others = stage.drop(lambda message: isinstance(message.body, VoteRequest) and message.source != 1)
    stage.run(3000)
    stage.end(others)
    for node_id in (2, 3):
        stage.power_on(node_id)


def _remove_as_soon_as_possible(stage: Stage) -> None:
    """Node 2 is asked before anything of its epoch has reached node 3."""
    remove(stage, 2, 1)


@schedule(partial(dynamic, 5))
def one_step_at_a_time(stage: Stage) -> None:
    """A removal takes one voter out."""
    stage.elect(1)
    stage.settle()
    remove(stage, 1, 5)
    stage.run(50)


@schedule(partial(dynamic, max_fetch_bytes=1))
def leader_removes_itself(stage: Stage) -> None:
    """A leader on its way out does not count itself, and leaves once its removal is committed (KAFKA-16530)."""
    stage.elect(1)
    stage.settle()
    alone = stage.cut_off(1, 2)
    stage.append(1)
    remove(stage, 1, 1)
    stage.run(50)
    stage.end(alone)
    stage.until(lambda: stage.leads() in (2, 3), 2000, "another node leads")
    stage.run(2000)


@schedule(partial(dynamic, 1, 1))
def voter_that_never_fetched(stage: Stage) -> None:
    """A node that is not caught up is not made a voter: it would stop the quorum."""
    stage.elect(1)
    stage.drop(lambda message: message.source == 2 and isinstance(message.body, FetchRequest))
    stage.run(50)
    add(stage, 1, 2, 500)
    before = stage.checkers.committed_end
    stage.append(1)
    stage.until(
        lambda: stage.checkers.committed_end > before, 500, "a record is committed after the addition"
    )


@schedule(partial(dynamic, 1, 1))
def voter_that_was_caught_up_once(stage: Stage) -> None:
    """The high watermark stays when a new voter has less than what was committed without it."""
    stage.elect(1)
    stage.settle()
    stage.append(1, 3)
    stage.settle()
    late = stage.hold(lambda message: message.source == 2 and isinstance(message.body, FetchRequest))
    add(stage, 1, 2, 20)
    stage.append(1, 5)
    stage.run(20)
    stage.release(late)
    assert 2 in stage.node(1).voters.ids
    assert stage.checkers.committed_end == stage.node(1).log_end_offset - 1 > stage.node(2).log_end_offset


@schedule(partial(dynamic, election_timeout_ms=1000))
def voter_with_a_new_disk(stage: Stage) -> None:
    """A voter whose disk was replaced is another replica: it has no vote to give (KIP-853)."""
    _vote_lose_all_vote_again(stage, stage.replace_disk)


@schedule(partial(Stage, election_timeout_ms=1000))
def voter_that_lost_its_state(stage: Stage) -> None:
    """A voter that forgot its vote does not give it again (static voters, wiped disk)."""
    _vote_lose_all_vote_again(stage, stage.wipe)


@schedule(partial(Stage, election_timeout_ms=20, fetch_timeout_ms=2000))
def wiped_voter_and_the_deposed_leader(stage: Stage) -> None:
    """A voter that lost its state helps no leader to commit that others, and it itself, have deposed.

    Node 2, with node 3, has taken over from node 1, which does not know, and has committed. Node 2 is off now, and
    node 3 comes back with an empty disk.
    """
    stage.elect(1)
    stage.settle()
    alone = stage.cut_off(1)
    stage.append(1)
    stage.elect(2)
    stage.append(2)
    stage.until(lambda: stage.hosts[2].applied == stage.node(2).log_end_offset, 20, "node 2 commits")
    stage.power_off(2)
    stage.power_off(3)
    stage.wipe(3)
    stage.end(alone)
    stage.power_on(3)
    assert stage.node(1).role == "leader"
    stage.run(5000)
    stage.power_on(2)


@schedule(Stage)
def wiped_voter_under_load(stage: Stage) -> None:
    """A voter that lost its state trusts itself again though its leader always has more, so that the leader may die."""
    stage.elect(1)
    stage.append(1)
    stage.settle()
    stage.power_off(3)
    stage.wipe(3)
    stage.power_on(3)
    empty = stage.copy(
        lambda message: (
            message.target == 3
            and message.source == 1
            and isinstance(message.body, FetchResponse)
            and message.body.leader_epoch == stage.node(3).leader_epoch
            and message.body.error is ErrorCode.none
            and message.body.diverging is None
            and not message.body.records
        )
    )
    for _ in range(100):
        stage.append(1)
        stage.run(1)
    assert not empty.kept, "the schedule is about a load that never pauses"
    stage.power_off(1)
    stage.until(lambda: stage.leads() in (2, 3), 3000, "the other two elect one of them")
    stage.append(stage.leads())
    stage.run(500)
    stage.power_on(1)


def _vote_lose_all_vote_again(stage: Stage, lose: Callable[[int], None]) -> None:
    """Nodes 1 and 2 stand in one epoch. Node 3 votes for 1, which wins; it loses its disk and is asked by 2."""
    votes = stage.stand_together(1, 2)
    stage.drop(lambda message: {message.source, message.target} == {1, 2})
    too_early = stage.drop(lambda message: message.source == 2 and isinstance(message.body, VoteRequest))
    deliver_vote_request(stage, votes, candidate=1, voter=3)
    stage.until(lambda: stage.node(1).role == "leader", 50, "node 1 leads")
    stage.power_off(3)
    lose(3)
    stage.power_on(3)
    stage.drop(lambda message: {message.source, message.target} == {1, 3})
    stage.end(too_early)
    stage.run(600)
    stage.power_off(3)
    stage.mend()


@schedule(partial(dynamic, auto_join=True))
def voter_replaced_under_load(stage: Stage) -> None:
    """A voter with a new disk takes its old place by itself while records are committed all the time."""
    stage.elect(1)
    stage.settle()
    stage.power_off(3)
    stage.replace_disk(3)
    stage.power_on(3)
    new_key = stage.node(3).replica.key
    for _ in range(1000):
        before = stage.checkers.committed_end
        stage.append(stage.leads())
        stage.until(lambda before=before: stage.checkers.committed_end > before, 50, "a record is committed")  # type: ignore[misc]
        if stage.node(1).voters.contains(new_key):
            break
    if not stage.node(1).voters.contains(new_key):
        raise InvariantBroken("the voter with a new disk has not joined")
    stage.settle()
    stage.power_off(2)


@schedule(partial(dynamic, auto_join=True))
def removed_for_good(stage: Stage) -> None:
    """A voter that was removed does not come back by itself (KAFKA-19850)."""
    stage.elect(1)
    stage.settle()
    check_done(remove(stage, 1, 3, 500), "node 3 is removed")
    stage.run(3000)
    if 3 in stage.node(stage.leads()).voters.ids:
        raise InvariantBroken("node 3 was removed, and is a voter again without an operator's word")


@schedule(partial(dynamic, 1, 1, auto_join=True))
def joins_by_itself(stage: Stage) -> None:
    """An observer that may join makes itself a voter."""
    stage.elect(1)
    stage.until(lambda: 2 in stage.node(1).voters.ids, 3000, "node 2 joins")
