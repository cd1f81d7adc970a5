"""Random clients of a transaction coordinator, and what must hold whatever they do: the plain reference.

The reference knows nothing of states, records or markers. It notes for each transaction what its client wrote and how
it ended as far as the client heard, and reads the logs as a reader of committed records does. A client that heard of no
end may find all of its transaction or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.replica.partition import TopicPartition
from kquorum.broker.transactions.transaction import Transaction
from kquorum.wire.data_batch import data_headers, read_data_records
from kquorum.wire.transaction_markers import decode_transaction_marker
from tests.support.broker.data_world import ORDERS
from tests.support.broker.transaction_world import (
    FIRST_PRODUCER,
    TransactionWorld,
    error_of_offsets,
    error_of_produce,
    errors_of,
)

TIMEOUT_MS = 30_000
PLACES = (TopicPartition(ORDERS, 0), TopicPartition(ORDERS, 1))
IDS = ("mine", "other")
_AGAIN = frozenset(
    {
        "concurrent_transactions",
        "coordinator_load_in_progress",
        "coordinator_not_available",
        "not_coordinator",
        "not_enough_replicas",
    }
)


class BrokenPromise(AssertionError):
    """What a client or a reader may rely on did not hold."""


@dataclass(eq=False)
class Attempt:
    """One transaction of a client. `is_committed`: as the client heard it, None if it did not."""

    values: list[str] = field(default_factory=list)
    offset: int | None = None
    is_committed: bool | None = None


@dataclass(eq=False)
class Client:
    transactional_id: str
    producer: ProducerEpoch
    is_version_2: bool
    attempt: Attempt = field(default_factory=Attempt)
    sequences: dict[int, int] = field(default_factory=dict)
    is_dead: bool = False
    is_undisturbed: bool = True
    """No other client took over its id, and its time was not over."""


class ModelRun:
    """`starts_at` is the epoch of the first producer of each id: near the last one, ids are exhausted."""

    def __init__(self, seed: int, *, starts_at: int = 0) -> None:
        self.random = Random(seed)
        self.world = TransactionWorld(txn_follower=True)
        self.world.follow_state()
        self.world.follow_state("other")
        self.clients: list[Client] = []
        self.attempts: dict[str, list[Attempt]] = {each: [] for each in IDS}
        self.given: dict[str, list[ProducerEpoch]] = {each: [] for each in IDS}
        self.count = 0
        if starts_at:
            for number, each in enumerate(IDS):
                self.world.put(
                    Transaction(
                        producer_id=FIRST_PRODUCER - 1 - number,
                        epoch=starts_at,
                        timeout_ms=TIMEOUT_MS,
                        previous_producer_id=FIRST_PRODUCER - 1 - number,
                        last_update_ms=self.world.now_ms,
                    ),
                    each,
                )
                self.follow()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
        self.drain()
        self.check()

    # Steps

    def step(self) -> None:
        steps: list[tuple[int, Any]] = [
            (10, self.produce),
            (4, self.commit_offsets),
            (8, self.end),
            (3, self.begin_client),
            (2, self.hold_markers),
            (2, self.release_markers),
            (2, self.fail_over),
            (1, self.fail_over_groups),
            (1, self.pass_time),
        ]
        weights = [weight for weight, _ in steps]
        [(_, chosen)] = self.random.choices(steps, weights)
        chosen()

    def follow(self) -> None:
        for each in IDS:
            self.world.follow_state(each)

    def settle(self, asked: Any) -> Any:
        """The answer, after the replicas, or a fail-over before they have the record."""
        if asked.is_waiting and self.random.random() < 0.1:
            self.world.fail_over_transactions()
        for _ in range(80):
            if not asked.is_waiting:
                break
            self.follow()
            self.world.pass_time(20)
        if asked.is_waiting:
            raise BrokenPromise("a request has no answer")
        self.follow()
        return asked.answer

    def begin_client(self) -> None:
        transactional_id = self.random.choice(IDS)
        self._disturb(transactional_id)
        given: list[tuple[Any, ProducerEpoch]] = []
        for _ in range(6):
            shard = self.world.transactions.shard_of(transactional_id)
            if hasattr(shard, "init_producer_id"):
                shard.init_producer_id(
                    self.world.now_ms,
                    transactional_id,
                    timeout_ms=TIMEOUT_MS,
                    expected=None,
                    done=lambda error, producer: given.append((error, producer)),
                )
            self.follow()
            if given and given[-1][0].name == "none":
                break
            self.release_markers()
            self.world.pass_time(60)
            self.follow()
        if not given or given[-1][0].name != "none":
            return
        producer = given[-1][1]
        self._note_given(transactional_id, producer)
        client = Client(transactional_id, producer, self.random.random() < 0.7)
        self.clients.append(client)
        self.attempts[transactional_id].append(client.attempt)

    def _disturb(self, *transactional_ids: str) -> None:
        for each in self.clients:
            if each.transactional_id in transactional_ids:
                each.is_undisturbed = False

    def _note_error(self, client: Client, error: str) -> None:
        if error in _AGAIN:
            return
        client.is_dead = True
        if client.is_undisturbed:
            raise BrokenPromise(f"{client.transactional_id}: {error} for a producer that was not fenced")

    def _note_given(self, transactional_id: str, producer: ProducerEpoch) -> None:
        if producer in self.given[transactional_id]:
            raise BrokenPromise(f"{transactional_id}: {producer} was handed out twice")
        self.given[transactional_id].append(producer)

    def client(self) -> Client | None:
        """Mostly the newest of an id; sometimes one that was fenced."""
        alive = [each for each in self.clients if not each.is_dead]
        if not alive:
            self.begin_client()
            return None
        newest = {each.transactional_id: each for each in alive}
        return self.random.choice(alive if self.random.random() < 0.2 else list(newest.values()))

    def produce(self) -> None:
        client = self.client()
        if client is None:
            return
        place = self.random.choice(PLACES)
        name, producer = client.transactional_id, client.producer
        if not client.is_version_2:
            added = self.settle(self.world.add(producer, place, transactional_id=name))
            [error] = set(errors_of(added).values())
            if error != "none":
                self._note_error(client, error)
                return
        self.count += 1
        value = f"{name}-{self.count}"
        sequence = client.sequences.get(place.partition, 0)
        error = error_of_produce(
            self.settle(
                self.world.produce(
                    producer,
                    sequence=sequence,
                    index=place.partition,
                    transactional_id=name,
                    version=12 if client.is_version_2 else 11,
                    value=value,
                )
            )
        )
        if error == "none":
            client.sequences[place.partition] = sequence + 1
            client.attempt.values.append(value)
        else:
            self._note_error(client, error)

    def commit_offsets(self) -> None:
        client = self.client()
        if client is None or not client.attempt.values:
            return
        name, group = client.transactional_id, f"group-{client.transactional_id}"
        version = 5
        if not client.is_version_2:
            version = 3
            added = self.settle(self.world.ask_to_add_offsets(client.producer, group, transactional_id=name))
            if added.error_code.name != "none":
                self._note_error(client, added.error_code.name)
                return
        self.count += 1
        error = error_of_offsets(
            self.settle(
                self.world.commit_in_transaction(
                    client.producer,
                    self.count,
                    group_id=group,
                    transactional_id=name,
                    version=version,
                )
            )
        )
        if error == "none":
            client.attempt.offset = self.count
        else:
            self._note_error(client, error)

    def end(self) -> None:
        client = self.client()
        if client is None or not client.attempt.values:
            return
        commit = self.random.random() < 0.6
        # The answer may be lost, and the client sends the request again.
        is_lost = self.random.random() < 0.2
        for _ in range(8):
            asked = self._ask_end(client, commit=commit)
            if asked.is_waiting and self.random.random() < 0.3:
                self._end_otherwise(client, asked, commit=commit)
            answer = self.settle(asked)
            error = answer.error_code.name
            if error == "none" and self.random.random() < 0.2:
                self.fail_over()
            if error == "none" and is_lost:
                is_lost = False
                self.release_markers()
                continue
            if error not in _AGAIN:
                break
            self.release_markers()
            self.world.pass_time(60)
            self.follow()
        if error == "none":
            client.attempt.is_committed = commit
            if client.is_version_2:
                client.producer = ProducerEpoch(answer.producer_id, answer.producer_epoch)
                self._note_given(client.transactional_id, client.producer)
                client.sequences.clear()
            client.attempt = Attempt()
            self.attempts[client.transactional_id].append(client.attempt)
        else:
            client.is_dead = True
            if error not in _AGAIN:
                self._note_error(client, error)

    def _ask_end(self, client: Client, *, commit: bool) -> Any:
        return self.world.end(
            client.producer,
            commit=commit,
            transactional_id=client.transactional_id,
            version=5 if client.is_version_2 else 4,
        )

    def _end_otherwise(self, client: Client, asked: Any, *, commit: bool) -> None:
        """While the first request waits for its record."""
        other = self._ask_end(client, commit=not commit)
        answer = self.settle(other)
        self.follow()
        if (
            answer.error_code.name == "none"
            and not asked.is_waiting
            and asked.answer.error_code.name == "none"
        ):
            raise BrokenPromise(f"{client.transactional_id}: a transaction was committed and aborted")

    def hold_markers(self) -> None:
        self.world.holds_markers = True

    def release_markers(self) -> None:
        self.world.release_markers()
        self.follow()

    def fail_over(self) -> None:
        """Requests for markers that were under way are lost, or arrive late."""
        held, self.world.held = self.world.held, []
        if self.random.random() < 0.5:
            held.clear()
        self.world.fail_over_transactions()
        self.follow()
        for request, done in held:
            self.world._write_markers(request, done)

    def fail_over_groups(self) -> None:
        self.world.fail_over()

    def pass_time(self) -> None:
        ms = self.random.choice((1_000, TIMEOUT_MS + 11_000))
        if ms > TIMEOUT_MS:
            self._disturb(*IDS)
        self.world.pass_time(ms)
        self.follow()

    # The end

    def drain(self) -> None:
        """Nothing is under way any more, and the time of all transactions is over."""
        self.release_markers()
        for _ in range(3):
            self.follow()
            self.world.pass_time(TIMEOUT_MS + 11_000)
            self.follow()

    def check(self) -> None:
        visible: list[str] = []
        for place in PLACES:
            visible += self._committed_values(place)
        if len(set(visible)) < len(visible):
            raise BrokenPromise("a reader sees a record twice")
        seen = set(visible)
        for transactional_id, attempts in self.attempts.items():
            offset = None
            for attempt in attempts:
                found = seen.intersection(attempt.values)
                if found and len(found) < len(attempt.values):
                    raise BrokenPromise(f"{transactional_id}: a reader sees a part of a transaction")
                is_decided = attempt.is_committed is not None and attempt.values
                if is_decided and bool(found) is not attempt.is_committed:
                    raise BrokenPromise(f"{transactional_id}: an end that its client heard of did not happen")
                if found and attempt.offset is not None:
                    offset = attempt.offset
                seen -= found
            self._check_offset(f"group-{transactional_id}", offset)
        if seen:
            raise BrokenPromise(f"a reader sees what no client heard of: {sorted(seen)}")

    def _check_offset(self, group: str, expected: int | None) -> None:
        [found] = self.world.fetch(0, group_id=group).answer.groups
        offset = found.topics[0].partitions[0].committed_offset
        if offset != (-1 if expected is None else expected):
            raise BrokenPromise(f"{group} has the offset {offset}, not {expected}")

    def _committed_values(self, place: TopicPartition) -> list[str]:
        partition = self.world.replicas.online(place)
        assert partition is not None
        log: Any = partition.log
        undecided: dict[int, list[str]] = {}
        committed: list[str] = []
        for batch in log.batches:
            for position, header in data_headers(batch.data):
                records = list(read_data_records(batch.data, position, header))
                if header.is_control:
                    [record] = records
                    ended = undecided.pop(header.producer_id, [])
                    if decode_transaction_marker(record.key, record.value).is_commit:
                        committed += ended
                else:
                    undecided.setdefault(header.producer_id, []).extend(
                        (record.value or b"").decode() for record in records
                    )
        if any(undecided.values()):
            raise BrokenPromise(f"{place.topic}-{place.partition}: a transaction hangs")
        return committed
