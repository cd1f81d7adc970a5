"""Tells the controller where this broker's replicas lie that it knows to be elsewhere (AssignReplicasToDirs, KIP-858).

A replica is in one of the directories that the broker has, or it gets a place in one: when the broker has several and
the controller left the choice to it (UNASSIGNED), when it comes from before there were directories (MIGRATING), and
when the directory it was in is gone (LOST, or the id of one that was replaced). Kafka's broker makes a new log then in
the directory that holds the fewest, and says so. What lies in a directory that has failed stays there, for it may come
back.

Sans-IO: its runner passes in each image, asks for the request that is due, and passes in the outcome. One request is
under way at a time.
What was assigned is forgotten: the image tells if it has to be assigned again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kquorum.broker.directory_columns import own_replicas
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.directories import LOST
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.metadata_version import DIRECTORIES
from kquorum.metadata.image.partitions import Column, PartitionTable
from kquorum.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    RequestDirectoryData,
    RequestPartitionData,
    RequestTopicData,
)
from kquorum.wire.messages.error_codes import ErrorCode

# Kafka's.
MAX_ASSIGNMENTS_PER_REQUEST: Final = 2250
BATCHING_MS: Final = 100
RETRY_BACKOFF_MS: Final = 100
RETRY_BACKOFF_MAX_MS: Final = 10_000

# A topic, one of its partitions, and the number of the directory that is to have it; LOST has the last number.
_Assignment = tuple[UUID, int, int]


class DirectoryManager:
    """`directories` are all that the broker registers with, in any order. `located` says in which of them the log of a
    partition lies; None: it is not open, or its replica is LOST until there is space, and is assigned later. Without it
    there are no logs, and a replica comes into the directory that holds the fewest. `on_assigned` hears of what
    `assign` asked for. `poke` is called when a request may be due."""

    def __init__(
        self,
        broker_id: int,
        directories: Iterable[UUID],
        *,
        located: Callable[[UUID, int], UUID | None] | None = None,
        on_assigned: Callable[[UUID, int, UUID], None] = lambda _topic, _partition, _directory: None,
    ) -> None:
        self._broker_id = broker_id
        self._located = located
        self._on_assigned = on_assigned
        # Directories that were asked for by `assign`; the newest wish counts.
        self._wishes: dict[tuple[UUID, int], UUID] = {}
        self.poke: Callable[[], None] = lambda: None
        self._directories = tuple(directories)
        self._assignable = (*self._directories, LOST)
        self._numbers = {directory_id: number for number, directory_id in enumerate(self._directories)}
        self._online = tuple(range(len(self._directories)))
        self._image = MetadataImage.empty()
        self._counts = np.zeros(len(self._directories), dtype=np.intp)
        # By topic, partitions whose replica has to be given a directory.
        self._elsewhere: dict[UUID, set[int]] = {}
        self._in_flight: tuple[_Assignment, ...] = ()
        self._due_ms = 0
        self._failures = 0

    def set_offline(self, directories: Collection[UUID]) -> None:
        """All that have failed so far: nothing is put there any more."""
        self._online = tuple(number for each, number in self._numbers.items() if each not in directories)

    def assign(self, topic_id: UUID, partition_id: int, directory_id: UUID) -> None:
        """Ask for the directory of a replica, whatever the controller has for it. LOST: the replica leaves its ISR and
        its leadership."""
        self._wishes[topic_id, partition_id] = directory_id
        self.poke()

    def handle_image(self, now_ms: int, delta: MetadataDelta, image: MetadataImage) -> None:
        """What comes up is asked for a little later, in company: a topic's partitions may come one after the other."""
        was_waiting = bool(self._elsewhere)
        self._look(delta, image)
        if self._elsewhere and not was_waiting:
            self._due_ms = max(self._due_ms, now_ms + BATCHING_MS)

    def next_deadline_ms(self) -> int | None:
        return self._due_ms if self._can_ask() else None

    def maybe_next_request(self, now_ms: int, broker_epoch: int) -> AssignReplicasToDirsRequest | None:
        """A request, which then counts as under way; None when nothing is due."""
        if broker_epoch < 0 or now_ms < self._due_ms or not self._can_ask():
            return None
        assignments = self._wished()
        counts = self._counts.copy()
        for topic_id, partition_id in self._waiting():
            if len(assignments) >= MAX_ASSIGNMENTS_PER_REQUEST:
                break
            if (topic_id, partition_id) in self._wishes:
                continue
            number = self._place_of(topic_id, partition_id, counts)
            if number is not None:
                counts[number] += 1
                assignments.append((topic_id, partition_id, number))
        if not assignments:
            # The logs are not open yet.
            self._due_ms = now_ms + RETRY_BACKOFF_MAX_MS // 10
            return None
        self._in_flight = tuple(assignments)
        return AssignReplicasToDirsRequest(
            broker_id=self._broker_id,
            broker_epoch=broker_epoch,
            directories=_by_directory(self._assignable, assignments),
        )

    def _wished(self) -> list[_Assignment]:
        """Without those of replicas that this broker has no more."""
        found: list[_Assignment] = []
        for key, directory_id in list(self._wishes.items()):
            state = self._image.topics.partition(*key)
            number = self._number_of(directory_id)
            if state is None or self._broker_id not in state.replicas or number is None:
                del self._wishes[key]
            elif len(found) < MAX_ASSIGNMENTS_PER_REQUEST:
                found.append((*key, number))
        return found

    def _number_of(self, directory_id: UUID) -> int | None:
        return len(self._directories) if directory_id == LOST else self._numbers.get(directory_id)

    def _place_of(self, topic_id: UUID, partition_id: int, counts: NDArray[np.intp]) -> int | None:
        if self._located is None:
            return min(self._online, key=counts.__getitem__)
        directory_id = self._located(topic_id, partition_id)
        return None if directory_id is None else self._numbers.get(directory_id)

    def handle_reply(self, now_ms: int, response: AssignReplicasToDirsResponse) -> None:
        if response.error_code is not ErrorCode.none:
            self.handle_failure(now_ms)
            return
        asked, self._in_flight = self._in_flight, ()
        done = {
            (topic.topic_id, partition.partition_index)
            for directory in response.directories
            for topic in directory.topics
            for partition in topic.partitions
            if partition.error_code is ErrorCode.none
        }
        self._forget(each for each in asked if each[:2] in done)
        for topic_id, partition_id, number in asked:
            key, directory_id = (topic_id, partition_id), self._assignable[number]
            if key in done and self._wishes.get(key) == directory_id:
                del self._wishes[key]
                self._on_assigned(*key, directory_id)
        if all(each[:2] in done for each in asked):
            self._failures, self._due_ms = 0, now_ms
        else:
            self._back_off(now_ms)

    def handle_failure(self, now_ms: int) -> None:
        self._in_flight = ()
        self._back_off(now_ms)

    def _look(self, delta: MetadataDelta, image: MetadataImage) -> None:
        before, self._image = self._image, image
        for topic_id in delta.deleted_topic_ids:
            self._elsewhere.pop(topic_id, None)
        changed = dict(delta.topics.settled_ids())
        topics = [image.topics.by_id[each] for each in changed if each in image.topics.by_id]
        self._uncount(before, delta.deleted_topic_ids, changed)
        found = own_replicas(
            [(topic.partitions, changed[topic.id]) for topic in topics], self._broker_id, self._numbers
        )
        self._counts += found.counts
        for topic, ids in zip(topics, found.elsewhere, strict=True):
            known = self._elsewhere.get(topic.id)
            if known is None and not len(ids):
                continue
            looked_at = set(changed[topic.id].tolist())
            self._keep(topic.id, (known or set()) - looked_at | set(ids.tolist()))

    def _can_ask(self) -> bool:
        return bool(
            (self._elsewhere or self._wishes)
            and self._online
            and not self._in_flight
            and self._image.metadata_version >= DIRECTORIES
        )

    def _uncount(
        self, before: MetadataImage, deleted: Collection[UUID], changed: Mapping[UUID, Column]
    ) -> None:
        """Where replicas were counted that lie elsewhere now, or nowhere."""
        if len(self._directories) == 1:
            return  # there is no choice that the numbers matter to
        known = before.topics.by_id
        tables: list[tuple[PartitionTable, Column | None]] = [
            (known[each].partitions, None) for each in deleted if each in known
        ]
        for topic_id, ids in changed.items():
            if topic_id in known and topic_id not in deleted:
                table = known[topic_id].partitions
                tables.append((table, np.intersect1d(ids, table.ids, assume_unique=True)))
        self._counts -= own_replicas(tables, self._broker_id, self._numbers).counts

    def _waiting(self) -> Iterable[tuple[UUID, int]]:
        for topic_id, ids in self._elsewhere.items():
            for partition_id in ids:
                yield topic_id, partition_id

    def _forget(self, done: Iterable[_Assignment]) -> None:
        for topic_id, partition_id, _ in done:
            ids = self._elsewhere.get(topic_id, set())
            ids.discard(partition_id)
            self._keep(topic_id, ids)

    def _keep(self, topic_id: UUID, ids: set[int]) -> None:
        if ids:
            self._elsewhere[topic_id] = ids
        else:
            self._elsewhere.pop(topic_id, None)

    def _back_off(self, now_ms: int) -> None:
        self._due_ms = now_ms + min(RETRY_BACKOFF_MS << min(self._failures, 10), RETRY_BACKOFF_MAX_MS)
        self._failures += 1


def _by_directory(
    directories: Sequence[UUID], assignments: Iterable[_Assignment]
) -> tuple[RequestDirectoryData, ...]:
    grouped: dict[int, dict[UUID, list[RequestPartitionData]]] = {}
    for topic_id, partition_id, number in assignments:
        topics = grouped.setdefault(number, {})
        topics.setdefault(topic_id, []).append(RequestPartitionData(partition_index=partition_id))
    return tuple(
        RequestDirectoryData(
            id_=directories[number],
            topics=tuple(
                RequestTopicData(topic_id=each, partitions=tuple(partitions))
                for each, partitions in topics.items()
            ),
        )
        for number, topics in grouped.items()
    )
