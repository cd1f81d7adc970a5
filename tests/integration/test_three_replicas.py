"""Three replicas elect, replicate, lose their leader and find each other again: real sockets, real files."""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import uvloop

from kquorum.network.connection import KafkaConnection
from kquorum.raft.adapters.kafka_codec.codec import decode_response, encode_request
from kquorum.raft.messages import DescribeQuorumRequest, DescribeQuorumResponse
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from kquorum.wire.protocol.api_keys import ApiKey
from tests.integration.replicas import HOST, ReplicaProcess, voters_at


def run(test: Coroutine[Any, Any, None], *, on_uvloop: bool = True) -> None:
    factory = uvloop.new_event_loop if on_uvloop else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(asyncio.wait_for(test, 60))


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - a condition, not an event of ours
            await asyncio.sleep(0.002)


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports: list[int] = [item.getsockname()[1] for item in sockets]
    for item in sockets:
        item.close()
    return ports


async def started(folder: Path, count: int = 3) -> list[ReplicaProcess]:
    voters = voters_at(free_ports(count))
    replicas = [ReplicaProcess(node_id, folder, voters) for node_id in voters.ids]
    for replica in replicas:
        await replica.start()
    return replicas


async def the_leader(replicas: Sequence[ReplicaProcess]) -> ReplicaProcess:
    await until(lambda: any(replica.leads for replica in replicas))
    return next(replica for replica in replicas if replica.leads)


async def all_have(replicas: Sequence[ReplicaProcess], values: list[bytes]) -> None:
    await until(lambda: all(replica.state_machine.values == values for replica in replicas))


def log_bytes(replica: ReplicaProcess) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(replica.folder.glob("*.log")))


@pytest.mark.parametrize("on_uvloop", [True, False])
def test_three_replicas_elect_a_leader_and_commit(tmp_path: Path, on_uvloop: bool) -> None:
    async def scenario() -> None:
        replicas = await started(tmp_path)
        leader = await the_leader(replicas)
        values = [b"value %d" % index for index in range(500)]
        for value in values:
            leader.propose(value)
            await asyncio.sleep(0)
        await all_have(replicas, values)
        for replica in replicas:
            await replica.stop()
        assert [replica.fatal for replica in replicas] == [[], [], []]
        check_logs_agree(replicas)

    run(scenario(), on_uvloop=on_uvloop)


def check_logs_agree(replicas: Sequence[ReplicaProcess]) -> None:
    """One log is a prefix of the other, and each is sound from end to end."""
    logs = sorted((log_bytes(replica) for replica in replicas), key=len)
    for shorter, longer in pairwise(logs):
        assert longer.startswith(shorter)
    found = list(scan_batches(logs[-1], base_offset=0))
    assert all(isinstance(item, ScannedBatch) for item in found)


def test_a_killed_leader_is_replaced_and_catches_up_when_it_returns(tmp_path: Path) -> None:
    async def scenario() -> None:
        replicas = await started(tmp_path)
        first = await the_leader(replicas)
        first.propose(b"one")
        await all_have(replicas, [b"one"])
        await first.kill()
        rest = [replica for replica in replicas if replica is not first]
        second = await the_leader(rest)
        assert second.driver.leader_epoch > first.driver.leader_epoch
        second.propose(b"two")
        await all_have(rest, [b"one", b"two"])
        await first.start()
        await all_have([first], [b"one", b"two"])
        for replica in replicas:
            await replica.stop()
        assert [replica.fatal for replica in replicas] == [[], [], []]
        check_logs_agree(replicas)

    run(scenario())


def test_an_orderly_stop_hands_over_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        replicas = await started(tmp_path)
        first = await the_leader(replicas)
        first.propose(b"one")
        await all_have(replicas, [b"one"])
        await first.stop()
        rest = [replica for replica in replicas if replica is not first]
        second = await the_leader(rest)
        second.propose(b"two")
        await all_have(rest, [b"one", b"two"])
        for replica in rest:
            await replica.stop()

    run(scenario())


def test_all_of_them_restart_with_what_they_had(tmp_path: Path) -> None:
    async def scenario() -> None:
        replicas = await started(tmp_path)
        leader = await the_leader(replicas)
        leader.propose(b"a", b"b", b"c")
        await all_have(replicas, [b"a", b"b", b"c"])
        epoch = leader.driver.leader_epoch
        for replica in replicas:
            await replica.kill()
        for replica in replicas:
            await replica.start()
        again = await the_leader(replicas)
        assert again.driver.leader_epoch > epoch
        again.propose(b"d")
        await all_have(replicas, [b"a", b"b", b"c", b"d"])
        for replica in replicas:
            await replica.stop()

    run(scenario())


def test_a_minority_commits_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        replicas = await started(tmp_path)
        leader = await the_leader(replicas)
        leader.propose(b"one")
        await all_have(replicas, [b"one"])
        for replica in replicas:
            if replica is not leader:
                await replica.kill()
        leader.propose(b"lost")
        await until(lambda: leader.driver.leader_id != leader.node_id or not leader.leads)
        assert leader.state_machine.values == [b"one"]
        await leader.kill()

    run(scenario())


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_kafka_client_may_ask_who_leads(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        replicas = await started(tmp_path)
        leader = await the_leader(replicas)
        leader.propose(b"one")
        await all_have(replicas, [b"one"])
        connection = await KafkaConnection.connect(HOST, leader.server.bound_port, "asker", 5000)
        request = encode_request(DescribeQuorumRequest(), version)
        response = await connection.send_request(request, version)
        answer = decode_response(ApiKey.DESCRIBE_QUORUM, response)
        assert isinstance(answer, DescribeQuorumResponse)
        assert answer.leader_id == leader.node_id
        assert [voter.replica_id for voter in answer.current_voters] == [1, 2, 3]
        assert {voter.log_end_offset for voter in answer.current_voters} >= {answer.high_watermark}
        connection.close()
        for replica in replicas:
            await replica.kill()

    run(scenario())
