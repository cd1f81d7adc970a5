"""For how long no write is acknowledged when one of Apache Kafka's brokers is killed, on our controllers or on Kafka's.

    python -m tests.interop.broker_death ours|kafka FOLDER [--kills 20] [--away 35] [--json]

Three controllers and three brokers of Kafka's on loopback, Kafka's default session (9 s) and heartbeats (2 s), and a
topic of six partitions with three replicas and `min.insync.replicas` 2. One idempotent producer (`acks=all`, five
requests in flight) writes to all partitions all the time. The brokers are killed in turn (SIGKILL), and started again
after `--away` seconds. The gap of a kill is the longest time, over the partitions, between two acknowledged records,
of the times that begin before the broker is started again.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaError, Message, Producer

from kquorum.cli.processes import wait_until
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import VERSION, find_release
from tests.interop.site import Layout, Site

CONTROLLERS: Final = (1, 2, 3)
BROKERS: Final = (11, 12, 13)
TOPIC: Final = "written"
PARTITIONS: Final = 6
RECORDS_AT_ONCE: Final = 20
WAIT_S: Final = 90.0
KAFKAS_SESSION: Final = {"broker.session.timeout.ms": 9_000, "broker.heartbeat.interval.ms": 2_000}
OURS, KAFKAS = "ours", "kafka"


def site_of(kafka: Kafka, folder: Path, settings: dict[str, object]) -> Site:
    """`settings` are those of all nodes."""
    nodes = dict.fromkeys(CONTROLLERS + BROKERS, settings)
    release = ".".join(VERSION.split(".")[:2])
    layout = Layout(controllers=CONTROLLERS, brokers=BROKERS, release=release, settings=nodes)
    return Site(kafka, folder, layout)


def start(site: Site, controllers: str) -> None:
    """All six nodes, and the topic."""
    site.format_with_kafka(BROKERS)
    if controllers == OURS:
        site.format_with_ours(CONTROLLERS)
        site.start_ours(*CONTROLLERS)
    else:
        site.format_with_kafka(CONTROLLERS)
        site.start_kafka(*CONTROLLERS)
    site.start_kafka(*BROKERS)
    configs = {"min.insync.replicas": "2"}
    site.create_topic(TOPIC, BROKERS[0], PARTITIONS, replicas=len(BROKERS), configs=configs)


class Writer:
    """Writes to all partitions until it is left. `times` are those of each partition's acknowledgements."""

    def __init__(self, site: Site) -> None:
        addresses = ",".join(site.nodes[broker_id].address for broker_id in BROKERS)
        self._producer = Producer(
            {
                "bootstrap.servers": addresses,
                "enable.idempotence": True,
                "acks": "all",
                "max.in.flight.requests.per.connection": 5,
                "linger.ms": 5,
                "delivery.timeout.ms": 300_000,
                "log_level": 0,
            }
        )
        self.times: list[list[float]] = [[] for _ in range(PARTITIONS)]
        self.errors: list[str] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _write(self) -> None:
        number = 0
        while not self._is_over.is_set():
            for _ in range(RECORDS_AT_ONCE):
                try:
                    self._producer.produce(
                        TOPIC, b"%d" % number, partition=number % PARTITIONS, on_delivery=self._delivered
                    )
                    number += 1
                except BufferError:
                    break
            self._producer.poll(0.02)
        self._producer.purge()
        self._producer.flush(10)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        partition = message.partition()
        if error is None and partition is not None:
            self.times[partition].append(time.monotonic())
        elif not self._is_over.is_set():
            self.errors.append(str(error))

    def all_acknowledged_since(self, moment: float) -> bool:
        return all(times and times[-1] > moment for times in list(self.times))

    def longest_gap(self, begins: float, ends: float) -> float:
        """Of the times between two acknowledgements of one partition that begin before `ends` and end after
        `begins`."""
        longest = 0.0
        for times in self.times:
            for before, after in pairwise(times):
                if before < ends and after > begins:
                    longest = max(longest, after - before)
        return longest


def await_all_in_sync(site: Site, asked: int) -> None:
    """Until every partition has all of its replicas in sync."""

    def are_in_sync() -> bool:
        return all(len(each.isr) == len(BROKERS) for each in site.topic(asked, TOPIC).partitions)

    assert wait_until(are_in_sync, WAIT_S, 0.5), site.tails()


def await_acknowledgements(site: Site, writer: Writer) -> None:
    """Of a record of every partition that was written after now, or hardly before."""
    now = time.monotonic()
    assert wait_until(lambda: writer.all_acknowledged_since(now + 0.5), WAIT_S, 0.1), site.tails()


def measure(site: Site, kills: int, away_s: float) -> tuple[list[float], list[str]]:
    """Answers the gap of each kill, and what the producer was refused."""
    gaps = []
    with Writer(site) as writer:
        for number in range(kills):
            await_acknowledgements(site, writer)
            broker_id = BROKERS[number % len(BROKERS)]
            killed = time.monotonic()
            site.kill(broker_id)
            wait_until(lambda: False, away_s, away_s)
            begun = time.monotonic()
            site.start_kafka(broker_id)
            await_all_in_sync(site, broker_id)
            await_acknowledgements(site, writer)
            gaps.append(writer.longest_gap(killed, begun))
            sys.stderr.write(
                f"kill {number + 1}: broker {broker_id}, {gaps[-1]:.1f} s without an acknowledgement\n"
            )
    return gaps, writer.errors


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("controllers", choices=(OURS, KAFKAS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--away", type=float, default=35.0, help="for how many seconds a broker is away")
    arguments = parser.parse_args(argv)
    arguments.folder.mkdir(parents=True)
    with site_of(Kafka(find_release(), arguments.folder), arguments.folder, dict(KAFKAS_SESSION)) as site:
        start(site, arguments.controllers)
        gaps, errors = measure(site, arguments.kills, arguments.away)
    told = {
        "controllers": arguments.controllers,
        "brokers": VERSION,
        "kills": len(gaps),
        "median_s": round(median(gaps), 1),
        "longest_s": round(max(gaps), 1),
        "gaps_s": [round(gap, 1) for gap in gaps],
        "refused": len(errors),
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
