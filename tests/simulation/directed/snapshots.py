"""Coming in through snapshots, and what the log may forget."""

from dataclasses import replace
from functools import partial

from kquorum.raft.inputs import SnapshotWritten
from kquorum.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Response,
)
from kquorum.raft.voters import ReplicaKey
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode
from tests.simulation.building import CLUSTER_ID
from tests.simulation.directed.membership import add, check_done
from tests.simulation.directed.post import Message, Rule
from tests.simulation.directed.registry import schedule
from tests.simulation.directed.stage import Stage
from tests.simulation.errors import InvariantBroken

IN_PIECES = partial(Stage, max_fetch_bytes=60, snapshot_padding=400)


def _is_piece_for(node_id: int, message: Message) -> bool:
    return message.target == node_id and isinstance(message.body, FetchSnapshotResponse)


def _leave_behind(stage: Stage, node_id: int = 3) -> Rule:
    """Node 1 leads; this node is cut off, and what it lacks is in node 1's snapshot only."""
    stage.elect(1)
    stage.settle()
    alone = stage.cut_off(node_id)
    for _ in range(4):
        stage.append(1, 2)
        stage.run(5)
    stage.forget_log(1)
    return alone


def _await_snapshot(stage: Stage, count: int = 1) -> None:
    stage.until(lambda: stage.tally["snapshots received"] >= count, 3000, "a snapshot is received")


@schedule(IN_PIECES)
def snapshot_in_pieces(stage: Stage) -> None:
    """A follower whose next record is gone comes in through a snapshot, piece by piece, and goes on behind it."""
    alone = _leave_behind(stage)
    stage.end(alone)
    _await_snapshot(stage)
    if stage.tally["pieces of snapshots"] < 5:
        raise InvariantBroken("the snapshot came in at once")
    stage.settle(1000)


@schedule(IN_PIECES)
def snapshot_and_a_new_leader(stage: Stage) -> None:
    """A snapshot that is half received when its leader goes is fetched from the start at the next leader, whose file
    differs."""
    alone = _leave_behind(stage)
    stage.end(alone)
    stage.until(lambda: stage.tally["pieces of snapshots"] >= 3, 1000, "some pieces are there")
    stage.forget_log(2)
    stage.power_off(1)
    stage.elect(2)
    stage.append(2)
    _await_snapshot(stage)
    if stage.tally["snapshots refused"]:
        raise InvariantBroken("what node 3 put together is no snapshot")
    stage.power_on(1)


@schedule(IN_PIECES)
def snapshot_gone_midway(stage: Stage) -> None:
    """A snapshot that the leader removes while it is fetched is given up for the next one."""
    alone = _leave_behind(stage)
    stage.end(alone)
    stage.until(lambda: stage.tally["pieces of snapshots"] >= 3, 1000, "some pieces are there")
    stage.append(1)
    stage.run(5)
    end_offset = stage.forget_log(1)
    _await_snapshot(stage)
    if stage.hosts[3].disk.log_start_offset != end_offset:
        raise InvariantBroken("node 3 did not come in through the newer snapshot")


@schedule(IN_PIECES)
def piece_of_another_snapshot(stage: Stage) -> None:
    """A piece that belongs to another snapshot is not taken for one of this."""
    alone = _leave_behind(stage)
    stage.end(alone)
    stage.until(lambda: stage.tally["pieces of snapshots"] >= 2, 1000, "some pieces are there")
    wrong = stage.tamper(partial(_is_piece_for, 3), _name_another)
    stage.run(4)
    stage.end(wrong)
    _await_snapshot(stage)
    if stage.tally["snapshots refused"]:
        raise InvariantBroken("node 3 took pieces of another snapshot")


def _name_another(response: Response) -> Response:
    assert isinstance(response, FetchSnapshotResponse)
    assert isinstance(response.data, bytes)
    return replace(response, snapshot_id=OffsetAndEpoch(3, 1), data=bytes(len(response.data)))


@schedule(Stage)
def snapshot_that_is_damaged(stage: Stage) -> None:
    """A snapshot whose bytes are no snapshot does not take the place of the log; it is fetched again."""
    alone = _leave_behind(stage)
    stage.hosts[3].spoils_download = True
    stage.end(alone)
    _await_snapshot(stage)
    if stage.tally["snapshots refused"] != 1:
        raise InvariantBroken("node 3 took damaged bytes for a snapshot")


@schedule(Stage)
def snapshot_of_what_is_committed(stage: Stage) -> None:
    """A snapshot holds what is committed, and nothing that may yet be cut."""
    stage.elect(1)
    stage.append(1, 2)
    stage.settle()
    stage.cut_off(1)
    stage.append(1, 3)
    stage.run(5)
    stage.take_snapshot(1)
    stage.snapshots.advance(stage.hosts[1])
    stage.run(5)


@schedule(Stage)
def log_is_forgotten_below_a_snapshot(stage: Stage) -> None:
    """The log begins where a snapshot ends; otherwise no replica could learn what was before."""
    stage.elect(1)
    stage.append(1, 2)
    stage.settle()
    stage.take_snapshot(1)
    stage.append(1, 2)
    stage.settle()
    stage.snapshots.advance(stage.hosts[1])
    stage.run(5)
    stage.power_off(1)
    stage.power_on(1)


@schedule(Stage)
def fetch_from_what_was_forgotten(stage: Stage) -> None:
    """A Fetch that was valid when it came, and whose records are gone when it is answered, gets the id of the
    snapshot."""
    stage.elect(1)
    stage.settle()
    late = stage.drop(lambda message: message.target == 3 and isinstance(message.body, FetchResponse))
    for _ in range(3):
        stage.append(1, 2)
        stage.run(5)
    stage.take_snapshot(1)
    stage.end(late)
    fetches = stage.hold(lambda message: message.source == 3 and isinstance(message.body, FetchRequest))
    stage.until(lambda: bool(fetches.kept), 1000, "node 3 asks again")
    # All that comes in this millisecond shares one turn.
    stage.options = replace(stage.options, shares_turns=True)
    stage.release(fetches)
    stage.snapshots.advance(stage.hosts[1])
    _await_snapshot(stage)


@schedule(partial(Stage, spares=1, dynamic=True))
def voters_come_with_the_snapshot(stage: Stage) -> None:
    """A replica that starts from a snapshot counts the voters in that snapshot."""
    stage.elect(1)
    stage.settle()
    alone = stage.cut_off(3)
    check_done(add(stage, 1, 4, 500), "node 4 becomes a voter")
    stage.run(20)
    stage.forget_log(1)
    stage.end(alone)
    _await_snapshot(stage)
    stage.run(5)
    if stage.node(3).voters.ids != (1, 2, 3, 4):
        raise InvariantBroken(f"node 3 counts voters {stage.node(3).voters.ids}, the snapshot names four")


@schedule(Stage)
def leader_dies_while_its_snapshot_is_installed(stage: Stage) -> None:
    """A replica whose log is being replaced does not stand: it does not know yet what its log will be."""
    alone = _leave_behind(stage)
    stage.append(1)
    # Its disk does not come to drop the log.
    stage.stick(3)
    stage.end(alone)
    stage.until(lambda: stage.node(3).replica.installing is not None, 1000, "node 3 has all the pieces")
    stage.power_off(1)
    stage.run(1000)
    stage.unstick(3)
    _await_snapshot(stage)
    stage.power_on(1)


@schedule(Stage)
def records_while_a_snapshot_is_installed(stage: Stage) -> None:
    """Nothing is fetched into a log that is being replaced."""
    alone = _leave_behind(stage)
    stage.stick(3)
    stage.end(alone)
    stage.until(lambda: stage.node(3).replica.installing is not None, 1000, "node 3 has all the pieces")
    # As if the leader still had what its snapshot stands for.
    log = b"".join(batch.data for batch in stage.hosts[2].disk.between(stage.node(3).log_end_offset, 1000))
    stage.tamper(partial(_is_fetched_by, 3), partial(_with_records, log))
    stage.append(1)
    stage.run(100)
    stage.mend()
    stage.unstick(3)
    _await_snapshot(stage)


def _is_fetched_by(node_id: int, message: Message) -> bool:
    return message.target == node_id and isinstance(message.body, FetchResponse)


def _with_records(records: bytes, response: Response) -> Response:
    assert isinstance(response, FetchResponse)
    return replace(response, snapshot_id=None, records=records)


@schedule(Stage)
def snapshots_are_the_leaders_to_serve(stage: Stage) -> None:
    """A snapshot is served by the leader of the epoch that the request names, and refused by everybody else."""
    stage.elect(1)
    stage.append(1, 2)
    stage.settle()
    end_offset = stage.take_snapshot(1)
    assert stage.take_snapshot(2) == end_offset
    epoch = stage.node(1).leader_epoch
    for node_id, asked_epoch, error in (
        (1, epoch - 1, ErrorCode.fenced_leader_epoch),
        (1, epoch + 1, ErrorCode.unknown_leader_epoch),
        (2, epoch, ErrorCode.not_leader_or_follower),
        (1, epoch, ErrorCode.none),
    ):
        request = FetchSnapshotRequest(
            cluster_id=CLUSTER_ID,
            replica=ReplicaKey(3),
            current_leader_epoch=asked_epoch,
            snapshot_id=OffsetAndEpoch(end_offset, epoch),
            position=0,
            max_bytes=100,
        )
        response = stage.ask(node_id, request, 10)
        if not isinstance(response, FetchSnapshotResponse) or response.error is not error:
            raise InvariantBroken(f"node {node_id} answers {response} to a request of epoch {asked_epoch}")


@schedule(Stage)
def snapshot_that_was_overtaken(stage: Stage) -> None:
    """A snapshot of a replica's own that is done when the log begins above it already is of no use."""
    alone = _leave_behind(stage)
    host = stage.hosts[3]
    own = OffsetAndEpoch(host.applied, host.applied_epoch)
    stage.end(alone)
    _await_snapshot(stage)
    stage.run(5)
    stage.deliver(host, host.life, SnapshotWritten(own))
    stage.append(1)
    stage.settle()


@schedule(Stage)
def cut_below_the_start(stage: Stage) -> None:
    """What a snapshot stands for is never cut, whatever the leader says."""
    alone = _leave_behind(stage)
    stage.end(alone)
    _await_snapshot(stage)
    stage.settle()
    wrong = stage.tamper(partial(_is_fetched_by, 3), _diverge_at_one)
    stage.append(1)
    try:
        stage.run(200)
    except Exception as error:
        if "everything below" not in str(error):
            raise
        stage.end(wrong)
        stage.power_off(3)
        stage.power_on(3)
        return
    raise InvariantBroken("node 3 goes on after it was asked to cut what its snapshot stands for")


def _diverge_at_one(response: Response) -> Response:
    assert isinstance(response, FetchResponse)
    return replace(response, diverging=OffsetAndEpoch(1, 1), records=b"")


@schedule(Stage)
def power_goes_between_receiving_and_dropping(stage: Stage) -> None:
    """A snapshot that got its name before the power went, and the log below it, are one log again after the start."""
    alone = _leave_behind(stage)
    stage.stick(3)
    stage.end(alone)
    stage.until(lambda: stage.hosts[3].disk.newest_snapshot() is not None, 1000, "the snapshot has its name")
    stage.power_off(3)
    stage.power_on(3)
    if stage.hosts[3].disk.log_start_offset == 0:
        raise InvariantBroken("node 3 goes on with the log that the snapshot has overtaken")


@schedule(Stage)
def snapshot_below_a_tail_of_a_later_epoch(stage: Stage) -> None:
    """A received snapshot is committed, and the log that it was to replace is not, whichever has the later epoch.

    Record x of epoch 1 is on node 1 alone. Node 3 leads epoch 2, and its tail ends where x does. Then node 1 leads,
    commits x, and has a snapshot that ends with it. Node 3 receives that, and the power goes before its log is dropped.
    """
    stage.elect(1)
    stage.settle()
    alone = stage.cut_off(1)
    stage.append(1)
    stage.run(5)
    stage.power_off(1)
    stage.end(alone)
    silent = stage.drop(lambda message: isinstance(message.body, FetchRequest | FetchResponse))
    stage.elect(3)
    stage.run(2)
    stage.power_off(3)
    stage.end(silent)
    up_to_x = sum(len(batch.data) for batch in stage.hosts[1].disk.batches)
    stage.options = replace(stage.options, snapshot_bytes=up_to_x)
    stage.power_on(1)
    stage.elect(1)
    stage.until(lambda: stage.hosts[1].disk.newest_snapshot() is not None, 500, "node 1 has a snapshot")
    stage.options = replace(stage.options, snapshot_bytes=0)
    stage.snapshots.advance(stage.hosts[1])
    assert stage.hosts[1].disk.log_start_offset == stage.hosts[3].disk.log_end_offset, (
        "they end at the same offset"
    )
    # It is committed with a later record, so that node 3 would win no election by its tail.
    stage.stick(3)
    stage.power_on(3)
    stage.stick(3)
    stage.until(lambda: stage.hosts[3].disk.newest_snapshot() is not None, 1000, "the snapshot has its name")
    stage.power_off(3)
    stage.power_on(3)
    stage.settle()
