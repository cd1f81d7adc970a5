"""Transactions of a hundred producers through three brokers of ours, and through three of Apache Kafka's.

    python -m benchmarks.transactions [--sides kquorum,kafka] [--producers 100] [--brokers 3] [--warm 10] [--length 10]
                                      [--times 3] [--against CHECKOUT] [--from-sources] [--folder DIR] [--json]

A side is a controller of ours and the brokers on loopback, each a process of its own. The sides run one after the
other, round by round. The topic has six partitions; it and the internal topics have a replica on each broker. Each
producer writes a record of 100 bytes with acks=all and commits, as clients of transaction.version 2 do
(`benchmarks/_transaction_clients.py`); the brokers are warm after the first seconds, which do not count.

- `tx/s`: transactions a second of all producers together; the client takes its share of the machine;
- `ms/tx`: processor time of the brokers together for each. It moves less with the load of the machine;
- `p50 ms`, `p99 ms`: from the first byte of the record to the answer of EndTxn;
- `again/tx`: requests that the producer had to send again, since the markers of its last transaction were not written.

A ratio is that of ours to the other's, the median over the rounds of the ratio within a round. Kafka's side needs Java,
and a network once.
"""

import argparse
import asyncio
from pathlib import Path

from benchmarks._rounds import parsed, parser_of, run_rounds
from benchmarks._transaction_clients import drive
from benchmarks.broker_peers import Figures, Side, await_leaders, begin, spent_s
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import VERSION
from tests.interop.site import Layout, Site
from tests.support.cluster import KAFKAS_TIMES

TOPIC = "orders"
PARTITIONS = 6
FIRST_BROKER = 11


def layout(brokers: int) -> Layout:
    ids = tuple(range(FIRST_BROKER, FIRST_BROKER + brokers))
    copies = {
        "transaction.state.log.replication.factor": brokers,
        "transaction.state.log.min.isr": min(brokers, 2),
        "offsets.topic.replication.factor": brokers,
    }
    settings = {node_id: {**KAFKAS_TIMES, **copies} for node_id in ids} | {1: KAFKAS_TIMES}
    return Layout(brokers=ids, release=".".join(VERSION.split(".")[:2]), settings=settings)


def measured(side: Side, kafka: Kafka, folder: Path, options: argparse.Namespace) -> Figures:
    found = layout(options.brokers)
    with Site(kafka, folder, found) as site:
        begin(site, side, found.brokers)
        first = found.brokers[0]
        site.create_topic(TOPIC, first, PARTITIONS, replicas=options.brokers)
        await_leaders(site, TOPIC, brokers=found.brokers)
        address = site.nodes[first].address
        figures: dict[str, float] = {}

        def run(warm_s: float, length_s: float) -> None:
            figures.update(
                asyncio.run(drive(address, TOPIC, PARTITIONS, options.producers, warm_s, length_s))
            )

        run(options.warm, 1.0)
        # A little of it is the start and the end of the producers.
        busy_s = spent_s(site, lambda: run(0.5, options.length), found.brokers)
        transactions = figures.pop("transactions") * (options.length + 0.5) / options.length
        return figures | {"ms/tx": busy_s * 1e3 / transactions}


def main() -> None:
    parser = parser_of("transactions", __doc__)
    parser.add_argument("--producers", type=int, default=100)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--warm", type=float, default=10.0, help="seconds before the first that count")
    parser.add_argument("--length", type=float, default=10.0, help="seconds that count")
    options = parsed(parser)
    settings = {name: getattr(options, name) for name in ("producers", "brokers", "warm", "length")}
    run_rounds(
        "transactions", options, settings, lambda side, kafka, folder: measured(side, kafka, folder, options)
    )


if __name__ == "__main__":
    main()
