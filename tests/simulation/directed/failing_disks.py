"""Disks that run full, and logs that lost what they had promised to keep."""

from dataclasses import replace
from functools import partial

from kquorum.raft.messages import FetchRequest, FetchResponse, VoteRequest
from kquorum.wire.messages.error_codes import ErrorCode
from tests.simulation.directed.membership import add
from tests.simulation.directed.post import Message
from tests.simulation.directed.registry import schedule
from tests.simulation.directed.stage import FOREVER_MS, Stage
from tests.simulation.errors import InvariantBroken
from tests.simulation.links import Weather


@schedule(Stage)
def full_disk_of_the_leader(stage: Stage) -> None:
    """A leader without space hands over, and follows."""
    stage.elect(1)
    stage.append(1)
    stage.settle()
    stage.failing_disks.fill(stage.hosts[1], FOREVER_MS)
    stage.until(lambda: stage.leads() in (2, 3), 1000, "another node leads")
    stage.append(stage.leads())
    stage.run(500)
    if stage.node(1).role != "follower":
        raise InvariantBroken(f"node 1 is {stage.node(1).role}")
    stage.failing_disks.make_room(stage.hosts[1])


@schedule(Stage)
def full_disk_of_a_follower(stage: Stage) -> None:
    """A follower without space writes nothing, and its leader hears of it all the while."""
    stage.elect(1)
    stage.settle()
    stage.failing_disks.fill(stage.hosts[2], FOREVER_MS)
    epoch = stage.node(1).leader_epoch
    for _ in range(5):
        stage.append(1)
        stage.run(300)
    if stage.node(1).leader_epoch != epoch or stage.node(2).role != "follower":
        raise InvariantBroken("a follower without space disturbs the others")
    stage.failing_disks.make_room(stage.hosts[2])
    stage.settle()


@schedule(Stage)
def full_disk_and_no_leader(stage: Stage) -> None:
    """A voter without space votes, and does not stand."""
    stage.elect(1)
    stage.settle()
    stage.failing_disks.fill(stage.hosts[2], FOREVER_MS)
    stage.power_off(1)
    slow = stage.drop(
        lambda message: isinstance(message.body, VoteRequest) and message.body.candidate.id == 3
    )
    stage.run(1000)
    stage.end(slow)
    stage.until(lambda: stage.leads() == 3, 2000, "node 3 leads by the vote of node 2")
    stage.power_on(1)
    stage.failing_disks.make_room(stage.hosts[2])


def damage(stage: Stage, node_id: int, batches: int) -> None:
    """This node is off, and has lost the last batches of its log."""
    host = stage.hosts[node_id]
    if host.node is not None:
        host.disk.end_flush(host.disk.begin_flush())
        stage.crash(host)
    assert stage.failing_disks.lose(host, batches)


@schedule(Stage)
def damaged_voter_withholds_its_vote(stage: Stage) -> None:
    """A voter that lost part of its log votes for no candidate that may lack what it had acknowledged."""
    _commit_without_node_3(stage)
    damage(stage, 2, 3)
    stage.power_off(1)
    stage.power_on(2)
    stage.mend()
    stage.run(2000)
    stage.power_on(1)


def _commit_without_node_3(stage: Stage) -> None:
    stage.elect(1)
    stage.settle()
    stage.cut_off(1, 2)
    for _ in range(3):
        stage.append(1)
        stage.run(5)
    assert stage.checkers.committed_end == stage.hosts[2].disk.log_end_offset


@schedule(Stage)
def damaged_voter_is_patient(stage: Stage) -> None:
    """A voter that lost part of its log does not stand before it has it back."""
    _commit_without_node_3(stage)
    damage(stage, 2, 3)
    stage.power_off(1)
    stage.power_on(2)
    stage.mend()
    stage.drop(lambda message: isinstance(message.body, VoteRequest) and message.body.candidate.id == 3)
    stage.run(2000)
    stage.power_on(1)


@schedule(partial(Stage, max_fetch_bytes=1))
def damaged_log_is_whole_again(stage: Stage) -> None:
    """A log is whole once all is back that its replica had acknowledged, not with the first batch that comes."""
    _commit_without_node_3(stage)
    for _ in range(4):
        stage.append(1)
        stage.run(5)
    damage(stage, 2, 6)
    stage.power_on(2)
    slow = stage.drop(partial(_brings_to, 2))
    stage.run(200)
    stage.end(slow)
    stage.mend()
    stage.until(lambda: stage.hosts[2].disk.damaged_until is None, 3000, "the log of node 2 is whole")
    stage.settle()


def _brings_to(node_id: int, message: Message) -> bool:
    return message.target == node_id and isinstance(message.body, FetchResponse)


def _answers_with(message: Message, *, records: bool) -> bool:
    """Whether an ordinary Fetch of node 2 is answered by that."""
    body = message.body
    if not _brings_to(2, message) or not isinstance(body, FetchResponse):
        return False
    return bool(body.records) is records and body.diverging is None


@schedule(Stage)
def damaged_voter_under_load(stage: Stage) -> None:
    """A damaged log is whole though its leader always has more, so that the leader may die."""
    stage.elect(1)
    for _ in range(4):
        stage.append(1)
        stage.run(5)
    stage.settle()
    damage(stage, 2, 3)
    stage.power_on(2)
    empty = stage.copy(partial(_answers_with, records=False))
    for _ in range(100):
        stage.append(1)
        stage.run(1)
    assert not empty.kept, "the schedule is about a load that never pauses"
    stage.power_off(1)
    stage.until(lambda: stage.leads() in (2, 3), 3000, "the other two elect one of them")
    stage.append(stage.leads())
    stage.run(500)
    stage.power_on(1)


@schedule(Stage)
def damaged_voter_and_a_late_acknowledgement(stage: Stage) -> None:
    """The high watermark is not the end of what a damaged voter acknowledged: a Fetch of its may be under way yet."""
    _commit_without_node_3(stage)
    stage.run(10)
    late = stage.hold(lambda message: message.source == 2 and isinstance(message.body, FetchRequest))
    stage.append(1)
    stage.run(5)
    stage.end(late)
    damage(stage, 2, 1)
    stage.drop(partial(_answers_with, records=True))
    stage.power_on(2)
    stage.run(10)
    committed_end = stage.checkers.committed_end
    stage.release(late)
    stage.run(2)
    assert stage.checkers.committed_end > committed_end, "that Fetch commits what node 2 has lost"
    stage.power_off(1)
    stage.mend()
    stage.run(2000)
    stage.power_on(1)


@schedule(Stage)
def damaged_voter_and_a_repeated_fetch(stage: Stage) -> None:
    """A Fetch that came twice is not answered as if there were nothing: a damaged log would be held to be whole."""
    _commit_without_node_3(stage)
    damage(stage, 2, 3)
    stage.network.weather = Weather(1, duplicates=1.0)
    # Both copies share a turn.
    stage.options = replace(stage.options, shares_turns=True)
    stage.power_on(2)
    stage.run(200)
    stage.network.weather = Weather(1)


@schedule(Stage)
def damaged_below_a_snapshot(stage: Stage) -> None:
    """A log that is damaged below its own newest snapshot comes back, and its state machine never goes back."""
    stage.elect(1)
    stage.settle()
    for _ in range(2):
        stage.append(1, 2)
        stage.run(5)
    stage.take_snapshot(1)
    for _ in range(2):
        stage.append(1, 2)
        stage.run(5)
    stage.take_snapshot(2)
    stage.append(1)
    stage.settle()
    damage(stage, 2, 4)
    stage.power_on(2)
    stage.until(lambda: stage.hosts[2].disk.damaged_until is None, 3000, "the log of node 2 is whole")
    stage.settle()


@schedule(partial(Stage, 1, 1, dynamic=True))
def damaged_spare_is_not_added(stage: Stage) -> None:
    """A spare that lost part of its log is not made a voter for what it had before: it could not help to elect."""
    _follow_as_spare(stage)
    damage(stage, 2, 2)
    _add_and_restart_leader(stage)


@schedule(partial(Stage, 1, 1, dynamic=True))
def wiped_spare_is_not_added(stage: Stage) -> None:
    """A spare whose disk was wiped is not made a voter for what it had before: it could not help to elect."""
    _follow_as_spare(stage)
    stage.power_off(2)
    stage.wipe(2)
    _add_and_restart_leader(stage)


@schedule(partial(Stage, 1, 1, dynamic=True))
def damaged_spare_that_fetches_late(stage: Stage) -> None:
    """A spare that lost part of its log is not made a voter before the leader has heard a Fetch of it since."""
    _follow_as_spare(stage)
    damage(stage, 2, 2)
    silent = stage.drop(lambda message: message.source == 2 and isinstance(message.body, FetchRequest))
    stage.power_on(2)
    stage.run(20)
    add(stage, 1, 2, 5)
    stage.end(silent)
    _restart_leader(stage)


@schedule(partial(Stage, 1, 1, dynamic=True))
def spare_that_is_damaged_while_it_is_added(stage: Stage) -> None:
    """A spare that said what it supports, and came back with a damaged log, is not made a voter for what it had."""
    _follow_as_spare(stage)
    silent = stage.drop(lambda message: message.source == 2 and isinstance(message.body, FetchRequest))
    stage.run(600)
    add(stage, 1, 2, 5)
    damage(stage, 2, 2)
    stage.power_on(2)
    stage.end(silent)
    _restart_leader(stage)


def _follow_as_spare(stage: Stage) -> None:
    stage.elect(1)
    for _ in range(3):
        stage.append(1)
        stage.settle()


def _serves_node_2(message: Message) -> bool:
    body = message.body
    return message.target == 2 and isinstance(body, FetchResponse) and body.error is ErrorCode.none


def _add_and_restart_leader(stage: Stage) -> None:
    """Node 2 comes back, and hears who leads, but of no record, before the leader is gone that was asked to add it."""
    slow = stage.drop(_serves_node_2)
    stage.power_on(2)
    stage.run(50)
    if add(stage, 1, 2, 100) is None:
        raise InvariantBroken("node 2 has said that it lost part of its log, and the leader waits for it")
    stage.end(slow)
    _restart_leader(stage)


def _restart_leader(stage: Stage) -> None:
    """Were node 2 a voter by now, its vote would be needed; it hears of no record before that."""
    slow = stage.drop(_serves_node_2)
    stage.run(5)
    stage.power_off(1)
    stage.run(100)
    stage.end(slow)
    stage.power_on(1)
    stage.until(lambda: stage.leads() == 1, 5000, "node 1 leads again")
