"""Members of consumer groups (KIP-848) as a broker sees them, many on each connection: they heartbeat, commit, join,
and read what their group committed.

They speak the protocol themselves: three thousand clients of any library would take more processor time than the
broker.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kquorum.broker.coordinators.partitioning import partition_of
from kquorum.network.connection import KafkaConnection
from kquorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.find_coordinator import FindCoordinatorRequest
from kquorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kquorum.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

TIMEOUT_MS = 60_000
CONNECTIONS = 20
AT_ONCE = 100
PAUSE_S = 0.1
_HEARTBEAT_VERSION, _COMMIT_VERSION, _FETCH_VERSION = 1, 9, 9
_OFFSETS_PARTITIONS = 50
_REBALANCE_MS = 300_000
_AGAIN = frozenset(
    {
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)


class RefusedError(Exception):
    """A broker answered with an error that no client asks again after."""


@dataclass(slots=True)
class Member:
    group_id: str
    member_id: str
    epoch: int = 0
    assigned: frozenset[tuple[UUID, int]] = frozenset()

    async def beat(self, connection: KafkaConnection, topic: str) -> None:
        """Join, or say what the member has and take what it is given. Raises RefusedError."""
        joins = self.epoch == 0
        owned: dict[UUID, list[int]] = {}
        for topic_id, partition in sorted(self.assigned):
            owned.setdefault(topic_id, []).append(partition)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=_REBALANCE_MS if joins else -1,
            subscribed_topic_names=(topic,) if joins else None,
            topic_partitions=tuple(
                [
                    RequestTopicPartitions(topic_id=topic_id, partitions=tuple(partitions))
                    for topic_id, partitions in owned.items()
                ]
            ),
        )
        answer: ConsumerGroupHeartbeatResponse = await connection.send_request(request, _HEARTBEAT_VERSION)
        if answer.error_code is not ErrorCode.none:
            await _pause_after(answer.error_code, "ConsumerGroupHeartbeat")
            return
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned = frozenset(
                (each.topic_id, partition)
                for each in answer.assignment.topic_partitions
                for partition in each.partitions
            )

    async def commit(self, connection: KafkaConnection, topic: str, offset: int) -> None:
        await commit(connection, self.group_id, topic, [0], offset, self.member_id, self.epoch)


async def commit(
    connection: KafkaConnection,
    group_id: str,
    topic: str,
    partitions: Sequence[int],
    offset: int,
    member_id: str = "",
    epoch: int = -1,
) -> None:
    """Raises RefusedError."""
    entries = [
        OffsetCommitRequestPartition(partition_index=each, committed_offset=offset) for each in partitions
    ]
    request = OffsetCommitRequest(
        group_id=group_id,
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=(OffsetCommitRequestTopic(name=topic, partitions=tuple(entries)),),
    )
    while True:
        answer = await connection.send_request(request, _COMMIT_VERSION)
        error = answer.topics[0].partitions[0].error_code
        if error is ErrorCode.none or error is ErrorCode.stale_member_epoch:
            return
        await _pause_after(error, "OffsetCommit")


async def _pause_after(error: ErrorCode, what: str) -> None:
    if error not in _AGAIN:
        raise RefusedError(f"{what}: {error.name}")
    await asyncio.sleep(PAUSE_S)


async def connect(address: str, count: int = CONNECTIONS) -> list[KafkaConnection]:
    """When there is a coordinator."""
    host, _, port = address.partition(":")
    found = [await KafkaConnection.connect(host, int(port), "bench", TIMEOUT_MS) for _ in range(count)]
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=("bench",))
    while True:
        answer = await found[0].call(request, TIMEOUT_MS)
        if answer.coordinators[0].error_code is ErrorCode.none:
            return found
        await asyncio.sleep(PAUSE_S)


async def heartbeat_and_commit(
    address: str, topic: str, groups: int, members: int, length_s: float
) -> Mapping[str, float]:
    """Each member in its turn, a hundred at once, first to join: heartbeats and commits a second, and their times."""
    connections = await connect(address)
    all_members = [
        Member(f"group-{group}", f"m{number}") for group in range(groups) for number in range(members)
    ]
    spent_ms: list[float] = []
    ends_s = [0.0]

    async def timed(act: Awaitable[None]) -> None:
        began_s = time.perf_counter()
        await act
        spent_ms.append((time.perf_counter() - began_s) * 1e3)

    async def work(number: int) -> None:
        connection = connections[number % len(connections)]
        mine = all_members[number::AT_ONCE]
        for member in mine:
            while member.epoch == 0:
                await member.beat(connection, topic)
        joined.release()
        await may_go_on.wait()
        offset = 0
        while True:
            offset += 1
            for member in mine:
                if time.perf_counter() >= ends_s[0]:
                    return
                await timed(member.beat(connection, topic))
                await timed(member.commit(connection, topic, offset))

    joined, may_go_on = asyncio.Semaphore(0), asyncio.Event()
    began_s = time.perf_counter()
    tasks = [asyncio.create_task(work(number)) for number in range(AT_ONCE)]
    everyone = asyncio.gather(*tasks)
    for _ in tasks:
        await asyncio.wait(
            [everyone, asyncio.create_task(joined.acquire())], return_when=asyncio.FIRST_COMPLETED
        )
        if everyone.done():
            await everyone
    join_s = time.perf_counter() - began_s
    ends_s[0] = time.perf_counter() + length_s
    may_go_on.set()
    await everyone
    _close(connections)
    spent = sorted(spent_ms)
    return {
        "joins/s": len(all_members) / join_s,
        "op/s": len(spent) / length_s,
        "p50_ms": spent[len(spent) // 2],
        "p99_ms": spent[len(spent) * 99 // 100],
    }


async def rebalance(address: str, topic: str, partitions: int, members: int) -> float:
    """Seconds from the first join of `members` that join one group at once until each has its part, all of them all."""
    connections = await connect(address)
    group = [Member("rebalanced", f"m{number}") for number in range(members)]
    began_s = time.perf_counter()
    while True:
        await asyncio.gather(
            *[
                member.beat(connections[number % len(connections)], topic)
                for number, member in enumerate(group)
            ]
        )
        held = [each for member in group for each in member.assigned]
        is_shared = all(member.assigned for member in group)
        if is_shared and len(held) == len(set(held)) == partitions:
            _close(connections)
            return time.perf_counter() - began_s
        await asyncio.sleep(PAUSE_S)


def groups_of_one_partition(count: int) -> list[str]:
    """Of the partition 0 of `__consumer_offsets`, with Kafka's default of 50."""
    found: list[str] = []
    number = 0
    while len(found) < count:
        name = f"loaded-{number}"
        if partition_of(name, _OFFSETS_PARTITIONS) == 0:
            found.append(name)
        number += 1
    return found


async def commit_many(address: str, topic: str, partitions: int, groups: Sequence[str]) -> None:
    connections = await connect(address)
    indexes = range(partitions)

    async def work(number: int) -> None:
        for group in groups[number :: len(connections)]:
            await commit(connections[number], group, topic, indexes, 7)

    await asyncio.gather(*[work(number) for number in range(len(connections))])
    _close(connections)


async def until_loaded(address: str, group: str) -> float:
    """Seconds until the offsets of a group are answered by a broker that serves since now."""
    began_s = time.perf_counter()
    [connection] = await connect(address, 1)
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=None),))
    while True:
        [found] = (await connection.send_request(request, _FETCH_VERSION)).groups
        if found.error_code is ErrorCode.none and found.topics:
            connection.close()
            return time.perf_counter() - began_s
        await asyncio.sleep(0.01)


def _close(connections: Sequence[KafkaConnection]) -> None:
    for each in connections:
        each.close()


def run(act: Callable[[], Any]) -> Any:
    return asyncio.run(act())
