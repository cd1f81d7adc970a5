"""Records through three brokers of ours, and through three of Apache Kafka's, with the same controllers and clients.

    python -m benchmarks.broker_peers [--sides kquorum,kafka] [--records 200000] [--paced 10000] [--times 3]
                                      [--folder DIR] [--json]

A side is a controller of ours and three brokers on loopback, each a process of its own. The sides run one after the
other, round by round, since two clusters do not fit beside each other on a small machine. Topics have six partitions
with three replicas; records have 1 KiB; producers are Kafka's ProducerPerformance with acks=all, batches of 64 KiB and
no compression:

- `start s`: from the start of the three brokers, all at once, until all serve;
- `produce MB/s`: as fast as it goes; the client is a JVM on the same machine and takes its share of it;
- `consume MB/s`: all of it read once by librdkafka, with assigned partitions. Kafka's ConsumerPerformance joins a
  group, which brokers of ours do not coordinate yet;
- `p50 ms`, `p99 ms`: from send to acknowledgement, at 1,000 records a second;
- `memory MB`: resident, of the largest of the three brokers, at the end.

A ratio is ours over Kafka's, the median over the rounds of the ratio within a round. The benchmark needs Java, and a
network once: the producers are Kafka's on both sides.
"""

import argparse
import io
import re
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from benchmarks._report import hardware, print_result
from kquorum.cli.failures import CliError
from kquorum.cli.processes import wait_until
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import VERSION, KafkaRelease, Unavailable, find_release
from tests.interop.site import Layout, Site
from tests.support.cluster import KAFKAS_TIMES

SIDES = ("kquorum", "kafka")
BROKERS = (11, 12, 13)
PARTITIONS = 6
RECORD_BYTES = 1_024
PACE = 1_000
MEGABYTE = 1_048_576
WAIT_S = 120.0
TOOL_TIMEOUT_S = 600.0
PRODUCER = "org.apache.kafka.tools.ProducerPerformance"
FIGURES = ("start_s", "produce_mb_s", "consume_mb_s", "p50_ms", "p99_ms", "memory_mb")
_RATE = re.compile(r"\(([\d.]+) MB/sec\)")
_LATENCY = re.compile(r"(\d+) ms 50th, \d+ ms 95th, (\d+) ms 99th")

Figures = Mapping[str, float]


class FailedError(Exception):
    """A tool did not say what was expected of it."""


def measured(side: str, kafka: Kafka, folder: Path, records: int, paced: int) -> Figures:
    release = ".".join(VERSION.split(".")[:2])
    settings = dict.fromkeys((1, *BROKERS), KAFKAS_TIMES)
    with Site(kafka, folder, Layout(brokers=BROKERS, release=release, settings=settings)) as site:
        with redirect_stdout(io.StringIO()):
            site.format_with_ours()
        site.start_ours(1)
        began_s = time.monotonic()
        (site.start_kafka if side == "kafka" else site.start_ours)(*BROKERS)
        start_s = time.monotonic() - began_s
        servers = ",".join(site.nodes[broker_id].address for broker_id in BROKERS)
        for topic in ("warm", "fast", "paced"):
            site.create_topic(topic, BROKERS[0], PARTITIONS, replicas=3)
            await_leaders(site, topic)
        produced(kafka, servers, "warm", max(records // 10, 1_000), -1)
        rate, _ = last_line(produced(kafka, servers, "fast", records, -1))
        consume_mb_s = consumed(servers, "fast", records)
        _, (p50_ms, p99_ms) = last_line(produced(kafka, servers, "paced", paced, PACE))
        return {
            "start_s": start_s,
            "produce_mb_s": rate,
            "consume_mb_s": consume_mb_s,
            "p50_ms": p50_ms,
            "p99_ms": p99_ms,
            "memory_mb": max(resident_mb(pid) for pid in site.pids(*BROKERS)),
        }


def await_leaders(site: Site, topic: str) -> None:
    def have_leaders() -> bool:
        try:
            return all(len(each.isr) == len(BROKERS) for each in site.topic(BROKERS[0], topic).partitions)
        except CliError:
            return False

    if not wait_until(have_leaders, WAIT_S, 0.1):
        raise FailedError(f"topic {topic} was not in sync within {WAIT_S:.0f} s:\n{site.tails()}")


def produced(kafka: Kafka, servers: str, topic: str, records: int, throughput: int) -> str:
    return kafka.run(
        PRODUCER,
        *("--topic", topic, "--num-records", str(records), "--record-size", str(RECORD_BYTES)),
        *("--throughput", str(throughput)),
        *("--producer-props", f"bootstrap.servers={servers}", "acks=all", "batch.size=65536", "linger.ms=5"),
        timeout_s=TOOL_TIMEOUT_S,
    )


def last_line(said: str) -> tuple[float, tuple[float, float]]:
    """MB/s, and the milliseconds of the 50th and the 99th percentile, of the whole run. Raises FailedError."""
    for line in reversed(said.splitlines()):
        rate, latency = _RATE.search(line), _LATENCY.search(line)
        if rate and latency:
            return float(rate[1]), (float(latency[1]), float(latency[2]))
    raise FailedError(f"{PRODUCER} printed no result:\n{said}")


def consumed(servers: str, topic: str, records: int) -> float:
    """MB/s of values, from the first record on."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "bench", "enable.auto.commit": False, "log_level": 0}
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    count = 0
    first_s = last_s = 0.0
    give_up_s = time.monotonic() + TOOL_TIMEOUT_S
    try:
        while count < records:
            values = [each for each in consumer.consume(5_000, 0.5) if each.error() is None]
            last_s = time.monotonic()
            first_s = first_s or (last_s if values else 0.0)
            count += len(values)
            if last_s > give_up_s:
                raise FailedError(f"only {count} of {records} records were read")
    finally:
        consumer.close()
    return records * RECORD_BYTES / MEGABYTE / max(last_s - first_s, 1e-3)


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    [size] = [line.split()[1] for line in lines if line.startswith("VmRSS")]
    return int(size) / 1024


def rows(results: Mapping[str, Sequence[Figures]]) -> list[dict[str, object]]:
    """A row for each side with the medians of its rounds, and one with the ratios where both sides ran."""
    found: list[dict[str, object]] = [
        {"side": side} | {name: statistics.median(each[name] for each in rounds) for name in FIGURES}
        for side, rounds in results.items()
    ]
    if len(results) == len(SIDES):
        pairs = list(zip(results["kquorum"], results["kafka"], strict=True))
        ratios = {
            name: statistics.median(ours[name] / max(theirs[name], 1e-9) for ours, theirs in pairs)
            for name in FIGURES
        }
        found.append({"side": "kquorum / kafka"} | ratios)
    return found


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.broker_peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--paced", type=int, default=10_000, help="records of the run at 1,000 a second")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="kept; a temporary one without it")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    options.sides = options.sides.split(",")
    if not set(options.sides) <= set(SIDES):
        parser.error(f"--sides: there are {', '.join(SIDES)}")
    return options


def main() -> None:
    options = parse()
    machine = hardware()
    try:
        release: KafkaRelease = find_release()
    except Unavailable as error:
        raise SystemExit(f"the producers are programs of Kafka's: {error}") from None
    results: dict[str, list[Figures]] = {side: [] for side in options.sides}
    with tempfile.TemporaryDirectory(prefix="kquorum-broker-peers-") as temporary:
        base = options.folder or Path(temporary)
        for number in range(options.times):
            for side in options.sides:
                folder = base / f"{number}-{side}"
                folder.mkdir(parents=True)
                figures = measured(side, Kafka(release, folder), folder, options.records, options.paced)
                results[side].append(figures)
    settings = {"records": options.records, "paced": options.paced, "times": options.times, "kafka": VERSION}
    print_result("broker_peers", machine, settings, {"brokers": rows(results)}, as_json=options.json)


if __name__ == "__main__":
    main()
