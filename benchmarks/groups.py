"""Consumer groups at a broker of ours, and at one of Apache Kafka's.

    python -m benchmarks.groups [--sides kquorum,kafka] [--groups 1000] [--members 3] [--length 10] [--together 100]
                                [--offsets 100000] [--times 3] [--against CHECKOUT] [--from-sources] [--folder DIR]
                                [--json]

A side is a controller of ours and one broker on loopback; the sides run one after the other, round by round. The
members speak the consumer protocol (KIP-848; `benchmarks/_group_clients.py`).

- `joins/s`: the members of all groups join, a hundred requests at once;
- `op/s`, `p50 ms`, `p99 ms`: then each heartbeats and commits in its turn, a hundred at once;
- `ms/op`: processor time of the broker for each of those. It moves less with the load of the machine;
- `rebalance s`: members that join one group together, from the first join until each has its part. It takes some of
  `consumer.assignment.interval.ms`, a second each;
- `load s`: a broker that starts with so many offsets in one partition of `__consumer_offsets`: from when it serves
  until it answers with the offsets of a group; `load cpu s`: its processor time meanwhile.

A ratio is that of ours to the other's, the median over the rounds of the ratio within a round. Kafka's side needs Java,
and a network once.
"""

import argparse
import asyncio
from pathlib import Path

from benchmarks._group_clients import (
    commit_many,
    groups_of_one_partition,
    heartbeat_and_commit,
    rebalance,
    until_loaded,
)
from benchmarks._rounds import parsed, parser_of, run_rounds
from benchmarks.broker_peers import Figures, Side, await_leaders, begin, spent_s
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import VERSION
from tests.interop.site import Layout, Site
from tests.support.cluster import KAFKAS_TIMES

BROKER = 11
TOPIC = "orders"
PARTITIONS = 200


def layout() -> Layout:
    keys = {**KAFKAS_TIMES, "offsets.topic.replication.factor": 1}
    return Layout(brokers=(BROKER,), release=".".join(VERSION.split(".")[:2]), settings={BROKER: keys})


def measured(side: Side, kafka: Kafka, folder: Path, options: argparse.Namespace) -> Figures:
    with Site(kafka, folder, layout()) as site:
        begin(site, side, (BROKER,))
        site.create_topic(TOPIC, BROKER, PARTITIONS, replicas=1)
        await_leaders(site, TOPIC, brokers=(BROKER,))
        address = site.nodes[BROKER].address
        figures: dict[str, float] = {}

        def run(length_s: float) -> None:
            figures.update(
                asyncio.run(heartbeat_and_commit(address, TOPIC, options.groups, options.members, length_s))
            )

        # Joins once, and is warm then: members that are there join with one heartbeat.
        run(options.length / 2)
        joins = figures["joins/s"]
        busy_s = spent_s(site, lambda: run(options.length), (BROKER,))
        operations = figures["op/s"] * options.length + options.groups * options.members
        figures |= {"joins/s": joins, "ms/op": busy_s * 1e3 / operations}
        figures["rebalance_s"] = asyncio.run(rebalance(address, TOPIC, PARTITIONS, options.together))
        groups = groups_of_one_partition(max(options.offsets // PARTITIONS, 1))
        asyncio.run(commit_many(address, TOPIC, PARTITIONS, groups))
        site.stop(BROKER)
        side.start(site, BROKER)

        def load() -> None:
            figures["load_s"] = asyncio.run(until_loaded(address, groups[-1]))

        figures["load_cpu_s"] = spent_s(site, load, (BROKER,))
        return figures


def main() -> None:
    parser = parser_of("groups", __doc__)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--members", type=int, default=3, help="of each group")
    parser.add_argument("--length", type=float, default=10.0, help="seconds of heartbeats and commits")
    parser.add_argument("--together", type=int, default=100, help="members that join one group at once")
    parser.add_argument("--offsets", type=int, default=100_000, help="that a broker loads")
    options = parsed(parser)
    settings = {
        name: getattr(options, name) for name in ("groups", "members", "length", "together", "offsets")
    }
    run_rounds(
        "groups", options, settings, lambda side, kafka, folder: measured(side, kafka, folder, options)
    )


if __name__ == "__main__":
    main()
