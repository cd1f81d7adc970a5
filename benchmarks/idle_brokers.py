"""What idle brokers cost: processor time per broker and second, theirs and the controller's.

    python -m benchmarks.idle_brokers [--brokers 50] [--processes 1] [--seconds 20] [--idle-interval-ms 500]
                                      [--fast] [--json]

One controller and whole brokers with their logs on disk, at Kafka's default times: a heartbeat every 2 s, and a commit
every 500 ms, which each broker fetches, writes and applies. First the controller is measured alone, then with all
brokers in few processes; what it takes more is their share of it. "a process of its own" is one broker run as
`kquorum start` runs it, beside the same controller. Processor time is the system's and the program's, of all
threads. One core has 1,000 ms a second.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._report import hardware, print_result
from benchmarks.big_image import anonymous_bytes
from kquorum.cli.processes import wait_until
from tests.support.cluster import KAFKAS_TIMES, Cluster
from tests.support.node_hosts import NodeHosts, groups_of

SETTLE_S = 3.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor seconds per second of the clock."""

    controller: float
    brokers: float


def processor_seconds(process_id: int) -> float:
    """Of a process, so far: of the threads that it has now, to the nanosecond, where ticks would be too coarse."""
    threads = Path(f"/proc/{process_id}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


def usage(controller: int, brokers: Sequence[int], seconds: float) -> Usage:
    """Over so many seconds from now."""
    before = processor_seconds(controller), sum(map(processor_seconds, brokers))
    begin = time.monotonic()
    asyncio.run(asyncio.sleep(seconds))
    passed = time.monotonic() - begin
    after = processor_seconds(controller), sum(map(processor_seconds, brokers))
    return Usage((after[0] - before[0]) / passed, (after[1] - before[1]) / passed)


def measured(arguments: argparse.Namespace, folder: Path) -> list[dict[str, object]]:
    overrides = {**KAFKAS_TIMES, "metadata.max.idle.interval.ms": arguments.idle_interval_ms}
    with (
        Cluster(folder, controllers=1, brokers=arguments.brokers + 1, overrides=overrides) as cluster,
        NodeHosts(cluster) as hosts,
    ):
        cluster.format()
        (controller_id,) = cluster.controller_ids
        single, *many = cluster.broker_ids
        cluster.start_node(controller_id)
        controller = _process_id(cluster, controller_id)
        wait_until(lambda: False, SETTLE_S)
        alone = usage(controller, (), arguments.seconds)
        cluster.start_node(single)
        wait_until(lambda: False, SETTLE_S)
        broker = _process_id(cluster, single)
        memory = anonymous_bytes(broker)
        with_one = usage(controller, [broker], arguments.seconds)
        cluster.terminate(single)
        hosts.start(groups_of(many, processes=arguments.processes))
        wait_until(lambda: False, SETTLE_S)
        with_many = usage(controller, hosts.process_ids, arguments.seconds)
        memory_of_many = sum(map(anonymous_bytes, hosts.process_ids)) / len(many)
    return [
        row_of("a process of its own", 1, alone, with_one, memory),
        row_of(f"{len(many)} in {arguments.processes}", len(many), alone, with_many, memory_of_many),
    ]


def _process_id(cluster: Cluster, node_id: int) -> int:
    process_id = cluster._processes[node_id].pid
    assert process_id is not None
    return process_id


def row_of(how: str, brokers: int, alone: Usage, seen: Usage, memory: float) -> dict[str, object]:
    return {
        "brokers": how,
        "ms_a_second": seen.brokers * 1e3 / brokers,
        "controllers_share": (seen.controller - alone.controller) * 1e3 / brokers,
        "controller_alone": alone.controller * 1e3,
        "mb": memory / 1e6,
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--brokers", type=int, default=50)
    parser.add_argument("--processes", type=int, default=1, help="that the brokers share")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--idle-interval-ms", type=int, default=500, help="between commits without work")
    parser.add_argument("--fast", action="store_true", help="a fifth of the brokers and of the time")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.fast:
        arguments.brokers, arguments.seconds = max(arguments.brokers // 5, 1), arguments.seconds / 5
    machine = hardware()
    names = ("brokers", "processes", "seconds", "idle_interval_ms")
    settings = {name: getattr(arguments, name) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(arguments, Path(folder))
    print_result(
        "idle_brokers",
        machine,
        settings,
        {"an idle broker: processor ms a second, its own and the controller's for it": rows},
        as_json=arguments.json,
    )


if __name__ == "__main__":
    main()
