"""Records through three brokers of ours, and through three of Apache Kafka's, with the same controllers and clients.

    python -m benchmarks.broker_peers [--sides kquorum,kafka] [--records 200000] [--paced 10000] [--times 3]
                                      [--against CHECKOUT] [--from-sources] [--partitions 1000,10000]
                                      [--folder DIR] [--json]

A side is a controller of ours and three brokers on loopback, each a process of its own. The sides run one after the
other, round by round, since two clusters do not fit beside each other on a small machine. Kafka's brokers have the
options of Kafka's start script, with half its heap. Topics have six partitions with three replicas; records have
1 KiB; producers are Kafka's ProducerPerformance with acks=all, batches of 64 KiB and no compression:

- `start s`: from the start of the three brokers, all at once, until all serve;
- `produce MB/s`: as fast as it goes; the client is a JVM on the same machine and takes its share of it;
- `ms/MB`: processor time of the three brokers together for each MB produced. It moves less with the load of the
  machine than times of a clock do;
- `consume MB/s`: all of it read once by Kafka's ConsumerPerformance, a member of a group, from its assignment on;
  with the brokers' processor time again;
- `librdkafka MB/s`: the same by librdkafka, with assigned partitions;
- `p50 ms`, `p99 ms`: from send to acknowledgement at 1,000 records a second, after a tenth of the records. linger.ms is
  5, the client's default;
- `memory MB`: resident, of the largest of the three brokers, at the end.

A ratio is that of ours to the other's, the median over the rounds of the ratio within a round. `--against` adds our
brokers of another checkout (two commits in turns), `--from-sources` ours without what `make compile` built.

`--partitions` measures brokers with many partitions, in place of the above: topics of 100 partitions with three
replicas, so each broker has a replica of each.

- `create s`: until all have three in-sync replicas;
- `idle ms/s`: processor time of a broker without clients, over ten seconds;
- `busy MB/s`: produced to all partitions of all topics by 1 producer each of ten topics, with their brokers' `ms/MB`;
- `memory MB`;
- `again s`: from the start of the stopped brokers, all at once, until all serve; `in sync s`: until all partitions have
  three in-sync replicas again.

The benchmark needs Java, and a network once: the clients are Kafka's on both sides.
"""

import argparse
import io
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from benchmarks._peer_clusters import processor_s
from benchmarks._report import hardware, print_result
from kquorum.cli.failures import CliError
from kquorum.cli.processes import wait_until
from kquorum.compiled import ENVIRONMENT
from tests.interop.kafka_process import PROJECT_ROOT, Kafka
from tests.interop.kafka_release import VERSION, KafkaRelease, Unavailable, find_release
from tests.interop.site import Layout, Site
from tests.support.cluster import KAFKAS_TIMES

SIDES = ("kquorum", "kafka")
BROKERS = (11, 12, 13)
PARTITIONS = 6
PARTITIONS_A_TOPIC = 100
RECORD_BYTES = 1_024
PACE = 1_000
IDLE_S = 10.0
MEGABYTE = 1_048_576
WAIT_S = 120.0
TOOL_TIMEOUT_S = 600.0
PRODUCER = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER = "org.apache.kafka.tools.ConsumerPerformance"
# Of Kafka's start script, with half its heap: three brokers and a client share the machine.
JVM = (
    "-Xmx512m",
    "-Xms512m",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
_RATE = re.compile(r"\(([\d.]+) MB/sec\)")
_LATENCY = re.compile(r"(\d+) ms 50th, \d+ ms 95th, (\d+) ms 99th")

Figures = Mapping[str, float]


class FailedError(Exception):
    """A tool did not say what was expected of it."""


@dataclass(frozen=True, slots=True)
class Side:
    """`tree` is the checkout of our brokers; None for Kafka's."""

    name: str
    tree: Path | None
    is_compiled: bool = True

    def start(self, site: Site, *node_ids: int) -> float:
        """Seconds until all serve."""
        began_s = time.monotonic()
        if self.tree is None:
            site.start_kafka(*node_ids)
        else:
            site.start_ours(
                *node_ids, tree=self.tree, environment={} if self.is_compiled else {ENVIRONMENT: "0"}
            )
        return time.monotonic() - began_s


def layout() -> Layout:
    release = ".".join(VERSION.split(".")[:2])
    return Layout(brokers=BROKERS, release=release, settings=dict.fromkeys((1, *BROKERS), KAFKAS_TIMES))


def begin(site: Site, side: Side, brokers: Sequence[int] = BROKERS) -> float:
    with redirect_stdout(io.StringIO()):
        site.format_with_ours()
    site.start_ours(1)
    return side.start(site, *brokers)


def servers_of(site: Site) -> str:
    return ",".join(site.nodes[broker_id].address for broker_id in BROKERS)


def spent_s(site: Site, act: Callable[[], object], brokers: Sequence[int] = BROKERS) -> float:
    """Processor time of all brokers meanwhile."""
    pids = site.pids(*brokers)
    before = sum(processor_s(pids))
    act()
    return sum(processor_s(pids)) - before


def measured(side: Side, kafka: Kafka, folder: Path, records: int, paced: int) -> Figures:
    with Site(kafka, folder, layout()) as site:
        start_s = begin(site, side)
        servers = servers_of(site)
        for topic in ("warm", "fast", "paced"):
            site.create_topic(topic, BROKERS[0], PARTITIONS, replicas=3)
            await_leaders(site, topic)
        warm = max(records // 10, 1_000)
        produced(kafka, servers, "warm", warm, -1)
        consumed_in_group(kafka, servers, "warm", warm)
        said: list[str] = []
        megabytes = records * RECORD_BYTES / MEGABYTE
        produce_s = spent_s(site, lambda: said.append(produced(kafka, servers, "fast", records, -1)))
        rate, _ = last_line(said[-1])
        read: list[float] = []
        consume_s = spent_s(site, lambda: read.append(consumed_in_group(kafka, servers, "fast", records)))
        read.append(consumed(servers, "fast", records))
        paced_s = spent_s(
            site, lambda: said.append(produced(kafka, servers, "paced", paced, PACE, paced // 10))
        )
        _, (p50_ms, p99_ms) = last_line(said[-1])
        return {
            "start_s": start_s,
            "produce_MB/s": rate,
            "produce_ms/MB": produce_s * 1e3 / megabytes,
            "consume_MB/s": read[0],
            "consume_ms/MB": consume_s * 1e3 / megabytes,
            "librdkafka_MB/s": read[1],
            "p50_ms": p50_ms,
            "p99_ms": p99_ms,
            "paced_us": paced_s * 1e6 / paced,
            "memory_MB": max(resident_mb(pid) for pid in site.pids(*BROKERS)),
        }


def measured_with_many(side: Side, kafka: Kafka, folder: Path, partitions: int, records: int) -> Figures:
    with Site(kafka, folder, layout()) as site:
        start_s = begin(site, side)
        servers = servers_of(site)
        topics = [f"many-{number}" for number in range(max(partitions // PARTITIONS_A_TOPIC, 1))]
        began_s = time.monotonic()
        for topic in topics:
            site.create_topic(topic, BROKERS[0], PARTITIONS_A_TOPIC, replicas=3)
        for topic in topics:
            await_leaders(site, topic, 5 * WAIT_S)
        create_s = time.monotonic() - began_s
        idle_s = spent_s(site, lambda: wait_until(lambda: False, IDLE_S, IDLE_S))
        busy = topics[:: max(len(topics) // 10, 1)][:10]
        each = records // len(busy)
        began_s = time.monotonic()
        busy_s = spent_s(site, lambda: [produced(kafka, servers, topic, each, -1) for topic in busy])
        elapsed_s = time.monotonic() - began_s
        megabytes = each * len(busy) * RECORD_BYTES / MEGABYTE
        memory_mb = max(resident_mb(pid) for pid in site.pids(*BROKERS))
        site.stop(*BROKERS)
        again_s = side.start(site, *BROKERS)
        began_s = time.monotonic()
        for topic in topics:
            await_leaders(site, topic, 5 * WAIT_S)
        return {
            "start_s": start_s,
            "create_s": create_s,
            "idle_ms/s": idle_s * 1e3 / IDLE_S / len(BROKERS),
            "busy_MB/s": megabytes / elapsed_s,
            "busy_ms/MB": busy_s * 1e3 / megabytes,
            "memory_MB": memory_mb,
            "again_s": again_s,
            "in_sync_s": again_s + time.monotonic() - began_s,
            "memory_again_MB": max(resident_mb(pid) for pid in site.pids(*BROKERS)),
        }


def await_leaders(
    site: Site, topic: str, timeout_s: float = WAIT_S, *, brokers: Sequence[int] = BROKERS
) -> None:
    def have_leaders() -> bool:
        try:
            return all(len(each.isr) == len(brokers) for each in site.topic(brokers[0], topic).partitions)
        except CliError:
            return False

    if not wait_until(have_leaders, timeout_s, 0.1):
        raise FailedError(f"topic {topic} was not in sync within {timeout_s:.0f} s:\n{site.tails()}")


def produced(kafka: Kafka, servers: str, topic: str, records: int, throughput: int, warm_up: int = 0) -> str:
    return kafka.run(
        PRODUCER,
        *("--bootstrap-server", servers, "--topic", topic, "--num-records", str(records)),
        *("--record-size", str(RECORD_BYTES), "--throughput", str(throughput)),
        *("--warmup-records", str(warm_up)),
        *("--command-property", "acks=all", "batch.size=65536", "linger.ms=5"),
        timeout_s=TOOL_TIMEOUT_S,
    )


def last_line(said: str) -> tuple[float, tuple[float, float]]:
    """MB/s, and the milliseconds of the 50th and the 99th percentile, of the whole run, or of what came after the
    warm-up. Raises FailedError."""
    for line in reversed(said.splitlines()):
        rate, latency = _RATE.search(line), _LATENCY.search(line)
        if rate and latency:
            return float(rate[1]), (float(latency[1]), float(latency[2]))
    raise FailedError(f"{PRODUCER} printed no result:\n{said}")


def consumed_in_group(kafka: Kafka, servers: str, topic: str, records: int) -> float:
    said = kafka.run(
        CONSUMER,
        *("--bootstrap-server", servers, "--topic", topic, "--num-records", str(records)),
        *("--group", f"bench-{topic}", "--hide-header", "--timeout", "60000"),
        timeout_s=TOOL_TIMEOUT_S,
    )
    return fetch_rate(said, records)


def fetch_rate(said: str, records: int) -> float:
    """MB/s without the time that the group took to assign the partitions. Raises FailedError."""
    for line in reversed(said.splitlines()):
        fields = [each.strip() for each in line.split(",")]
        if len(fields) == 10 and int(fields[4]) >= records:
            return float(fields[8])
    raise FailedError(f"{CONSUMER} did not read {records} records:\n{said}")


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
    """A row for each side with the medians of its rounds, and one with the ratios of the first side to each other."""
    found: list[dict[str, object]] = [
        {"side": side} | {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
        for side, rounds in results.items()
    ]
    (first, mine), *others = results.items()
    for side, theirs in others:
        pairs = list(zip(mine, theirs, strict=True))
        ratios = {
            name: statistics.median(ours[name] / max(other[name], 1e-9) for ours, other in pairs)
            for name in mine[0]
        }
        found.append({"side": f"{first} / {side}"} | ratios)
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
    parser.add_argument("--against", type=Path, help="another checkout of this project, as one more side")
    parser.add_argument(
        "--from-sources", action="store_true", help="our sources, not compiled, as one more side"
    )
    parser.add_argument("--partitions", help="so many in place of six, in turn: 1000,10000")
    parser.add_argument("--folder", type=Path, help="kept; a temporary one without it")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    options.sides = options.sides.split(",")
    if not set(options.sides) <= set(SIDES):
        parser.error(f"--sides: there are {', '.join(SIDES)}")
    options.partitions = [int(each) for each in (options.partitions or "").split(",") if each]
    return options


def sides_of(options: argparse.Namespace) -> list[Side]:
    sides = [Side(name, PROJECT_ROOT if name == "kquorum" else None) for name in options.sides]
    if options.against is not None:
        sides.append(Side("against", options.against.resolve()))
    if options.from_sources:
        sides.append(Side("sources", PROJECT_ROOT, is_compiled=False))
    return sides


def main() -> None:
    options = parse()
    machine = hardware()
    try:
        release: KafkaRelease = find_release()
    except Unavailable as error:
        raise SystemExit(f"the producers are programs of Kafka's: {error}") from None
    sides = sides_of(options)
    tables: dict[str, list[dict[str, object]]] = {}
    with tempfile.TemporaryDirectory(prefix="kquorum-broker-peers-") as temporary:
        base = options.folder or Path(temporary)
        for partitions in options.partitions or [0]:
            results: dict[str, list[Figures]] = {side.name: [] for side in sides}
            for number in range(options.times):
                for side in sides[::-1] if number % 2 else sides:
                    folder = base / f"{partitions}-{number}-{side.name}"
                    folder.mkdir(parents=True)
                    kafka = Kafka(release, folder, JVM)
                    figures = (
                        measured_with_many(side, kafka, folder, partitions, options.records)
                        if partitions
                        else measured(side, kafka, folder, options.records, options.paced)
                    )
                    results[side.name].append(figures)
                    text = ", ".join(f"{name} {value:.2f}" for name, value in figures.items())
                    print(f"round {number + 1}, {side.name}: {text}", file=sys.stderr, flush=True)
            tables[f"{partitions} partitions" if partitions else "brokers"] = rows(results)
    settings = {"records": options.records, "paced": options.paced, "times": options.times, "kafka": VERSION}
    print_result("broker_peers", machine, settings, tables, as_json=options.json)


if __name__ == "__main__":
    main()
