"""What is committed, and what becomes of logs that differ."""

from dataclasses import replace
from functools import partial

from kquorum.raft.errors import LogDivergedBelowHighWatermarkError
from kquorum.raft.inputs import ResignRequested
from kquorum.raft.messages import FetchRequest, FetchResponse, Response
from kquorum.wire.log_batch import OffsetAndEpoch, parse_batches
from tests.simulation.directed.post import Message, Rule
from tests.simulation.directed.registry import schedule
from tests.simulation.directed.stage import Stage
from tests.simulation.errors import InvariantBroken


@schedule(partial(Stage, 5, max_fetch_bytes=1))
def figure_8(stage: Stage) -> None:
    """A record of an older epoch is not committed by counting its copies (Raft, figure 8).

    Node 1 leads and gets record x to node 2 only. Node 5 leads next and replicates nothing. Node 1 leads again
    and gets x, but no record of the new epoch, to node 3: x is on a majority. Then node 5 leads, and x is gone.
    """
    stage.elect(1)
    stage.settle()
    offset = stage.node(1).log_end_offset
    pair = stage.cut_off(1, 2)
    stage.append(1)
    stage.run(20)
    assert stage.node(2).log_end_offset == offset + 1
    stage.power_off(1)
    stage.elect(5)
    stage.run(1)
    stage.power_off(5)
    stage.end(pair)
    stage.power_on(1)
    stage.drop(lambda message: _brings_from(message, offset + 1))
    stage.drop(lambda message: message.target == 4 and isinstance(message.body, FetchResponse))
    stage.elect(1)
    stage.until(lambda: stage.node(3).log_end_offset == offset + 1, 1000, "node 3 has x")
    stage.run(20)
    stage.power_off(1)
    stage.power_on(5)
    stage.elect(5)


def _brings_from(message: Message, offset: int) -> bool:
    """A Fetch response with a batch at or above `offset`."""
    if not isinstance(message.body, FetchResponse) or not isinstance(message.body.records, bytes):
        return False
    return any(batch.base_offset >= offset for batch in parse_batches(message.body.records))


@schedule(Stage)
def slow_disk_of_the_leader(stage: Stage) -> None:
    """What the leader has not flushed does not count, though it wrote it first."""
    stage.elect(1)
    stage.settle()
    stage.stick(1)
    stage.cut_off(1, 2)
    stage.append(1)
    stage.run(50)


@schedule(Stage)
def slow_disk_of_a_follower(stage: Stage) -> None:
    """What a follower has not flushed it does not acknowledge."""
    stage.elect(1)
    stage.settle()
    stage.stick(2)
    stage.cut_off(1, 2)
    stage.append(1)
    stage.run(50)


@schedule(partial(Stage, 5))
def two_of_five(stage: Stage) -> None:
    """Two of five voters commit nothing."""
    stage.elect(1)
    stage.settle()
    stage.cut_off(1, 2)
    stage.append(1)
    stage.run(50)


@schedule(Stage)
def flushed_tail_is_replaced(stage: Stage) -> None:
    """That a tail was on disk says nothing of what takes its place."""
    stage.elect(1)
    stage.settle()
    alone = stage.cut_off(1)
    stage.append(1, 5)
    stage.run(5)
    stage.stick(1)
    stage.elect(2)
    stage.until(lambda: stage.node(1).role != "leader", 3000, "node 1 steps down")
    stage.append(2)
    stage.run(5)
    stage.end(alone)
    stage.drop(_brings_records_to_node_3)
    stage.append(2)
    stage.until(lambda: stage.node(1).replica.log.last_epoch > 1, 400, "node 1 has what node 2 wrote")
    stage.run(50)


def _brings_records_to_node_3(message: Message) -> bool:
    return message.target == 3 and isinstance(message.body, FetchResponse)


@schedule(Stage)
def flush_from_before_the_cut(stage: Stage) -> None:
    """A flush that began before a log was cut acknowledges nothing of what was written after the cut.

    It takes two cuts: a replica fetches, and has to truncate, with its log flushed, but a log that was only cut counts
    as flushed. So node 1 has a tail of two epochs, and the flush of the first cut is slow.
    """
    alone = _two_histories(stage, 20)
    stage.stick(1)
    stage.elect(2)
    stage.append(2)
    stage.run(5)
    stage.drop(_brings_records_to_node_3)
    stage.append(2)
    stage.end(alone)
    stage.until(lambda: len(stage.hosts[1].disk.pending) == 1, 1000, "node 1 makes its first cut")
    end_flush = stage.begin_flush(1)
    stage.until(lambda: stage.node(1).replica.log.last_epoch > 3, 400, "node 1 has what node 2 wrote")
    end_flush()
    stage.run(50)


def _two_histories(stage: Stage, records: int) -> Rule:
    """Behind what all have, node 1 has these records of epoch 1, and some of epoch 3; node 2 has some of epoch 2. Both
    run, node 1 cut off from the others."""
    stage.elect(1)
    stage.settle()
    alone = stage.cut_off(1)
    stage.append(1, records)
    stage.run(5)
    stage.power_off(1)
    silent = stage.drop(lambda message: isinstance(message.body, FetchRequest))
    stage.elect(2)
    stage.append(2, 5)
    stage.run(5)
    stage.power_off(2)
    stage.end(alone)
    stage.power_on(1)
    stage.elect(1)
    stage.append(1, 5)
    stage.run(5)
    stage.end(silent)
    alone = stage.cut_off(1)
    stage.power_on(2)
    return alone


@schedule(partial(Stage, observers=2))
def observers_do_not_count(stage: Stage) -> None:
    """Records that observers have, and a majority of the voters has not, are not committed."""
    stage.elect(1)
    stage.settle()
    stage.cut_off(1, 101, 102)
    stage.append(1)
    stage.run(50)


@schedule(partial(Stage, max_fetch_bytes=1))
def far_behind(stage: Stage) -> None:
    """A follower that is behind commits what it has, not what its leader has."""
    stage.elect(1)
    stage.settle()
    alone = stage.cut_off(3)
    for _ in range(5):
        stage.append(1)
        stage.run(5)
    stage.end(alone)


@schedule(Stage)
def divergent_tail(stage: Stage) -> None:
    """A follower with a tail that its leader never had commits nothing before it has cut it (KAFKA-14704)."""
    stage.elect(1)
    stage.settle()
    alone = stage.cut_off(1)
    stage.append(1, 3)
    stage.elect(2)
    stage.until(lambda: stage.node(1).role != "leader", 3000, "node 1 steps down")
    stage.append(2, 5)
    stage.run(20)
    stage.end(alone)


@schedule(Stage)
def tail_of_an_unknown_epoch(stage: Stage) -> None:
    """Logs that differ over several epochs meet where they are the same.

    Node 1 has epochs 1 and 3 behind what all have, node 2 has epoch 2, longer than node 1's epoch 1, and leads next.
    """
    alone = _two_histories(stage, 1)
    stage.elect(2)
    stage.append(2)
    stage.run(20)
    stage.end(alone)
    stage.settle()


@schedule(Stage)
def leader_that_lost_data(stage: Stage) -> None:
    """A follower told to cut what was committed stops, and keeps it."""
    stage.elect(1)
    stage.append(1)
    stage.settle()
    wrong = stage.tamper(_goes_to_node_2, _tell_of_divergence_at_zero)
    try:
        stage.append(1)
        stage.run(200)
    except LogDivergedBelowHighWatermarkError:
        stage.end(wrong)
        stage.power_off(2)
        stage.power_on(2)
        return
    raise InvariantBroken("node 2 goes on after it was asked to cut what was committed")


def _goes_to_node_2(message: Message) -> bool:
    return message.target == 2 and isinstance(message.body, FetchResponse)


def _tell_of_divergence_at_zero(response: Response) -> Response:
    assert isinstance(response, FetchResponse)
    return replace(response, diverging=OffsetAndEpoch(0, 0), records=b"")


@schedule(Stage)
def reply_that_repeats_itself(stage: Stage) -> None:
    """Batches that do not continue the log are not appended, whichever node sends them."""
    stage.elect(1)
    stage.settle()
    stage.tamper(_goes_to_node_2, _say_it_twice)
    stage.append(1, 2)
    stage.run(100)


def _say_it_twice(response: Response) -> Response:
    assert isinstance(response, FetchResponse)
    assert isinstance(response.records, bytes)
    return replace(response, records=response.records * 2)


@schedule(Stage)
def parked_at_a_leader_that_resigns(stage: Stage) -> None:
    """A Fetch that waits at a leader is answered at once when the leader resigns (KAFKA-15100)."""
    stage.elect(1)
    stage.settle()
    stage.run(10)
    stage.drop(lambda message: isinstance(message.body, FetchRequest))
    host = stage.hosts[1]
    stage.deliver(host, host.life, ResignRequested(stage.node(1).leader_epoch))
    stage.run(400)


@schedule(Stage)
def idle_for_a_while(stage: Stage) -> None:
    """A quorum with nothing to do says little: a Fetch and an answer for each long poll."""
    stage.elect(1)
    stage.settle()
    before = stage.network.messages
    stage.run(2000)
    a_second = (stage.network.messages - before) // 2
    # Two followers with a long poll of 75 ms send and get some 55 messages.
    if a_second > 100:
        raise InvariantBroken(f"an idle quorum of three sends {a_second} messages a second")
