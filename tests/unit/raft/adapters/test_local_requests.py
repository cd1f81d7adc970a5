"""Reads and requests from within the process: answered in order, and failed once the driver has ended."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kquorum.raft.adapters.delivery import CHUNK_BYTES
from kquorum.raft.adapters.driver import RaftDriver
from kquorum.raft.adapters.quorum_state_file import QuorumStateFile
from kquorum.raft.errors import NotLeaderError
from kquorum.raft.inputs import ReadRequested, RequestReceived
from kquorum.raft.messages import (
    ChangeVotersResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    TransferLeadershipRequest,
    TransferLeadershipResponse,
)
from kquorum.raft.ports import RaftPort
from kquorum.raft.ready import (
    LeaderAndEpoch,
    OutboundRequest,
    OutboundResponse,
    QuorumState,
    ReadConfirmed,
    ReadRefused,
    Ready,
    RoleChanged,
    VotersChanged,
)
from kquorum.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from tests.support.raft.driver_parts import Rig, batch, now_ms, run, sole_voter, turns, until

Result = TypeVar("Result")
VOTERS = VoterSet.of(Voter(ReplicaKey(1)), Voter(ReplicaKey(2)))


async def begun(rig: Rig, call: Awaitable[Result]) -> "asyncio.Future[Result]":
    """The call under way, its input given to the core."""
    task = asyncio.ensure_future(call)
    await turns(3)
    return task


def with_rig(scenario: Callable[[Rig], Awaitable[None]]) -> None:
    async def whole() -> None:
        rig = Rig()
        await rig.start()
        await scenario(rig)
        await rig.driver.stop(1000)
        assert rig.fatal == []

    run(whole())


def test_a_confirmed_read_waits_until_all_below_it_was_applied() -> None:
    async def scenario(rig: Rig) -> None:
        read = await begun(rig, rig.driver.read_linearizable())
        (asked,) = rig.script.inputs_of(ReadRequested)
        batches = tuple(batch(offset) for offset in range(5))
        confirmed = (ReadConfirmed(asked.read_id, 4),)
        await rig.carry_out(Ready(append=batches), Ready(high_watermark=3, reads=confirmed))
        await turns(5)
        assert rig.driver.applied_offset == 3
        assert not read.done()
        await rig.carry_out(Ready(high_watermark=5))
        assert await read == 4

    with_rig(scenario)


def test_a_read_below_what_was_applied_already_needs_no_further_turn() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.carry_out(Ready(append=(batch(0), batch(1)), high_watermark=2))
        await until(lambda: rig.log.flushes)
        await turns(5)
        read = await begun(rig, rig.driver.read_linearizable())
        (asked,) = rig.script.inputs_of(ReadRequested)
        await rig.carry_out(Ready(reads=(ReadConfirmed(asked.read_id, 2),)))
        taken = rig.script.taken
        await turns(5)
        assert (read.done(), rig.script.taken) == (True, taken)
        assert await read == 2

    with_rig(scenario)


def test_a_read_confirmed_behind_much_to_catch_up_with_comes_when_its_own_part_was_applied() -> None:
    async def scenario(rig: Rig) -> None:
        read = await begun(rig, rig.driver.read_linearizable())
        late = await begun(rig, rig.driver.read_linearizable())
        first, second = rig.script.inputs_of(ReadRequested)
        batches = tuple(batch(offset, size=CHUNK_BYTES) for offset in range(8))
        outcomes = (ReadConfirmed(second.read_id, 8), ReadConfirmed(first.read_id, 2))
        rig.script.readies.append(Ready(append=batches, high_watermark=8, reads=outcomes))
        rig.driver.wake()
        assert await read == 2
        assert rig.driver.applied_offset < 8
        assert await late == 8
        assert rig.driver.applied_offset == 8

    with_rig(scenario)


def test_a_refused_read_names_the_leader() -> None:
    async def scenario(rig: Rig) -> None:
        read = await begun(rig, rig.driver.read_linearizable())
        (asked,) = rig.script.inputs_of(ReadRequested)
        await rig.carry_out(Ready(reads=(ReadRefused(asked.read_id, 3, 7),)))
        with pytest.raises(NotLeaderError) as caught:
            await read
        assert (caught.value.leader_id, caught.value.leader_epoch) == (3, 7)

    with_rig(scenario)


def test_a_reader_who_gave_up_disturbs_no_other() -> None:
    async def scenario(rig: Rig) -> None:
        reads = [await begun(rig, rig.driver.read_linearizable()) for _ in range(3)]
        asked = await begun(rig, rig.driver.ask(DescribeQuorumRequest()))
        for call in (*reads, asked):
            call.cancel()
        await turns(2)
        ids = [event.read_id for event in rig.script.inputs_of(ReadRequested)]
        (received,) = rig.script.inputs_of(RequestReceived)
        await rig.carry_out(
            Ready(
                reads=(ReadConfirmed(ids[0], 0), ReadConfirmed(ids[1], 9), ReadRefused(ids[2], -1, 1)),
                responses=(OutboundResponse(received.request_id, DescribeQuorumResponse()),),
            )
        )
        assert rig.network.responses == []

    with_rig(scenario)


def test_the_weaker_reads_are_offsets_at_hand() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.carry_out(Ready(append=(batch(0), batch(1), batch(2))), Ready(high_watermark=2))
        rig.script.log_end_offset = 3
        assert rig.driver.read_committed() == 2
        assert rig.driver.read_local() == 3

    with_rig(scenario)


def test_requests_of_this_process_and_of_peers_have_ids_apart() -> None:
    async def scenario(rig: Rig) -> None:
        removal = RemoveRaftVoterRequest(cluster_id="c", voter=ReplicaKey(2))
        first = await begun(rig, rig.driver.ask(removal))
        second = await begun(rig, rig.driver.transfer_leadership(2))
        own = rig.script.inputs_of(RequestReceived)
        assert [event.request for event in own] == [removal, TransferLeadershipRequest(target_id=2)]
        assert all(event.request_id < 0 for event in own)
        rig.driver.receive(RequestReceived(1, DescribeQuorumRequest()))
        refused = ChangeVotersResponse(message="no")
        transferred = TransferLeadershipResponse(message="not caught up")
        await rig.carry_out(
            Ready(
                responses=(
                    OutboundResponse(own[1].request_id, transferred),
                    OutboundResponse(1, DescribeQuorumResponse()),
                    OutboundResponse(own[0].request_id, refused),
                )
            )
        )
        assert (await first, await second) == (refused, transferred)
        assert rig.network.responses == [OutboundResponse(1, DescribeQuorumResponse())]

    with_rig(scenario)


CALLS: list[Callable[[RaftDriver], Awaitable[Any]]] = [
    lambda driver: driver.read_linearizable(),
    lambda driver: driver.ask(DescribeQuorumRequest()),
    lambda driver: driver.transfer_leadership(2),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("how", ["stop", "failure"])
def test_a_driver_that_ends_leaves_no_caller_waiting(
    call: Callable[[RaftDriver], Awaitable[Any]], how: str
) -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.start()
        rig.script.leader_epoch = 6
        waiting = await begun(rig, call(rig.driver))
        confirmed = await begun(rig, rig.driver.read_linearizable())
        asked = rig.script.inputs_of(ReadRequested)[-1]
        await rig.carry_out(Ready(reads=(ReadConfirmed(asked.read_id, 99),)))
        if how == "failure":
            rig.script.step_error = RuntimeError("boom")
            rig.driver.receive(RequestReceived(1, DescribeQuorumRequest()))
        else:
            await rig.driver.stop(1000)
        for future in (waiting, confirmed, asyncio.ensure_future(call(rig.driver))):
            with pytest.raises(NotLeaderError, match="epoch 6"):
                await future
        await rig.driver.stop(1000)

    run(scenario())


def test_an_input_that_fails_the_core_fails_its_own_caller() -> None:
    async def scenario() -> None:
        rig = Rig()
        await rig.start()
        rig.script.step_error = RuntimeError("boom")
        with pytest.raises(NotLeaderError):
            await rig.driver.read_linearizable()
        assert [str(error) for error in rig.fatal] == ["boom"]
        await rig.driver.stop(1000)

    run(scenario())


def test_voters_and_reads_come_in_their_places() -> None:
    """The order of raft.ready.Ready: messages, the new voters, what is committed, the leader, and reads last."""

    async def scenario() -> None:
        rig = Rig()
        journal = rig.journal
        rig.driver = RaftDriver(
            rig.script, rig.log, rig.state_store, now_ms, rig.fatal.append,
            on_role_change=lambda change: journal.append(("role", change.role)),
            on_voters_changed=lambda change: journal.append(("voters", *change.voters.ids)),
            on_caught_up=lambda: journal.append(("caught up",)),
        )  # fmt: skip
        await rig.start()
        read = await begun(rig, rig.driver.read_linearizable())
        read.add_done_callback(lambda _: journal.append(("read",)))
        rig.script.leader_id = 1
        (asked,) = rig.script.inputs_of(ReadRequested)
        await rig.carry_out(
            Ready(
                append=(batch(0),),
                quorum_state=QuorumState(leader_epoch=2),
                requests=(OutboundRequest(5, 2, DescribeQuorumRequest()),),
                responses=(OutboundResponse(9, DescribeQuorumResponse()),),
                high_watermark=1,
                leader=LeaderAndEpoch(1, 2),
                voters_changed=VotersChanged(VOTERS, 1),
                reads=(ReadConfirmed(asked.read_id, 1),),
                has_caught_up=True,
                role_changes=(RoleChanged("leader", 2, "won the election"),),
            )
        )
        await until(lambda: ("read",) in journal)
        order = [kind for kind in journal.kinds() if kind != "flush"]
        assert order == [
            "append", "state", "send", "respond", "role", "voters", "commit", "leader", "caught up", "read"
        ]  # fmt: skip
        assert rig.driver.in_force == VotersChanged(VOTERS, 1)
        await rig.driver.stop(1000)

    run(scenario())


def test_the_election_state_is_written_as_the_version_in_force_asks(tmp_path: Path) -> None:
    """With the format of the announcement before; the next write has the new one."""

    async def scenario() -> None:
        rig = Rig()
        store = QuorumStateFile(
            tmp_path, lambda: rig.driver.in_force.voters.ids, lambda: rig.driver.in_force.kraft_version
        )
        rig.driver = RaftDriver(rig.script, rig.log, store, now_ms, rig.fatal.append)
        await rig.start()
        state = QuorumState(leader_epoch=2, voted=ReplicaKey(2))
        path = tmp_path / "quorum-state"
        await rig.carry_out(Ready(quorum_state=state, voters_changed=VotersChanged(VOTERS, 1)))
        await until(lambda: path.exists() and rig.driver.in_force.kraft_version == 1)
        assert b'"currentVoters":[{"voterId":1}],"data_version":0' in path.read_bytes()
        await rig.carry_out(Ready(quorum_state=state))
        await until(lambda: b'"data_version":1' in path.read_bytes())
        await rig.driver.stop(1000)

    run(scenario())


def test_the_rest_of_the_port_is_the_cores_answer() -> None:
    async def scenario(rig: Rig) -> None:
        port: RaftPort = rig.driver
        assert port.voters == rig.script.voters
        assert port.kraft_version == 0
        assert port.endpoint_of(3) == Endpoint("CONTROLLER", "c3", 9093)
        taken = rig.script.taken
        assert port.upgrade_kraft_version(now_ms(), 4, 1) == "epoch 4, version 1, validate_only False"
        assert port.upgrade_kraft_version(now_ms(), 4, 1, validate_only=True) == (
            "epoch 4, version 1, validate_only True"
        )
        await turns(2)
        assert rig.script.taken > taken, "what was appended leaves in a turn of its own"

    with_rig(scenario)


def test_a_sole_voter_reads_and_refuses_to_hand_over() -> None:
    """The real core."""

    async def scenario() -> None:
        rig = Rig(sole_voter())
        await rig.start()
        await until(lambda: ("leader", 1, 1) in rig.journal)
        last = rig.driver.propose(now_ms(), 1, [b"x"])
        await until(lambda: rig.driver.applied_offset > last)
        offset = await rig.driver.read_linearizable()
        assert offset == last + 1 == rig.driver.read_committed()
        refused = await rig.driver.transfer_leadership(2)
        assert refused.message
        assert refused.error.value != 0
        described = await rig.driver.ask(DescribeQuorumRequest())
        assert isinstance(described, DescribeQuorumResponse)
        assert (described.leader_id, described.high_watermark) == (1, offset)
        assert rig.network.responses == []
        await rig.driver.stop(1000)
        with pytest.raises(NotLeaderError):
            rig.driver.upgrade_kraft_version(now_ms(), 1, 1)

    run(scenario())
