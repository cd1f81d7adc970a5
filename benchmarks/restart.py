"""All nodes end at once and are started again: how long until controllers take writes, and brokers.

    python -m benchmarks.restart [--times 3] [--ways kill stop] [--session-ms 9000] [--fast] [--json]

Three controllers and three brokers on loopback, each a process of `kquorum start`. They are ended with SIGKILL (`kill`)
or, brokers first, with SIGTERM (`stop`), and started again in the order of `kquorum up`. Seconds from the first start:

- `listening`: a majority of the controllers answers, which is what starting processes costs on this machine;
- `controller write`: a controller acknowledges a change of a quota;
- `brokers start`: the process of the last broker has come so far that it can register;
- `topic`: a broker acknowledges a topic with three replicas, one on each.

Limits, in the same run: an election cannot come before a majority listens, so `elected in` is the controllers' write
less that. After SIGKILL a broker is refused until the session of its previous process is over, which every controller
counts from its own start, as Kafka's do: `limit` is the controllers' write and a session (broker.session.timeout.ms)
more, or the brokers' start if that is later. After SIGTERM no session is to be waited for. `times the limit` is the
topic's time as a multiple of that, and `late` what is between them; of both the worst.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks._report import hardware, percentile, print_result
from kquorum.cli.output import error_console
from kquorum.cli.processes import NodeFailed, wait_until
from kquorum.wire.protocol.apis import ApiKey
from tests.jepsen.core.client import RawClient
from tests.jepsen.core.errors import ClientError
from tests.support.cluster import KAFKAS_TIMES, Cluster

WAYS = ("kill", "stop")
CONTROLLERS, BROKERS = 3, 3
TIMEOUT_S, REQUEST_TIMEOUT_S, LOOK_S = 120.0, 5.0, 0.02


class Times:
    """Seconds since the first start at which each thing was seen first, looked for in this order."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self._cluster = cluster
        self._number = number
        self._begin_s = time.perf_counter()

    def until(self, what: str, is_there: Callable[[], bool]) -> float:
        """Raises NodeFailed."""
        if not wait_until(is_there, TIMEOUT_S, LOOK_S):
            raise NodeFailed(f"{what}: not within {TIMEOUT_S:.0f} s of the start\n{self._cluster.tails()}")
        return time.perf_counter() - self._begin_s

    def a_controller_writes(self) -> bool:
        operation = {"key": "consumer_byte_rate", "value": 1_000.0 + self._number, "remove": False}
        entity = {"entity_type": "client-id", "entity_name": "benchmark"}
        values = {"entries": [{"entity": [entity], "ops": [operation]}], "validate_only": False}
        return any(
            self._takes(node_id, ApiKey.ALTER_CLIENT_QUOTAS, values, lambda response: response.entries)
            for node_id in self._cluster.controller_ids
        )

    def a_broker_creates(self) -> bool:
        topic = {
            "name": f"topic-{self._number}",
            "num_partitions": 1,
            "replication_factor": BROKERS,
            "assignments": (),
            "configs": (),
        }
        values = {"topics": [topic], "timeout_ms": 4_000, "validate_only": False}
        return any(
            self._takes(node_id, ApiKey.CREATE_TOPICS, values, lambda response: response.topics)
            for node_id in self._cluster.broker_ids
        )

    def _takes(
        self,
        node_id: int,
        api_key: ApiKey,
        values: dict[str, object],
        entries: Callable[[Any], Iterable[Any]],
    ) -> bool:
        with closing(RawClient("127.0.0.1", self._cluster.ports[node_id], REQUEST_TIMEOUT_S)) as client:
            try:
                response = client.request(api_key, values)
            except ClientError:
                return False
            return all(int(entry.error_code) == 0 for entry in entries(response))


def end_all(cluster: Cluster, way: str) -> None:
    if way == "kill":
        cluster.kill_all()
        return
    for node_ids in (cluster.broker_ids, cluster.controller_ids):
        cluster.terminate_together(node_ids)


def start_again(cluster: Cluster, number: int) -> dict[str, float]:
    """Controllers first, as `kquorum up` does where processors are few."""
    lives = {broker_id: lives_of(cluster, broker_id) for broker_id in cluster.broker_ids}
    times = Times(cluster, number)
    for node_id in cluster.controller_ids:
        cluster.launch(node_id)
    listening_s = times.until("a majority of the controllers", lambda: listens(cluster) > CONTROLLERS // 2)
    for node_id in cluster.broker_ids:
        cluster.launch(node_id)
    write_s = times.until("a write at a controller", times.a_controller_writes)
    start_s = times.until(
        "the brokers' processes",
        lambda: all(lives_of(cluster, each) > count for each, count in lives.items()),
    )
    return {
        "listening_s": listening_s,
        "controller_write_s": write_s,
        "brokers_start_s": start_s,
        "topic_s": times.until("a topic", times.a_broker_creates),
    }


def lives_of(cluster: Cluster, broker_id: int) -> int:
    """How often its processes came so far that they could register."""
    return cluster.log_text(broker_id).count("the broker is starting")


def listens(cluster: Cluster) -> int:
    return sum(map(cluster.is_ready, cluster.controller_ids))


def row_of(way: str, runs: list[dict[str, float]], session_s: float) -> dict[str, object]:
    """The middle one of each time, and the worst of what is compared with a limit."""
    row: dict[str, object] = {"way": way}
    row |= {name: percentile([run[name] for run in runs], 50) for name in runs[0]}
    row["elected_in_s"] = max(run["controller_write_s"] - run["listening_s"] for run in runs)
    waited_s = session_s if way == "kill" else 0.0
    limits = [max(run["controller_write_s"] + waited_s, run["brokers_start_s"]) for run in runs]
    row["late_s"] = max(run["topic_s"] - limit_s for run, limit_s in zip(runs, limits, strict=True))
    row["times_the_limit"] = max(run["topic_s"] / limit_s for run, limit_s in zip(runs, limits, strict=True))
    return row


def measure(options: argparse.Namespace, say: Callable[[str], None]) -> list[dict[str, object]]:
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in options.ways}
    overrides = {**KAFKAS_TIMES, "broker.session.timeout.ms": options.session_ms}
    with (
        tempfile.TemporaryDirectory(prefix="kquorum-bench-") as folder,
        Cluster(
            Path(folder) / "cluster", controllers=CONTROLLERS, brokers=BROKERS, overrides=overrides
        ) as cluster,
    ):
        cluster.start()
        number = 0
        for _ in range(options.times):
            for way in options.ways:
                number += 1
                say(f"restart {number} of {options.times * len(options.ways)}: {way}")
                end_all(cluster, way)
                runs[way].append(start_again(cluster, number))
    return [row_of(way, runs[way], options.session_ms / 1000) for way in options.ways]


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=3, help="so often in each way")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument(
        "--session-ms", type=int, default=9_000, help="broker.session.timeout.ms; Kafka's is 9000"
    )
    parser.add_argument(
        "--fast", action="store_true", help="once, with a short session: to see that all works"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    if options.times < 1:
        parser.error("--times must be at least 1")
    if options.session_ms <= KAFKAS_TIMES["broker.heartbeat.interval.ms"]:
        parser.error("--session-ms must be longer than a heartbeat's interval (2000)")
    if options.fast:
        options.times, options.session_ms = 1, 4_000
    return options


def main() -> None:
    options, machine = options_of(), hardware()
    rows = measure(options, error_console().print)
    settings = {name: getattr(options, name) for name in ("times", "session_ms")}
    print_result("restart", machine, settings, {"restart of all nodes": rows}, as_json=options.json)


if __name__ == "__main__":
    main()
