"""Linearizable reads, and handing leadership over."""

from kquorum.raft.messages import (
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    TransferLeadershipRequest,
    TransferLeadershipResponse,
)
from tests.simulation.directed.post import Message
from tests.simulation.directed.registry import schedule
from tests.simulation.directed.stage import Stage
from tests.simulation.errors import InvariantBroken


@schedule(Stage)
def read_at_a_leader_that_slept(stage: Stage) -> None:
    """A leader that stood still while another was elected answers no read."""
    stage.elect(1)
    stage.settle()
    stage.pause(1)
    stage.elect(2)
    stage.append(2)
    stage.run(20)
    stage.resume(1)
    stage.begin_read(1)
    stage.run(50)


@schedule(Stage)
def read_and_a_fetch_from_before(stage: Stage) -> None:
    """A Fetch that was under way before a read began does not confirm it (etcd#20418)."""
    stage.elect(1)
    stage.settle()
    late = stage.hold(lambda message: message.target == 1 and isinstance(message.body, FetchRequest))
    stage.until(lambda: len(late.kept) == 2, 1000, "both Fetches are under way")
    stage.pause(1)
    stage.elect(2)
    stage.append(2)
    stage.run(20)
    stage.resume(1)
    stage.begin_read(1, takes_turn=False)
    stage.release(late)
    stage.run(50)


@schedule(Stage)
def read_and_an_answer_from_before(stage: Stage) -> None:
    """Nor does the answer to a request which was sent before the read began."""
    late = stage.hold(
        lambda message: message.source == 3 and isinstance(message.body, BeginQuorumEpochResponse)
    )
    stage.elect(1)
    stage.until(lambda: len(late.kept) == 1, 100, "node 3 has answered")
    stage.settle()
    stage.pause(1)
    stage.elect(2)
    stage.append(2)
    stage.run(20)
    stage.resume(1)
    stage.begin_read(1, takes_turn=False)
    stage.release(late)
    stage.run(50)


@schedule(Stage)
def read_before_the_first_commit(stage: Stage) -> None:
    """A new leader answers no read before it has committed in its epoch: its predecessor's commits are news to it."""
    stage.elect(1)
    stage.settle()
    known = stage.node(1).high_watermark
    stage.drop(lambda message: _says_more_than(message, known))
    stage.append(1)
    stage.run(20)
    assert stage.node(1).high_watermark > known == stage.node(2).high_watermark
    stage.power_off(1)
    silent = stage.drop(lambda message: isinstance(message.body, FetchRequest))
    stage.elect(2)
    read_id = stage.begin_read(2)
    stage.run(50)
    stage.mend()
    del silent
    stage.until(lambda: stage.watch.is_answered(read_id), 1000, "the read is answered")
    stage.power_on(1)


def _says_more_than(message: Message, high_watermark: int) -> bool:
    return isinstance(message.body, FetchResponse) and message.body.high_watermark > high_watermark


@schedule(Stage)
def read_in_an_idle_quorum(stage: Stage) -> None:
    """A read does not wait for new records: the leader asks, and is answered within two messages."""
    stage.elect(1)
    stage.settle()
    stage.run(1000)
    read_id = stage.begin_read(1)
    stage.until(lambda: stage.watch.is_answered(read_id), 5, "the read is answered")


@schedule(Stage)
def transfer_under_load(stage: Stage) -> None:
    """Leadership is handed over within an election timeout, however much is proposed meanwhile (Raft §3.10)."""
    stage.elect(1)
    stage.settle()
    stage.append(1)
    request = TransferLeadershipRequest(target_id=2)
    stage.ask(1, request)
    for _ in range(stage.options.election_timeout_ms + 10):
        stage.append(1)
        stage.run(1)
    answer = stage.operator.answer_to(request)
    if not isinstance(answer, TransferLeadershipResponse) or answer.message is not None:
        raise InvariantBroken(f"leadership was not handed over: {answer}")


@schedule(Stage)
def transfer_that_fails(stage: Stage) -> None:
    """A transfer is answered without an error when the target leads, not when it was told to stand."""
    stage.elect(1)
    stage.settle()
    request = TransferLeadershipRequest(target_id=2)
    end_request = stage.drop(lambda message: isinstance(message.body, EndQuorumEpochRequest))
    stage.ask(1, request)
    stage.until(lambda: stage.operator.answer_to(request) is not None, 2000, "the transfer is answered")
    answer = stage.operator.answer_to(request)
    if answer == TransferLeadershipResponse() and stage.node(2).role != "leader":
        raise InvariantBroken(f"the transfer to node 2 is answered {answer}, and node {stage.leads()} leads")
    stage.end(end_request)
