"""Kill brokers under load, time after time, and judge whether a record was lost, moved, spoiled or doubled.

    python -m tests.kill_loop.records [--rounds 200] [--seed 1] [--folder DIR] [--json]

A controller and three brokers, each a process of `kquorum start`; three partitions with three replicas and
min.insync.replicas=2; one idempotent producer of librdkafka's with acks=all. In each round SIGKILL goes to the leader
of a partition (half the time), any broker, two brokers at once, or all three; they start again at a random moment
within two seconds, and the next round begins when each partition has taken records again, so replicas may still be
behind.

Every tenth round, and at the end, a consumer reads on to the high watermark. At the end, all is read once more from the
beginning: every acknowledged record is at its offset, no record is there twice, and records are in the order in which
they were produced. Then all replicas get in sync, the brokers stop, and the logs of each partition are the same bytes.

Exit status: 0 nothing wrong, 1 a violation, 130 interrupted. Progress goes to standard error.
"""

import argparse
import dataclasses
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kquorum.cli.processes import NodeFailed, wait_until
from tests.support.cluster import Cluster
from tests.support.record_load import RecordLoad, RecordReader, differing_logs, violations

TOPIC = "killed"
PARTITIONS = 3
# Long enough for a busy machine: the report names the longest pause, and nothing depends on it.
WAIT_S = 240.0
LONGEST_DOWN_S = 2.0
READ_EVERY = 10
KINDS = ("the leader", "the leader", "the leader", "one", "two at once", "all at once")
OVERRIDES = {
    "min.insync.replicas": 2,
    "log.segment.bytes": 1_048_576,
    "replica.fetch.backoff.ms": 100,
    "replica.lag.time.max.ms": 3_000,
}


@dataclass(slots=True)
class Outcome:
    rounds: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    read: int = 0
    # Between the kill and the moment at which every partition had taken records again.
    longest_pause_s: float = 0.0
    violations: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """Not `asdict`, which makes pairs of a Counter the keys of another one."""
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}


class RecordRounds:
    """The cluster is stopped at the end; `folder` is left as it was then."""

    def __init__(self, folder: Path, rounds: int, seed: int, tell: Callable[[str], None]) -> None:
        self.cluster = Cluster(folder, controllers=1, brokers=3, overrides=OVERRIDES)
        self.outcome = Outcome()
        self._rounds = rounds
        self._random = random.Random(seed)
        self._tell = tell

    def run(self) -> Outcome:
        with self.cluster as cluster:
            cluster.start()
            servers = ",".join(map(cluster.address, cluster.broker_ids))
            self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
            self._admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(WAIT_S)
            reader = RecordReader(servers, TOPIC, PARTITIONS)
            load = RecordLoad(servers, TOPIC, PARTITIONS)
            try:
                with load:
                    load.await_more(cluster.tails)
                    self._play(load, reader)
                self._judge(load, reader, servers)
            except (AssertionError, NodeFailed) as error:
                self.outcome.violations.append(str(error))
            self.outcome.violations += load.errors[:5]
            self.outcome.acknowledged = load.total
        return self.outcome

    def _play(self, load: RecordLoad, reader: RecordReader) -> None:
        for number in range(1, self._rounds + 1):
            kind = self._random.choice(KINDS)
            victims = self._victims(kind)
            began_s = time.monotonic()
            self.cluster.kill_together(victims)
            # The moment of the start is part of what a round tries.
            threading.Event().wait(self._random.uniform(0, LONGEST_DOWN_S))
            self.cluster.start_nodes(victims, WAIT_S)
            load.await_more(self.cluster.tails, self._random.randrange(1, 300), WAIT_S)
            pause_s = time.monotonic() - began_s
            self.outcome.rounds = number
            self.outcome.kills[kind] += 1
            self.outcome.longest_pause_s = max(self.outcome.longest_pause_s, round(pause_s, 2))
            self._tell(
                f"round {number}: {kind} ({', '.join(map(str, victims))}), records again after {pause_s:.1f} s, "
                f"{load.total:,} acknowledged"
            )
            if number % READ_EVERY == 0:
                expected = [dict(each) for each in load.acknowledged]
                reader.read_on()
                self._check(violations(expected, reader.found), f"after round {number}")

    def _victims(self, kind: str) -> list[int]:
        brokers = list(self.cluster.broker_ids)
        if kind == "the leader":
            partitions = self._admin.list_topics(TOPIC, timeout=WAIT_S).topics[TOPIC].partitions
            leader = partitions[self._random.randrange(PARTITIONS)].leader
            return [leader if leader in brokers else self._random.choice(brokers)]
        return self._random.sample(brokers, {"one": 1, "two at once": 2, "all at once": 3}[kind])

    def _judge(self, load: RecordLoad, reader: RecordReader, servers: str) -> None:
        def are_in_sync() -> bool:
            partitions = self._admin.list_topics(TOPIC, timeout=WAIT_S).topics[TOPIC].partitions
            return all(len(each.isrs) == 3 for each in partitions.values())

        if not wait_until(are_in_sync, WAIT_S, 0.3):
            self._check(["a replica did not get in sync"], "at the end")
        reader.read_on()
        self._check(violations(load.acknowledged, reader.found), "at the end, read in parts")
        whole = RecordReader(servers, TOPIC, PARTITIONS)
        whole.read_on()
        self.outcome.read = sum(map(len, whole.found))
        self._check(violations(load.acknowledged, whole.found), "at the end")
        if whole.found != reader.found:
            self._check(["what was read in parts is not what was read at once"], "at the end")
        self.cluster.terminate_together(self.cluster.broker_ids)
        folders = [self.cluster.data_folder(each) for each in self.cluster.broker_ids]
        self._check(differing_logs(TOPIC, PARTITIONS, folders), "at the end")

    def _check(self, found: list[str], when: str) -> None:
        self.outcome.violations += [f"{when}: {each}" for each in found]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.kill_loop.records",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None, help="of victims; from the clock without it")
    parser.add_argument(
        "--folder", type=Path, help="kept; a temporary one without it, kept after a violation"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def main() -> int:
    chosen = parse()
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="kquorum-kill-records-"))
    seed = time.time_ns() % 1_000_000 if chosen.seed is None else chosen.seed

    def tell(words: str) -> None:
        print(words, file=sys.stderr, flush=True)

    tell(f"{folder}: seed {seed}")
    began_s = time.monotonic()
    try:
        outcome = RecordRounds(folder, chosen.rounds, seed, tell).run()
    except KeyboardInterrupt:
        return 130
    seconds = round(time.monotonic() - began_s)
    if chosen.json:
        print(json.dumps({"seed": seed, "seconds": seconds} | outcome.as_json()))
    else:
        kills = ", ".join(f"{kind} {count}" for kind, count in sorted(outcome.kills.items()))
        print(f"{outcome.rounds} rounds ({kills}) in {seconds} s; longest pause {outcome.longest_pause_s} s")
        print(f"{outcome.acknowledged:,} records acknowledged, {outcome.read:,} read")
        for violation in outcome.violations:
            print(f"VIOLATION: {violation}")
        print(f"{len(outcome.violations)} violations")
    if outcome.violations:
        tell(f"the folders are kept in {folder}")
    elif chosen.folder is None:
        shutil.rmtree(folder)
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
