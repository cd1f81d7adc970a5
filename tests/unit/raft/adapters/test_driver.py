"""The driver carries out each Ready in its order, whatever the disk does meanwhile."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kquorum.raft.adapters.delivery import CHUNK_BYTES, LONGEST_WAIT_S
from kquorum.raft.adapters.driver import MOST_READ_BYTES
from kquorum.raft.errors import LogDivergedBelowHighWatermarkError, NotLeaderError
from kquorum.raft.inputs import LogFlushed, QuorumStateWritten, ShutdownRequested, TimeAdvanced
from kquorum.raft.messages import DescribeQuorumRequest, FetchResponse, LogSlice
from kquorum.raft.ready import LeaderAndEpoch, OutboundRequest, OutboundResponse, QuorumState, Ready
from kquorum.storage.errors import FsyncFailed
from tests.support.raft.driver_parts import Rig, batch, now_ms, run, sole_voter, turns, until

REQUEST = OutboundRequest(5, 2, DescribeQuorumRequest())
RESPONSE = OutboundResponse(9, FetchResponse())
IO_ERROR = OSError(5, "Input/output error")


def test_a_ready_is_carried_out_in_its_order() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.log.append([batch(0), batch(1), batch(2)])
        rig.journal.clear()
        await rig.start()
        ready = Ready(
            truncate_to=1,
            append=(batch(1, epoch=2),),
            quorum_state=QuorumState(leader_epoch=2),
            requests=(REQUEST,),
            responses=(RESPONSE,),
            high_watermark=2,
            leader=LeaderAndEpoch(1, 2),
        )
        await rig.carry_out(ready)
        await until(lambda: "leader" in rig.journal.kinds() and "flush" in rig.journal.kinds())
        order = [kind for kind in rig.journal.kinds() if kind != "flush"]
        assert order == ["truncate", "append", "state", "send", "respond", "commit", "leader"]
        await rig.driver.stop(1000)

    run(scenario())


def test_a_stalled_state_write_holds_back_its_messages_but_not_the_loop() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.start()
        rig.state_store.pause.hold()
        await rig.carry_out(Ready(quorum_state=QuorumState(leader_epoch=1), requests=(REQUEST,)))
        await until(lambda: rig.state_store.pause.reached)
        taken = rig.script.taken
        rig.script.readies.append(Ready(responses=(RESPONSE,)))
        for _ in range(50):
            rig.driver.receive(TimeAdvanced())
            await asyncio.sleep(0)
        assert len(rig.script.inputs_of(TimeAdvanced)) == 50, "inputs are stepped"
        assert rig.script.taken == taken, "but nothing overtakes what waits for the disk"
        assert rig.script.inputs_of(QuorumStateWritten) == []
        assert rig.journal == []
        rig.state_store.pause.release()
        await until(lambda: "respond" in rig.journal.kinds())
        assert rig.journal.kinds() == ["state", "send", "respond"]
        assert len(rig.script.inputs_of(QuorumStateWritten)) == 1, "the core learns when its messages left"
        await rig.driver.stop(1000)

    run(scenario())


def test_a_stalled_flush_holds_nothing_back_and_the_next_one_follows_at_once() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.start()
        rig.log.flush_pause.hold()
        await rig.carry_out(Ready(append=(batch(0),), responses=(RESPONSE,)))
        await until(lambda: rig.log.flush_pause.reached == 1)
        await rig.carry_out(Ready(append=(batch(1),)), Ready(append=(batch(2),), requests=(REQUEST,)))
        assert rig.journal.kinds() == ["append", "respond", "append", "append", "send"]
        assert rig.script.inputs_of(LogFlushed) == []
        rig.log.flush_pause.release()
        await until(lambda: len(rig.script.inputs_of(LogFlushed)) == 2)
        assert rig.script.inputs_of(LogFlushed) == [LogFlushed(1, 0), LogFlushed(3, 0)]
        assert rig.log.flushes == 2, "all that gathered meanwhile shares the second flush"
        await rig.driver.stop(1000)

    run(scenario())


def test_a_flush_tells_how_many_truncations_it_has_seen() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.start()
        rig.log.flush_pause.hold()
        await rig.carry_out(Ready(append=(batch(0), batch(1), batch(2))))
        await until(lambda: rig.log.flush_pause.reached == 1)
        await rig.carry_out(Ready(truncate_to=1, append=(batch(1, epoch=2),)))
        rig.log.flush_pause.release()
        await until(lambda: LogFlushed(2, 1) in rig.script.inputs)
        assert rig.script.inputs_of(LogFlushed) == [LogFlushed(3, 0), LogFlushed(2, 1)]
        await rig.driver.stop(1000)

    run(scenario())


def test_a_bare_truncation_is_followed_by_a_flush_that_counts() -> None:
    """What was below the cut may have been on its way to the disk in a flush that no longer counts."""

    async def scenario() -> None:
        rig = Rig()
        await rig.start()
        rig.log.append([batch(0), batch(1)])
        await rig.carry_out(Ready(truncate_to=1))
        await until(lambda: rig.script.inputs_of(LogFlushed))
        assert rig.script.inputs_of(LogFlushed) == [LogFlushed(1, 1)]
        await rig.driver.stop(1000)

    run(scenario())


@pytest.mark.parametrize(
    "error", [FsyncFailed(Path("x.log"), IO_ERROR), LogDivergedBelowHighWatermarkError("x")]
)
def test_an_error_of_the_flush_is_fatal(error: Exception) -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.log.flush_error = error
        await rig.start()
        await rig.carry_out(Ready(append=(batch(0),)))
        await until(lambda: rig.fatal)
        assert rig.fatal == [error]
        await check_it_is_dead(rig)

    run(scenario())


async def check_it_is_dead(rig: Rig) -> None:
    taken, inputs = rig.script.taken, len(rig.script.inputs)
    rig.driver.receive(TimeAdvanced())
    rig.driver.wake()
    await turns(10)
    assert (rig.script.taken, len(rig.script.inputs)) == (taken, inputs)
    with pytest.raises(NotLeaderError):
        rig.driver.propose(now_ms(), 1, [b"x"])
    await rig.driver.stop(1000)
    assert len(rig.fatal) == 1


@pytest.mark.parametrize("where", ["step", "append", "commit", "state"])
def test_anything_unexpected_is_fatal_wherever_it_happens(
    where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    error = RuntimeError("boom")

    def broken(*_args: object) -> None:
        raise error

    async def scenario() -> None:
        rig = Rig()
        await rig.start()
        if where == "step":
            rig.script.step_error = error
            rig.driver.receive(TimeAdvanced())
        monkeypatch.setattr(rig.log, "append", broken if where == "append" else rig.log.append)
        monkeypatch.setattr(rig.state_machine, "handle_commit", broken)
        if where == "state":
            monkeypatch.setattr(rig.state_store, "write", broken)
        ready = Ready(append=(batch(0),), quorum_state=QuorumState(leader_epoch=1), high_watermark=1)
        await rig.carry_out(ready)
        await until(lambda: rig.fatal)
        assert rig.fatal == [error]
        await check_it_is_dead(rig)

    with caplog.at_level(logging.CRITICAL):
        run(scenario())
    assert "node 1 stops: boom" in caplog.text


def test_proposals_of_one_turn_share_a_batch_and_a_flush() -> None:
    async def scenario() -> None:
        rig = Rig(sole_voter())
        await rig.start()
        await until(lambda: rig.driver.leader_id == 1 and ("leader", 1, 1) in rig.journal)
        await until(lambda: rig.driver.high_watermark == rig.driver.log_end_offset)
        flushes, end = rig.log.flushes, rig.driver.log_end_offset
        rig.journal.clear()
        last = [rig.driver.propose(now_ms(), 1, [b"value %d" % index]) for index in range(100)]
        assert last == list(range(end, end + 100))
        await until(lambda: rig.driver.applied_offset == end + 100)
        assert rig.log.flushes == flushes + 1
        assert rig.journal == [("append", end), ("flush", end + 100), ("commit", end)]
        await rig.driver.stop(1000)

    run(scenario())


def test_a_slice_is_read_off_the_log_before_the_answer_leaves() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.start()
        answer = OutboundResponse(3, FetchResponse(leader_id=1, records=LogSlice(0, 1_000_000)))
        await rig.carry_out(Ready(append=(batch(0), batch(1)), responses=(answer,)))
        assert rig.network.responses == [
            OutboundResponse(3, FetchResponse(leader_id=1, records=batch(0).data + batch(1).data))
        ]
        await rig.driver.stop(1000)

    run(scenario())


def test_the_fetches_of_a_turn_share_what_is_read_and_each_gets_a_batch() -> None:
    """Each had all that it asked for: sixty Fetches of a whole log were one turn of a second."""

    async def scenario() -> None:
        rig = Rig()
        await rig.start()
        size = MOST_READ_BYTES // 3
        answers = tuple(
            OutboundResponse(number, FetchResponse(leader_id=1, records=LogSlice(0, 100_000_000)))
            for number in range(4)
        )
        await rig.carry_out(
            Ready(append=tuple(batch(offset, size=size) for offset in range(9)), responses=answers)
        )
        lengths = [len(each.response.records) // size for each in rig.network.responses]
        assert lengths == [2, 1, 1, 1]
        rig.network.responses.clear()
        await rig.carry_out(Ready(responses=answers[:1]))
        assert [len(each.response.records) // size for each in rig.network.responses] == [2]
        await rig.driver.stop(1000)

    run(scenario())


def test_catching_up_goes_in_pieces_and_leadership_waits_for_the_last() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.start()
        size = CHUNK_BYTES // 4
        batches = tuple(batch(offset, size=size) for offset in range(10))
        ready = Ready(append=batches, high_watermark=10, leader=LeaderAndEpoch(1, 1))
        rig.script.readies.append(ready)
        rig.driver.wake()
        await until(lambda: "leader" in rig.journal.kinds())
        commits = [entry for entry in rig.journal if entry[0] == "commit"]
        assert [entry[1:] for entry in commits] == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9,)]
        assert rig.journal.kinds().index("leader") > max(
            index for index, kind in enumerate(rig.journal.kinds()) if kind == "commit"
        )
        assert rig.driver.applied_offset == 10
        await rig.driver.stop(1000)

    run(scenario())


class Wait:
    """A call that is put off; the loop's other timers go on."""

    def __init__(self, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[Callable[[], None]] = []
        self.is_cancelled = False
        self._call_later = loop.call_later
        monkeypatch.setattr(loop, "call_later", self._take)

    def _take(self, delay_s: float, call: Any, *arguments: Any) -> Any:
        if delay_s != LONGEST_WAIT_S:
            return self._call_later(delay_s, call, *arguments)
        self.calls.append(lambda: call(*arguments))
        return self

    def cancel(self) -> None:
        self.is_cancelled = True


@pytest.mark.parametrize("is_flush_slow", [False, True])
def test_a_follower_acknowledges_before_its_state_machine_hears_of_commits_unless_the_flush_is_slow(
    is_flush_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.start()
        wait = Wait(asyncio.get_running_loop(), monkeypatch)
        rig.log.flush_pause.hold()
        await rig.carry_out(Ready(append=(batch(0),), high_watermark=1))
        assert "commit" not in rig.journal.kinds()
        if is_flush_slow:
            wait.calls[0]()
            assert rig.journal.kinds()[-1] == "commit"
            rig.log.flush_pause.release()
            await rig.carry_out(Ready(requests=(REQUEST,)))
        else:
            rig.script.readies.append(Ready(requests=(REQUEST,)))
            rig.log.flush_pause.release()
            await until(lambda: "commit" in rig.journal.kinds())
            assert rig.journal.kinds().index("send") < rig.journal.kinds().index("commit")
            assert wait.is_cancelled
        assert rig.journal.kinds().count("commit") == 1
        assert len(wait.calls) == 1
        await rig.driver.stop(1000)

    run(scenario())


def test_the_clients_of_a_leader_do_not_wait_for_its_flush() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.script.leader_id = rig.script.node_id
        await rig.start()
        rig.log.flush_pause.hold()
        await rig.carry_out(Ready(append=(batch(0), batch(1)), high_watermark=1))
        assert rig.journal.kinds()[-1] == "commit"
        rig.log.flush_pause.release()
        await rig.driver.stop(1000)

    run(scenario())


def test_losing_leadership_is_announced_at_once_and_an_unconfirmed_one_never_was() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.start()
        batches = tuple(batch(offset, size=CHUNK_BYTES) for offset in range(4))
        rig.script.readies = [
            Ready(append=batches, high_watermark=4, leader=LeaderAndEpoch(1, 1)),
            Ready(leader=LeaderAndEpoch(2, 3)),
        ]
        rig.driver.wake()
        await turns(1)
        rig.driver.wake()
        await until(lambda: rig.driver.applied_offset == 4)
        assert [entry for entry in rig.journal if entry[0] == "leader"] == [("leader", 2, 3)]
        await rig.driver.stop(1000)

    run(scenario())


def test_the_timer_serves_the_core_and_the_state_machine() -> None:
    async def scenario() -> None:
        rig = Rig()
        rig.state_machine.deadline_ms = now_ms() + 5
        await rig.start()
        await rig.carry_out(Ready(deadline_ms=now_ms() + 20), Ready(deadline_ms=now_ms() + 10))
        await until(lambda: ("time",) in rig.journal)
        await until(lambda: rig.script.inputs_of(TimeAdvanced))
        await turns(5)
        assert len(rig.script.inputs_of(TimeAdvanced)) == 1, "the last Ready has no deadline"
        rig.state_machine.deadline_ms = now_ms() + 5
        rig.driver.wake()
        await until(lambda: rig.journal.count(("time",)) == 2)
        await rig.driver.stop(1000)

    run(scenario())


def test_a_timer_never_fires_before_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.start()
        fired_at: list[int] = []
        monkeypatch.setattr(rig.state_machine, "handle_time", fired_at.append)
        deadline_ms = now_ms() + 30
        rig.state_machine.deadline_ms = deadline_ms
        await rig.carry_out(Ready(deadline_ms=now_ms() + 3))
        await until(lambda: fired_at)
        rig.state_machine.deadline_ms = None
        assert fired_at[0] >= deadline_ms
        await rig.driver.stop(1000)

    run(scenario())


def test_stopping_waits_until_the_core_has_handed_over() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.start()
        rig.script.leaves_at_once = False
        stopping = asyncio.create_task(rig.driver.stop(10_000))
        await until(lambda: rig.script.inputs_of(ShutdownRequested))
        await turns(10)
        assert not stopping.done()
        await rig.carry_out(Ready(append=(batch(0),), is_shut_down=True))
        await stopping
        assert ("flush", 1) in rig.journal, "the disk has finished"
        assert rig.fatal == []

    run(scenario())


def test_stopping_does_not_wait_for_ever() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.start()
        rig.log.flush_pause.hold()
        rig.script.leaves_at_once = False
        await rig.carry_out(Ready(append=(batch(0),)))
        await rig.driver.stop(50)
        rig.log.flush_pause.release()

    run(scenario())
