"""Brokers that go and come: how long the active controller takes, and its longest turn.

    python -m benchmarks.controller_departures [--topics 2000] [--partitions 100] [--brokers 10] [--json]

A whole controller over an image of 200,000 partitions, as in controller_failover: processor time of all turns from the
request (or the end of a session) until all is decided, replayed, encoded and put into batches. Where the table says
"eligible", the cluster keeps eligible leader replicas and min.insync.replicas is 2. "second" is the failure of a second
broker after the first: what had both of them falls below that minimum. "return" is of a broker that alone had its
partitions, so each of these gets its leader back.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from uuid import UUID

from benchmarks._report import hardware, print_result
from benchmarks.controller_failover import FAILING, LEVEL, Cluster, follow, image_of
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.protocol.api_keys import ApiKey

SECOND = 1
NEW_PROCESS = UUID(int=1 << 90)
NEW_DIRECTORY = UUID(int=1 << 91)

Turns = Callable[[Cluster], list[float]]


def unregister(cluster: Cluster) -> list[float]:
    return cluster.request(ApiKey.UNREGISTER_BROKER, 0, broker_id=FAILING)


def register_again(cluster: Cluster, broker_id: int = FAILING) -> list[float]:
    """A new process, after the old one crashed: its session has ended, though it may not be fenced yet."""
    active = cluster.controller._active
    assert active is not None
    cluster.now_ms += 60_000
    for other_id in cluster.controller.image.cluster.brokers:
        if other_id != broker_id:
            active.liveness.refresh(other_id, cluster.now_ms)
    levels = {"metadata.version": LEVEL, "eligible.leader.replicas.version": 1}
    return cluster.request(
        ApiKey.BROKER_REGISTRATION,
        4,
        broker_id=broker_id,
        cluster_id="benchmark",
        incarnation_id=NEW_PROCESS,
        listeners=[{"name": "P", "host": "h", "port": 1, "security_protocol": 0}],
        features=[
            {"name": name, "min_supported_version": 0, "max_supported_version": level}
            for name, level in levels.items()
        ],
        rack=None,
        log_dirs=[NEW_DIRECTORY],
    )


def fail_second(cluster: Cluster) -> list[float]:
    return cluster.fail(SECOND)


def want_fence(cluster: Cluster) -> list[float]:
    return _heartbeat(cluster, want_fence=True)


def come_back(cluster: Cluster) -> list[float]:
    return _heartbeat(cluster, want_fence=False)


def _heartbeat(cluster: Cluster, *, want_fence: bool) -> list[float]:
    return cluster.request(
        ApiKey.BROKER_HEARTBEAT,
        1,
        broker_id=FAILING,
        broker_epoch=cluster.controller.image.cluster.brokers[FAILING].epoch,
        current_metadata_offset=cluster.raft.log_end_offset,
        want_fence=want_fence,
        want_shut_down=False,
    )


def measured(image: MetadataImage, name: str, *steps: Turns) -> dict[str, object]:
    """Of the last step."""
    cluster = Cluster(image)
    for step in steps[:-1]:
        step(cluster)
    before, base, commit_before = len(cluster.batches), cluster.controller.image, cluster.commit_seconds
    wall = time.monotonic()
    seconds = steps[-1](cluster)
    wall = time.monotonic() - wall
    batches = cluster.batches[before:]
    records = sum(batch.last_offset - batch.base_offset + 1 for batch in batches)
    follower_seconds, followed = follow(base, batches)
    assert followed.topics == cluster.controller.image.topics
    return {
        "case": name,
        "records": records,
        "seconds": sum(seconds),
        "us_per_record": sum(seconds) / max(records, 1) * 1e6,
        "turns": len(seconds),
        "longest_turn_ms": max(seconds) * 1e3,
        "commit_seconds": cluster.commit_seconds - commit_before,
        "longest_commit_ms": cluster.longest_commit_seconds * 1e3,
        "wall_seconds": wall,
        "followers_seconds": follower_seconds,
    }


def run(arguments: argparse.Namespace) -> dict[str, list[dict[str, object]]]:
    sizes = (arguments.topics, arguments.partitions, arguments.brokers)
    plain, eligible, single = image_of(*sizes), image_of(*sizes, elr=True), image_of(*sizes, 1)
    return {
        "departures": [
            measured(plain, "unregister", unregister),
            measured(plain, "new process", register_again),
            measured(plain, "wish to be fenced", want_fence),
            measured(single, "fenced, alone", want_fence),
            measured(single, "return, alone", want_fence, come_back),
            measured(eligible, "eligible: unregister", unregister),
            measured(eligible, "eligible: new process", register_again),
            measured(eligible, "eligible: session ends", Cluster.fail),
            measured(eligible, "eligible: second", Cluster.fail, fail_second),
            measured(eligible, "eligible: second, unregister", fail_second, unregister),
            measured(
                eligible,
                "eligible: new process of the second",
                Cluster.fail,
                fail_second,
                lambda each: register_again(each, SECOND),
            ),
        ]
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--topics", type=int, default=2_000)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    machine = hardware()
    settings = {name: getattr(arguments, name) for name in ("topics", "partitions", "brokers")}
    print_result("controller_departures", machine, settings, run(arguments), as_json=arguments.json)


if __name__ == "__main__":
    main()
