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
import sys
import tempfile
from pathlib import Path

from benchmarks._group_clients import (
    commit_many,
    groups_of_one_partition,
    heartbeat_and_commit,
    rebalance,
    until_loaded,
)
from benchmarks._report import hardware, print_result
from benchmarks.broker_peers import (
    JVM,
    SIDES,
    Figures,
    Side,
    await_leaders,
    begin,
    rows,
    sides_of,
    spent_s,
)
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import VERSION, Unavailable, find_release
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


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.groups",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--members", type=int, default=3, help="of each group")
    parser.add_argument("--length", type=float, default=10.0, help="seconds of heartbeats and commits")
    parser.add_argument("--together", type=int, default=100, help="members that join one group at once")
    parser.add_argument("--offsets", type=int, default=100_000, help="that a broker loads")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--against", type=Path, help="another checkout of this project, as one more side")
    parser.add_argument(
        "--from-sources", action="store_true", help="our sources, not compiled, as one more side"
    )
    parser.add_argument("--folder", type=Path, help="kept; a temporary one without it")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args()
    options.sides = options.sides.split(",")
    if not set(options.sides) <= set(SIDES):
        parser.error(f"--sides: there are {', '.join(SIDES)}")
    return options


def main() -> None:
    options = parse()
    machine = hardware()
    try:
        release = find_release()
    except Unavailable as error:
        raise SystemExit(f"the cluster is described by Kafka's release: {error}") from None
    sides = sides_of(options)
    results: dict[str, list[Figures]] = {side.name: [] for side in sides}
    with tempfile.TemporaryDirectory(prefix="kquorum-groups-") as temporary:
        base = options.folder or Path(temporary)
        for number in range(options.times):
            for side in sides[::-1] if number % 2 else sides:
                folder = base / f"{number}-{side.name}"
                folder.mkdir(parents=True)
                figures = measured(side, Kafka(release, folder, JVM), folder, options)
                results[side.name].append(figures)
                text = ", ".join(f"{name} {value:.2f}" for name, value in figures.items())
                print(f"round {number + 1}, {side.name}: {text}", file=sys.stderr, flush=True)
    names = ("groups", "members", "length", "together", "offsets", "times")
    settings = {name: getattr(options, name) for name in names} | {"kafka": VERSION}
    print_result("groups", machine, settings, {"groups": rows(results)}, as_json=options.json)


if __name__ == "__main__":
    main()
