"""Many brokers follow the log of one quorum, and many clients ask all of them for metadata while topics change.

Each answer must be the topics of one image, the whole of it: that of an offset not before what operators were shown of
the broker when the question was sent (`kquorum brokers`), nor before what it had applied then, nor after what it had
applied when the answer came.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.commands.brokers.members_grpc import describe_brokers, wait_applied
from kquorum.network.connection import KafkaConnection
from kquorum.node.config.addresses import HostPort
from kquorum.node.config.materialise import LOOPBACK, free_ports
from kquorum.wire.log_batch import parse_batches
from kquorum.wire.protocol.apis import ApiKey
from tests.support.api_calls import message_of
from tests.support.cluster import CLUSTER_ID, Cluster
from tests.support.metadata_history import Answer, MetadataHistory, State
from tests.support.metadata_swarm import MetadataSwarm
from tests.support.node_hosts import Moments, NodeHosts, groups_of

TIMEOUT_MS = 60_000
TOPICS_AT_A_TIME = 6
# Each commit is fetched, written and applied 200 times on the cores of one machine, so commits without work are rare
# here, and no slow client is given up: the test judges what clients receive, not how soon.
TIMES = {
    "controller.quorum.election.timeout.ms": 2_000,
    "controller.quorum.fetch.timeout.ms": 15_000,
    "metadata.max.idle.interval.ms": 2_000,
    "broker.heartbeat.interval.ms": 3_000,
    "broker.session.timeout.ms": 45_000,
}


@dataclass(frozen=True, slots=True)
class Seen:
    """`moments` are those of the brokers; `most_lag` is the largest that was shown."""

    answers: list[Answer]
    states: Mapping[bytes, State]
    moments: Mapping[int, Moments]
    history: MetadataHistory
    most_lag: int
    shown: int


class ManyBrokers(Cluster):
    def __init__(self, folder: Path, *, controllers: int, brokers: int) -> None:
        ports = free_ports(controllers)
        self.quorum_grpc = [HostPort(LOOPBACK, port) for port in ports]
        per_node = {
            node_id: {"kquorum.grpc.listener": f"{LOOPBACK}:{port}"} for node_id, port in enumerate(ports, 1)
        }
        super().__init__(
            folder, controllers=controllers, brokers=brokers, overrides=TIMES, node_overrides=per_node
        )


class ShownLag:
    """What `kquorum brokers` shows, asked over and over."""

    def __init__(self, addresses: list[HostPort]) -> None:
        self._addresses = addresses
        self._applied: dict[int, int] = {}
        self.most_lag = self.shown = 0

    def applied_offset(self, broker_id: int) -> int:
        return self._applied.get(broker_id, -1)

    async def follow(self) -> None:
        while True:
            members = await describe_brokers(self._addresses, TIMEOUT_MS)
            for row in members.brokers:
                if row.applied_offset is not None and row.lag is not None:
                    self._applied[row.broker_id] = row.applied_offset
                    self.most_lag = max(self.most_lag, row.lag)
            self.shown += 1
            await asyncio.sleep(0.1)


async def change_topics(port: int, count: int) -> None:
    """One after the other: a topic comes, gets a partition more, and goes when there are enough younger ones."""
    connection = await KafkaConnection.connect(LOOPBACK, port, "changer", TIMEOUT_MS)
    there: deque[str] = deque()

    async def ask(api_key: ApiKey, values: Mapping[str, object]) -> None:
        answer: Any = await connection.call(
            message_of(api_key, {**values, "timeout_ms": TIMEOUT_MS}), TIMEOUT_MS
        )
        results = next(
            getattr(answer, name) for name in ("topics", "results", "responses") if hasattr(answer, name)
        )
        assert [int(each.error_code) for each in results] == [0], results

    for number in range(count):
        if number % 3 == 1:
            values: dict[str, object] = {
                "topics": [{"name": there[-1], "count": 3, "assignments": None}],
                "validate_only": False,
            }
            await ask(ApiKey.CREATE_PARTITIONS, values)
        elif len(there) > TOPICS_AT_A_TIME:
            name = there.popleft()
            await ask(
                ApiKey.DELETE_TOPICS, {"topics": [{"name": name, "topic_id": None}], "topic_names": [name]}
            )
        else:
            name = f"topic-{number}"
            there.append(name)
            topic = {
                "name": name,
                "num_partitions": 2,
                "replication_factor": 3,
                "assignments": (),
                "configs": (),
            }
            await ask(ApiKey.CREATE_TOPICS, {"topics": [topic], "validate_only": False})
    connection.close()


async def watch(
    cluster: ManyBrokers, hosts: NodeHosts, *, connections: int, changes: int, period_s: float
) -> Seen:
    ports = {broker_id: cluster.ports[broker_id] for broker_id in cluster.broker_ids}
    applied = await wait_applied(cluster.quorum_grpc, None, TIMEOUT_MS)
    assert applied.is_applied, f"{len(applied.lagging)} brokers do not follow: {hosts.log_text()[-2000:]}"
    shown = ShownLag(cluster.quorum_grpc)
    following = asyncio.create_task(shown.follow())
    swarm = MetadataSwarm(CLUSTER_ID, shown.applied_offset, period_s)
    try:
        await swarm.connect(ports, connections)
        await change_topics(next(iter(ports.values())), changes)
        await swarm.stop()
        if following.done():
            await following  # for its error: the lag was not shown all the time
    finally:
        following.cancel()
        swarm.close()
    moments = await asyncio.to_thread(hosts.moments)
    history = MetadataHistory.of_folder(cluster.data_folder(await asyncio.to_thread(cluster.leader_id)))
    return Seen(swarm.answers, swarm.states(), moments, history, shown.most_lag, shown.shown)


def fault_of(answer: Answer, seen: Seen) -> str | None:
    """What is wrong with an answer; None for a good one."""
    moments = seen.moments[answer.broker_id]
    low, high = (applied_at(moments, ns) for ns in (answer.sent_ns, answer.received_ns))
    if answer.shown_offset > low:
        return f"operators were shown {answer.shown_offset}, and the broker had only {low}"
    return seen.history.fault(seen.states[answer.topics], low, high)


def applied_at(moments: Moments, ns: int) -> int:
    place = bisect_right(moments, (ns, 2**62))
    return moments[place - 1][1] if place else -1


def check_many(
    folder: Path,
    *,
    controllers: int,
    brokers: int,
    processes: int,
    connections: int,
    changes: int,
    period_s: float,
) -> Seen:
    with (
        ManyBrokers(folder, controllers=controllers, brokers=brokers) as cluster,
        NodeHosts(cluster) as hosts,
    ):
        cluster.format()
        cluster.start_nodes(cluster.controller_ids)
        hosts.start(groups_of(cluster.broker_ids, processes=processes))
        work = watch(cluster, hosts, connections=connections, changes=changes, period_s=period_s)
        seen = asyncio.run(work)
        assert "Traceback" not in hosts.log_text() + "".join(map(cluster.log_text, cluster.controller_ids))
    faults = [fault for answer in seen.answers if (fault := fault_of(answer, seen)) is not None]
    assert not faults, f"{len(faults)} of {len(seen.answers)} answers, the first of them: {faults[:3]}"
    assert {answer.broker_id for answer in seen.answers} == set(range(101, 101 + brokers))
    assert len(seen.answers) >= connections, "every connection was answered"
    # Otherwise the clients did not see what changed.
    assert len(seen.states) > changes / 4, f"{len(seen.states)} states in {len(seen.answers)} answers"
    assert seen.shown > 1
    return seen


@pytest.mark.slow
def test_clients_of_twenty_brokers_see_nothing_staler_than_the_lag_shown(tmp_path: Path) -> None:
    seen = check_many(
        tmp_path, controllers=1, brokers=20, processes=1, connections=100, changes=40, period_s=0.1
    )
    judge_tampered_answers(seen)


@pytest.mark.slow
def test_two_thousand_clients_of_two_hundred_brokers(tmp_path: Path) -> None:
    seen = check_many(
        tmp_path, controllers=3, brokers=200, processes=4, connections=2_000, changes=60, period_s=3.0
    )
    judge_tampered_answers(seen)


def judge_tampered_answers(seen: Seen) -> None:
    """What was found good is found bad if it comes late, early or by half."""
    first, last = seen.answers[0], seen.answers[-1]
    assert seen.states[first.topics] != seen.states[last.topics]
    moments = seen.moments[first.broker_id]
    late = Answer(first.broker_id, moments[-1][0], moments[-1][0] + 1, first.topics, -1)
    assert "were expected" in str(fault_of(late, seen))
    early = Answer(first.broker_id, moments[0][0], moments[0][0] + 1, last.topics, -1)
    assert "were expected" in str(fault_of(early, seen))
    sizes = {account: len(state) for account, state in seen.states.items()}
    (name, topic_id, partitions), *others = sorted(seen.states[max(sizes, key=lambda each: sizes[each])])
    half = frozenset([(name, topic_id, partitions[:1]), *others])
    assert "never together" in str(seen.history.fault(half, -1, 2**62)), "no topic ever had one partition"


def test_a_log_of_nothing_has_one_state() -> None:
    history = MetadataHistory(parse_batches(b""))
    assert history.fault(frozenset(), 0, 10) is None
