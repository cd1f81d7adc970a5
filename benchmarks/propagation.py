"""From a commit at the controller to the images of all brokers.

    python -m benchmarks.propagation [--brokers 10] [--processes 2] [--controllers 3] [--changes 1000] [--per-second 50]
                                     [--folder DIR] [--fast] [--json]

Whole nodes with their logs on disk: each controller in a process of its own, the brokers in few. Topics are created
through a broker, one after the other at a steady pace, with 2 partitions of 3 replicas each.

A commit is timed when the active controller publishes its committed image, which is just before it answers the
client; a broker, when its clients are answered from an image that contains the same offset. All processes read the
same clock. "all brokers" is the last of them, "a broker" each by itself. The goal is a p50 and p99 of all brokers
below 5 ms; on a machine whose few cores the nodes share, brokers wait for the processor as well.
"""

import argparse
import asyncio
import tempfile
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._report import hardware, percentile, print_result
from kquorum.cli.processes import wait_until
from kquorum.network.connection import KafkaConnection
from kquorum.wire.protocol.apis import ApiKey
from tests.support.api_calls import message_of
from tests.support.cluster import KAFKAS_TIMES, Cluster
from tests.support.node_hosts import Moments, NodeHosts, groups_of

TIMEOUT_MS = 30_000
SETTLED_S = 30.0
WARM_UP = 50
GOAL_MS = 5.0


async def create_topics(port: int, prefix: str, count: int, per_second: float) -> None:
    """One at a time; a creation that takes longer than its share delays the next."""
    connection = await KafkaConnection.connect("127.0.0.1", port, "benchmark", TIMEOUT_MS)
    loop = asyncio.get_running_loop()
    begin = loop.time()
    for number in range(count):
        await asyncio.sleep(max(begin + number / per_second - loop.time(), 0))
        topic = {
            "name": f"{prefix}-{number:05}",
            "num_partitions": 2,
            "replication_factor": -1,
            "assignments": (),
            "configs": (),
        }
        values = {"topics": [topic], "timeout_ms": TIMEOUT_MS, "validate_only": False}
        answer: Any = await connection.call(message_of(ApiKey.CREATE_TOPICS, values), TIMEOUT_MS)
        assert int(answer.topics[0].error_code) == 0, answer.topics[0].error_message
    connection.close()


def delays_ms(leader: Moments, brokers: Mapping[int, Moments]) -> tuple[list[float], list[float]]:
    """Of each commit that every broker has: until the last of them had it, and until each had it."""
    offsets = {broker_id: [offset for _, offset in moments] for broker_id, moments in brokers.items()}
    last: list[float] = []
    each: list[float] = []
    for committed_ns, offset in leader[1:]:
        seen_ns = []
        for broker_id, moments in brokers.items():
            place = bisect_left(offsets[broker_id], offset)
            if place < len(moments):
                seen_ns.append(moments[place][0])
        if len(seen_ns) == len(brokers):
            last.append((max(seen_ns) - committed_ns) / 1e6)
            each.extend((ns - committed_ns) / 1e6 for ns in seen_ns)
    return last, each


def measured(arguments: argparse.Namespace, folder: Path) -> list[dict[str, object]]:
    overrides = {**KAFKAS_TIMES, "default.replication.factor": min(3, arguments.brokers)}
    with (
        Cluster(
            folder, controllers=arguments.controllers, brokers=arguments.brokers, overrides=overrides
        ) as cluster,
        NodeHosts(cluster) as hosts,
    ):
        cluster.format()
        # All at once: controllers that look for each other hold up the brokers' start anyway.
        hosts.start([(node_id,) for node_id in cluster.controller_ids])
        hosts.start(groups_of(cluster.broker_ids, processes=arguments.processes))
        port = cluster.ports[cluster.broker_ids[0]]
        asyncio.run(create_topics(port, "before", WARM_UP, arguments.per_second))
        hosts.forget()
        asyncio.run(create_topics(port, "topic", arguments.changes, arguments.per_second))
        assert wait_until(lambda: _are_level(hosts.moments()), SETTLED_S), hosts.log_text()
        moments = hosts.moments()
    leader_id = first_to_commit({node_id: moments[node_id] for node_id in cluster.controller_ids})
    last, each = delays_ms(
        moments[leader_id], {broker_id: moments[broker_id] for broker_id in cluster.broker_ids}
    )
    return [row_of("all brokers", last), row_of("a broker", each)]


def _are_level(moments: Mapping[int, Moments]) -> bool:
    """Idle quorums go on committing, so this holds only now and then."""
    return len({each[-1][1] for each in moments.values()}) == 1


def first_to_commit(controllers: Mapping[int, Moments]) -> int:
    """The active one: followers hear of each commit from it, so most offsets were in its image first."""
    total: dict[int, int] = dict.fromkeys(controllers, 0)
    places = {node_id: {offset: ns for ns, offset in moments} for node_id, moments in controllers.items()}
    for offset in set.intersection(*(set(each) for each in places.values())):
        total[min(places, key=lambda node_id: places[node_id][offset])] += 1
    return max(total, key=lambda node_id: total[node_id])


def row_of(whose: str, delays: Sequence[float]) -> dict[str, object]:
    return {
        "visible_at": whose,
        "commits": len(delays),
        "p50_ms": percentile(delays, 50),
        "p90_ms": percentile(delays, 90),
        "p99_ms": percentile(delays, 99),
        "longest_ms": max(delays),
        "below_goal_percent": 100 * sum(each < GOAL_MS for each in delays) / len(delays),
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2, help="of brokers")
    parser.add_argument("--controllers", type=int, default=3, help="each in a process of its own")
    parser.add_argument("--changes", type=int, default=1_000, help="topics that are created")
    parser.add_argument("--per-second", type=float, default=50.0)
    parser.add_argument("--folder", type=Path, help="on the disk to be measured; else a temporary one")
    parser.add_argument("--fast", action="store_true", help="a tenth of the changes")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.fast:
        arguments.changes //= 10
    machine = hardware()
    names = ("brokers", "processes", "controllers", "changes", "per_second")
    settings = {name: getattr(arguments, name) for name in names}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        rows = measured(arguments, Path(folder))
    title = f"from the commit until visible (goal: below {GOAL_MS:.0f} ms)"
    print_result("propagation", machine, settings, {title: rows}, as_json=arguments.json)


if __name__ == "__main__":
    main()
