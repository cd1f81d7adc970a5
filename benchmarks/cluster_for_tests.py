"""How long a test waits for a Kafka cluster: `kquorum.testing` and Apache Kafka's broker.

    python -m benchmarks.cluster_for_tests [--times 5] [--json]

Seconds from the request until a client knows all brokers, of one controller and one broker:

- `kquorum`: `KafkaCluster()`, with formatting and a new folder, as the fixture `kafka_cluster` has it;
- `kquorum, three brokers`: `KafkaCluster(brokers=3)`;
- `kafka`: its controller and its broker, each a JVM (heap of 512 MB), on folders that are formatted already.

The sides take turns. Without Kafka (Maven Central, Java) the benchmark says so and prints the rest.
"""

import argparse
import io
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

from confluent_kafka.admin import AdminClient

from benchmarks._report import hardware, print_result
from benchmarks.broker_peers import JVM
from kquorum.testing.cluster import KafkaCluster
from tests.interop.kafka_process import Kafka
from tests.interop.kafka_release import VERSION, KafkaRelease, Unavailable, find_release
from tests.interop.site import Layout, Site

WAIT_S = 60


def ours(brokers: int) -> float:
    began_s = time.monotonic()
    with KafkaCluster(brokers=brokers) as cluster:
        assert len(
            AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=WAIT_S).brokers
        )
        return time.monotonic() - began_s


def kafkas(release: KafkaRelease) -> float:
    """Without the formatting, which is another JVM."""
    with tempfile.TemporaryDirectory() as folder:
        layout = Layout(release=".".join(VERSION.split(".")[:2]))
        with Site(Kafka(release, Path(folder), JVM), Path(folder), layout) as site:
            with redirect_stdout(io.StringIO()):
                site.format_with_ours()
            began_s = time.monotonic()
            site.start_kafka(*layout.controllers, *layout.brokers)
            address = site.nodes[layout.brokers[0]].address
            AdminClient({"bootstrap.servers": address}).list_topics(timeout=WAIT_S)
            return time.monotonic() - began_s


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sides: dict[str, Callable[[], float]] = {
        "kquorum": lambda: ours(1),
        "kquorum, three brokers": lambda: ours(3),
    }
    try:
        release = find_release()
        sides["kafka"] = lambda: kafkas(release)
    except Unavailable as error:
        sys.stderr.write(f"without Kafka: {error}\n")
    machine = hardware()
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(options.times):
        for name, measure in sides.items():
            found[name].append(measure())
    rows = [
        {"side": name, "median_s": statistics.median(times), "least_s": min(times), "most_s": max(times)}
        for name, times in found.items()
    ]
    print_result(
        "cluster_for_tests", machine, {"times": options.times}, {"start": rows}, as_json=options.json
    )


if __name__ == "__main__":
    main()
