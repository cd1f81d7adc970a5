"""Which node may lead, which may disturb, and how long there is no leader."""

from functools import partial

from kquorum.raft.inputs import RequestReceived
from kquorum.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    TransferLeadershipRequest,
    VoteRequest,
    VoteResponse,
)
from tests.simulation.directed.post import Message, Rule
from tests.simulation.directed.registry import schedule
from tests.simulation.directed.stage import Stage
from tests.simulation.errors import InvariantBroken

three = Stage
five = partial(Stage, 5)


@schedule(three)
def lost_tail_then_the_same_vote(stage: Stage) -> None:
    """A candidate that lost its log's tail in a crash does not win with the vote that the longer log had won.

    Node 1 has a record that it has not flushed, and which nodes 2 and 3 commit. It stands on the strength of that
    record, gets node 2's vote, and crashes; when it is back, node 2 would repeat its grant without a look.
    """
    stage.elect(3)
    stage.append(3)
    stage.settle()
    stage.stick(1)
    stage.append(3)
    stage.run(20)
    stage.power_off(3)
    stage.stand(1)
    stage.until(lambda: stage.node(2).replica.state.voted == stage.node(1).replica.key, 5, "node 2 votes")
    stage.power_off(1)
    stage.power_on(1)
    stage.run(50)
    stage.elect(2)


@schedule(three)
def longer_log_of_an_older_epoch(stage: Stage) -> None:
    """A log that is longer, and of an older epoch, wins no election."""
    stage.elect(1)
    stage.settle()
    alone = stage.cut_off(1)
    stage.append(1, 9)
    stage.elect(2)
    stage.until(lambda: stage.node(1).role != "leader", 3000, "node 1 steps down")
    stage.append(2)
    stage.until(lambda: stage.hosts[2].applied == stage.node(2).log_end_offset, 100, "node 2 commits")
    stage.power_off(2)
    stage.end(alone)
    others = stage.drop(lambda message: isinstance(message.body, VoteRequest) and message.source != 1)
    stage.run(2000)
    stage.end(others)
    stage.power_on(2)


@schedule(three)
def restarted_leader_lost_its_tail(stage: Stage) -> None:
    """A leader that was restarted does not lead its epoch on: what its followers committed it may have lost."""
    stage.elect(1)
    stage.settle()
    stage.stick(1)
    stage.append(1, 2)
    stage.run(10)
    stage.power_off(1)
    stage.power_on(1)
    stage.append(1)
    stage.run(500)


@schedule(three)
def second_candidate_of_an_epoch(stage: Stage) -> None:
    """A voter whose candidate has won gives another candidate of the epoch nothing."""
    votes = stage.stand_together(1, 2)
    stage.drop(lambda message: {message.source, message.target} == {1, 2})
    stage.drop(lambda message: isinstance(message.body, FetchRequest))
    deliver_vote_request(stage, votes, candidate=1, voter=3)
    stage.until(lambda: stage.node(3).role == "follower", 50, "node 3 follows node 1")
    deliver_vote_request(stage, votes, candidate=2, voter=3)
    stage.run(50)


def deliver_vote_request(stage: Stage, votes: Rule, candidate: int, voter: int) -> None:
    """One of the vote requests that were held back."""
    for host, life, event in votes.kept:
        if host.node_id == voter and isinstance(event, RequestReceived):
            assert isinstance(event.request, VoteRequest)
            if event.request.candidate.id == candidate:
                stage.deliver(host, life, event)


@schedule(partial(Stage, 4))
def two_halves(stage: Stage) -> None:
    """Of four voters that fall in two halves neither half elects a leader."""
    stage.cut_off(1, 2)
    stage.run(3000)
    if stage.leads() != -1:
        raise InvariantBroken(f"node {stage.leads()} leads with half of the voters")


@schedule(three)
def back_after_a_minute(stage: Stage) -> None:
    """A follower that was cut off for a minute does not disturb the quorum when it is back (KIP-996)."""
    stage.elect(1)
    stage.settle()
    epoch = stage.node(1).leader_epoch
    alone = stage.cut_off(3)
    stage.run(60_000)
    stage.end(alone)
    stage.run(3000)
    _check_undisturbed(stage, 1, epoch)


@schedule(three)
def one_link_is_gone(stage: Stage) -> None:
    """A voter that cannot hear the leader, and others can, does not depose it (KAFKA-17641; Cloudflare 2020)."""
    stage.elect(1)
    stage.settle()
    epoch = stage.node(1).leader_epoch
    stage.drop(lambda message: {message.source, message.target} == {1, 3})
    stage.run(20_000)
    _check_undisturbed(stage, 1, epoch)


def _check_undisturbed(stage: Stage, leader_id: int, epoch: int) -> None:
    leads = stage.leads()
    if leads != leader_id or stage.node(leader_id).leader_epoch != epoch:
        raise InvariantBroken(
            f"node {leader_id} led epoch {epoch} undisturbed, and now node {leads} leads another"
        )


@schedule(partial(Stage, observers=2))
def observers_without_a_leader(stage: Stage) -> None:
    """Observers wait for a leader, however long there is none (KAFKA-17067)."""
    stage.elect(1)
    stage.settle()
    for node_id in (1, 2):
        stage.power_off(node_id)
    stage.run(5000)
    stage.power_on(1)
    stage.power_on(2)


@schedule(five)
def leader_without_a_majority(stage: Stage) -> None:
    """A leader whom a majority does not reach ceases to lead (KAFKA-15489)."""
    stage.elect(1)
    stage.settle()
    bound_ms = stage.node(1).replica.config.check_quorum_timeout_ms + 20
    stage.cut_off(1, 2)
    stage.until(lambda: stage.node(1).role != "leader", bound_ms, "the leader that was cut off steps down")


@schedule(five)
def clean_shutdown(stage: Stage) -> None:
    """A leader that leaves in good order is succeeded within milliseconds."""
    stage.elect(1)
    stage.settle()
    stage.run(200)
    stage.shut_down(stage.hosts[1], 5000)
    # EndQuorumEpoch, pre-vote and vote, each a way there and back, at a millisecond a message.
    stage.until(lambda: stage.leads() > 1, 15, "another node leads after a clean shutdown")


@schedule(partial(Stage, 2))
def slow_disk_of_a_candidate(stage: Stage) -> None:
    """A candidate whose disk takes longer for its vote than an election lasts is elected all the same, at once."""
    stage.elect(1)
    stage.settle()
    stage.hosts[2].state_ms = (250, 250)
    stage.ask(1, TransferLeadershipRequest(target_id=2))
    stage.elect(2)
    if stage.node(2).leader_epoch != 2:
        raise InvariantBroken(f"node 2 leads epoch {stage.node(2).leader_epoch}: an election failed")


@schedule(three)
def word_from_before_the_farewell(stage: Stage) -> None:
    """A successor that stands is not called back by what its leader said before it left."""
    words = stage.hold(
        lambda message: isinstance(message.body, BeginQuorumEpochRequest) and message.target == 2
    )
    stage.elect(1)
    stage.settle()
    answers = stage.hold(lambda message: isinstance(message.body, VoteResponse))
    stage.ask(1, TransferLeadershipRequest(target_id=2))
    stage.until(lambda: stage.node(2).role == "prospective", 100, "node 2 stands")
    stage.release(words)
    stage.run(1)
    stage.release(answers)
    stage.until(lambda: stage.leads() == 2, 20, "node 2 leads")


@schedule(five)
def farewell_that_others_hear_later(stage: Stage) -> None:
    """A successor that stands before the others have heard that their leader leaves asks them again until they have."""
    stage.elect(1)
    stage.settle()
    stage.run(300)
    farewells = stage.hold(
        lambda message: isinstance(message.body, EndQuorumEpochRequest) and message.target != 2
    )
    stage.ask(1, TransferLeadershipRequest(target_id=2))
    stage.until(lambda: stage.node(2).role == "prospective", 100, "node 2 stands")
    stage.run(10)
    stage.release(farewells)
    stage.until(lambda: stage.leads() == 2, 30, "node 2 leads")


@schedule(three)
def nothing_of_the_epoch_is_committed(stage: Stage) -> None:
    """A state machine is not told that it leads before its replica has committed in the epoch (KAFKA-15345)."""
    silent = stage.drop(lambda message: isinstance(message.body, FetchRequest))
    stage.elect(1)
    stage.run(100)
    stage.end(silent)


@schedule(three)
def idle_voters_hear_of_their_leader(stage: Stage) -> None:
    """A new leader makes itself known: voters that do not ask for it follow it within two messages."""
    others = stage.drop(lambda message: isinstance(message.body, FetchResponse))
    stage.elect(1)
    stage.until(
        lambda: all(stage.node(node_id).leader_id == 1 for node_id in (2, 3)), 3, "the voters know the leader"
    )
    stage.end(others)


@schedule(three)
def answers_of_another_time(stage: Stage) -> None:
    """An answer that comes again, after its request was answered, changes nothing."""
    stage.elect(1)
    stage.settle()
    alone = stage.cut_off(1)
    stage.append(1, 2)
    stage.elect(2)
    stage.until(lambda: stage.node(1).role != "leader", 3000, "node 1 steps down")
    stage.append(2)
    again = stage.copy(_tells_of_divergence)
    stage.end(alone)
    stage.settle()
    assert again.kept
    stage.append(2)
    stage.settle()
    stage.release(again)
    stage.run(20)


def _tells_of_divergence(message: Message) -> bool:
    return isinstance(message.body, FetchResponse) and message.body.diverging is not None
