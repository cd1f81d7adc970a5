"""Incremental fetches of a session with many idle partitions: processor time of one, in the broker's handler.

    python -m benchmarks.fetch_sessions [--partitions 1000] [--fetches 300] [--json]

A follower, or a consumer, has a session over all partitions of a topic; before each of its fetches one partition gets a
record. "all" looks at every partition with each fetch, as brokers did before sessions heard of events; "changed" looks
at those that something happened to. Both in turn, in one run. "idle" are fetches without any news, which wait and are
answered when their time is over.
"""

import argparse
import time
from collections.abc import Sequence
from statistics import median

from benchmarks._report import hardware, print_result
from kquorum.broker.fetch import sessions
from kquorum.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from tests.support.broker.data_world import BROKER, DataWorld
from tests.support.images import partition_record, topic_id, topic_records

TOPIC, NUMBER, FOLLOWER = "many", 9, 2
ROUNDS = 4


class Reader:
    def __init__(self, partitions: int, *, is_follower: bool) -> None:
        self.world = DataWorld()
        records = [partition_record(NUMBER, each, (BROKER, FOLLOWER)) for each in range(partitions)]
        self.world.change(*topic_records(NUMBER, TOPIC, *records))
        while self.world.replicas.next_deadline_ms() == 0:
            self.world.replicas.tick(self.world.now_ms)
        self.world.settle()
        self.partitions = partitions
        self.offsets = [0] * partitions
        self.replica = ReplicaState(replica_id=FOLLOWER, replica_epoch=-1) if is_follower else ReplicaState()
        self.session_id = self.epoch = 0
        self._named: Sequence[int] = range(partitions)
        for _ in range(3):
            self.fetch()

    def fetch(self, max_wait_ms: int = 0) -> float:
        """Microseconds that the request took in the handler, its wait and its answer."""
        partitions = tuple(
            FetchPartition(partition=each, fetch_offset=self.offsets[each], partition_max_bytes=1 << 20)
            for each in self._named
        )
        topics = (FetchTopic(topic_id=topic_id(NUMBER), partitions=partitions),) if partitions else ()
        request = FetchRequest(
            replica_state=self.replica,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=topics,
        )
        began_s = time.perf_counter()
        asked = self.world.ask(request, 18)
        self.world.settle()
        if max_wait_ms:
            self.world.pass_time(max_wait_ms)
        taken_us = (time.perf_counter() - began_s) * 1e6
        self.session_id, self.epoch = asked.answer.session_id, self.epoch + 1
        self._named = []
        return taken_us

    def append(self, index: int) -> None:
        self.world.append("x" * 100, index=index, topic=TOPIC)
        partition = self.world.partition(index, TOPIC)
        end = partition.log.log_end_offset
        if self.replica.replica_id < 0:
            partition.read_as_follower(self.world.now_ms, FOLLOWER, end, max_bytes=1)
            self.world.settle()

    def took(self, index: int) -> None:
        self.offsets[index] = self.world.partition(index, TOPIC).log.log_end_offset
        self._named = [index]


def measured(reader: Reader, fetches: int, *, looks_at_all: bool) -> tuple[float, float]:
    """Medians of a fetch with one record, and of one without news."""
    plain = sessions.ALL_DUE_EVERY_MS
    sessions.ALL_DUE_EVERY_MS = 0 if looks_at_all else plain  # type: ignore[misc]
    try:
        busy, idle = [], []
        for number in range(fetches):
            index = number * 7 % reader.partitions
            reader.append(index)
            busy.append(reader.fetch())
            reader.took(index)
            reader.fetch()
            idle.append(reader.fetch(max_wait_ms=1))
    finally:
        sessions.ALL_DUE_EVERY_MS = plain  # type: ignore[misc]
    return median(busy), median(idle)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--fetches", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    machine = hardware()
    rows: list[dict[str, object]] = []
    for who in ("follower", "consumer"):
        reader = Reader(options.partitions, is_follower=who == "follower")
        found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
        for _ in range(ROUNDS):
            for looks_at_all in (True, False):
                count = options.fetches // ROUNDS
                found[looks_at_all].append(measured(reader, count, looks_at_all=looks_at_all))
        for column, what in enumerate(("with a record", "idle")):
            all_us = median(each[column] for each in found[True])
            changed_us = median(each[column] for each in found[False])
            rows.append(
                {
                    "reader": who,
                    "fetch": what,
                    "all_us": all_us,
                    "changed_us": changed_us,
                    "ratio": all_us / changed_us,
                }
            )
    settings = {"partitions": options.partitions, "fetches": options.fetches}
    print_result("fetch_sessions", machine, settings, {"a fetch": rows}, as_json=options.json)


if __name__ == "__main__":
    main()
