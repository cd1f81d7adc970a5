"""The topics of Metadata responses (MetadataResponse.json), from the columns of the image straight to bytes.

An object for each partition takes tens of microseconds, and a cluster may have a million. Here the partitions of many
topics become the rows of one array, laid out as on the wire; the lists in it are as wide as the longest, and what is
too much in a row is left out when the bytes are taken. The rules are those of `broker.metadata_cache.answers`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kquorum.broker.metadata_cache.cache import NO_NODE
from kquorum.broker.metadata_cache.cluster_view import ClusterView, Flags
from kquorum.metadata.image.partitions import PADDING, Column, PartitionTable, stacked
from kquorum.metadata.image.topics import TopicImage
from kquorum.metadata.topic_names import is_internal_topic
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.metadata import MetadataResponseTopic
from kquorum.wire.protocol.arrays import array_length

# A longer compact list has a length of two bytes; such topics are rare and take the slow path.
MOST_REPLICAS = 126
_NONE = int(ErrorCode.none).to_bytes(2, "big")


@dataclass(frozen=True, slots=True)
class TopicsLayout:
    """What the topics of a version look like; versions that look alike are equal."""

    reachable_only: bool
    has_is_internal: bool
    has_offline_replicas: bool
    tells_missing_listener: bool
    has_leader_epoch: bool
    has_operations: bool
    is_flexible: bool
    has_topic_id: bool

    @staticmethod
    def of(version: int) -> "TopicsLayout":
        return TopicsLayout(
            reachable_only=version == 0,
            has_is_internal=version >= 1,
            has_offline_replicas=version >= 5,
            tells_missing_listener=version >= 6,
            has_leader_epoch=version >= 7,
            has_operations=version >= 8,
            is_flexible=version >= 9,
            has_topic_id=version >= 10,
        )


def can_encode(topic: TopicImage) -> bool:
    return topic.partitions.replica_width <= MOST_REPLICAS and topic.partitions.isr_width <= MOST_REPLICAS


def encode_topics(
    view: ClusterView, layout: TopicsLayout, operations: int, topics: Sequence[TopicImage]
) -> list[bytes]:
    """Each topic as an element of the response's array; all of them can be encoded here (`can_encode`)."""
    if not topics:
        return []
    rows = _Rows([topic.partitions for topic in topics], view)
    data, ends = _partition_bytes(rows, view, layout)
    last = _operations_and_tags(layout, operations)
    encoded, row, start = [], 0, 0
    for topic in topics:
        row += len(topic.partitions)
        end = ends[row]
        encoded.append(_topic_start(layout, topic) + data[start:end] + last)
        start = end
    return encoded


def encode_topic_in_parts(
    view: ClusterView, layout: TopicsLayout, operations: int, topic: TopicImage, partitions_at_once: int
) -> Iterator[bytes]:
    """The same of one topic with very many partitions, in parts that belong together."""
    yield _topic_start(layout, topic)
    for start in range(0, len(topic.partitions), partitions_at_once):
        rows = _Rows([topic.partitions.part(start, start + partitions_at_once)], view)
        yield _partition_bytes(rows, view, layout)[0]
    yield _operations_and_tags(layout, operations)


def encode_error(layout: TopicsLayout, operations: int, topic: MetadataResponseTopic) -> bytes:
    """A topic with only an error (`broker.metadata_cache.answers`), as an element of the array."""
    name = topic.name
    out = int(topic.error_code).to_bytes(2, "big")
    if name is None:
        out += b"\x00"  # only versions that name no topic asked for by id come here, and these are compact
    else:
        data = name.encode()
        out += (
            array_length(len(data), is_flexible=True) if layout.is_flexible else len(data).to_bytes(2, "big")
        )
        out += data
    if layout.has_topic_id:
        out += topic.topic_id.bytes
    if layout.has_is_internal:
        out += b"\x01" if topic.is_internal else b"\x00"
    none_of_them = array_length(0, is_flexible=layout.is_flexible)
    return out + none_of_them + _operations_and_tags(layout, operations)


def _topic_start(layout: TopicsLayout, topic: TopicImage) -> bytes:
    name = topic.name.encode()
    if layout.is_flexible:
        start = _NONE + array_length(len(name), is_flexible=True) + name
    else:
        start = _NONE + len(name).to_bytes(2, "big") + name
    if layout.has_topic_id:
        start += topic.id.bytes
    if layout.has_is_internal:
        start += b"\x01" if is_internal_topic(topic.name) else b"\x00"
    return start + array_length(len(topic.partitions), is_flexible=layout.is_flexible)


def _operations_and_tags(layout: TopicsLayout, operations: int) -> bytes:
    encoded = operations.to_bytes(4, "big", signed=True) if layout.has_operations else b""
    return encoded + (b"\x00" if layout.is_flexible else b"")


class _Rows:
    """The partitions of several topics, one after the other. Lists are (rows, longest), padded behind their end."""

    def __init__(self, tables: Sequence[PartitionTable], view: ClusterView) -> None:
        self._tables = tables
        self._view = view
        self.ids = np.concatenate([table.ids for table in tables])
        self.leaders = np.concatenate([table.leaders for table in tables])
        self.leader_epochs = np.concatenate([table.leader_epochs for table in tables])
        self.replicas = stacked([table.replicas for table in tables])
        self.isr = stacked([table.isr for table in tables])
        self.is_replica: Flags = self.replicas != PADDING
        self.is_in_sync: Flags = self.isr != PADDING

    @cached_property
    def is_reachable(self) -> Flags:
        """Of each replica, whether its broker is."""
        flags: Flags = self._view.is_reachable[self._view.places(self.replicas)]
        return flags

    @property
    def is_offline(self) -> Flags:
        """Of each replica, whether its broker cannot be reached, or its directory is not online there."""
        starts: dict[object, int] = {}
        numbers: list[int] = []
        for table in self._tables:
            if table.directory_ids not in starts:
                starts[table.directory_ids] = len(numbers)
                numbers += self._view.directory_numbers(table.directory_ids)
        if not numbers:
            return self.is_replica & ~self.is_reachable
        start_of_row = np.repeat(
            [starts[table.directory_ids] for table in self._tables], [len(table) for table in self._tables]
        )
        directories = stacked([table.directories for table in self._tables])
        places_in_numbers = np.maximum(directories, 0) + start_of_row[:, np.newaxis]
        # Of padding nothing is asked but that it be in range.
        chosen = np.array(numbers)[np.minimum(places_in_numbers, len(numbers) - 1)]
        online = self._view.is_online(self._view.places(self.replicas), chosen)
        return self.is_replica & ~(self.is_reachable & online)


def _partition_bytes(rows: _Rows, view: ClusterView, layout: TopicsLayout) -> tuple[bytes, list[int]]:
    """The bytes of all rows, and where each row's begin; last, where all end."""
    replicas_shown, in_sync_shown = rows.is_replica, rows.is_in_sync
    if layout.reachable_only:
        replicas_shown = replicas_shown & rows.is_reachable
        in_sync_shown = in_sync_shown & view.is_reachable[view.places(rows.isr)]
    lists = [(rows.replicas, replicas_shown), (rows.isr, in_sync_shown)]
    if layout.has_offline_replicas:
        lists.append((rows.replicas, rows.is_offline))
    leaders = view.places(rows.leaders)
    has_listener = view.has_listener[leaders]
    numbers = [
        (">i2", _errors(rows, view, layout, (replicas_shown, in_sync_shown))),
        (">i4", rows.ids),
        (">i4", np.where(has_listener, rows.leaders, NO_NODE)),
    ]
    if layout.has_leader_epoch:
        numbers.append((">i4", rows.leader_epochs))
    return _packed(numbers, lists, is_flexible=layout.is_flexible)


def _errors(rows: _Rows, view: ClusterView, layout: TopicsLayout, included: tuple[Flags, Flags]) -> Column:
    leaders = view.places(rows.leaders)
    errors = np.full(len(leaders), int(ErrorCode.none), dtype=np.int32)
    if layout.reachable_only:
        is_short = (included[0] != rows.is_replica).any(axis=1) | (included[1] != rows.is_in_sync).any(axis=1)
        errors[is_short] = int(ErrorCode.replica_not_available)
    without = (
        ErrorCode.listener_not_found if layout.tells_missing_listener else ErrorCode.leader_not_available
    )
    errors[~view.has_listener[leaders]] = int(without)
    errors[~view.is_registered[leaders]] = int(ErrorCode.leader_not_available)
    return errors


def _packed(
    numbers: Sequence[tuple[str, Column]], lists: Sequence[tuple[Column, Flags]], *, is_flexible: bool
) -> tuple[bytes, list[int]]:
    """Rows of numbers, then of lists of int32; the flags beside a list say which of its cells count."""
    # Columns without a value in any row need no room: mostly those of the offline replicas.
    lists = [(cells[:, included.any(axis=0)], included[:, included.any(axis=0)]) for cells, included in lists]
    fields: list[tuple[str, str] | tuple[str, str, tuple[int]]] = []
    fields += [(f"number{place}", kind) for place, (kind, _) in enumerate(numbers)]
    for place, (cells, _) in enumerate(lists):
        fields.append((f"count{place}", "u1" if is_flexible else ">i4"))
        fields.append((f"list{place}", ">i4", (cells.shape[1],)))
    fields += [("tags", "u1")] if is_flexible else []
    out = np.zeros(len(numbers[0][1]), dtype=np.dtype(fields))
    for place, (_, column) in enumerate(numbers):
        out[f"number{place}"] = column
    for place, (cells, included) in enumerate(lists):
        out[f"count{place}"] = included.sum(axis=1) + (1 if is_flexible else 0)
        out[f"list{place}"] = cells
    return _taken(out, [included for _, included in lists])


def _taken(
    out: "np.ndarray[tuple[int], np.dtype[np.void]]", included: Sequence[Flags]
) -> tuple[bytes, list[int]]:
    size = out.dtype.itemsize
    if all(flags.all() for flags in included):
        return out.tobytes(), list(range(0, size * len(out) + 1, size))
    is_taken = np.ones((len(out), size), dtype=np.bool_)
    assert out.dtype.fields is not None
    for place, flags in enumerate(included):
        start = out.dtype.fields[f"list{place}"][1]
        is_taken[:, start : start + 4 * flags.shape[1]] = np.repeat(flags, 4, axis=1)
    left_out = np.sum([(~flags).sum(axis=1) for flags in included], axis=0)
    ends = np.concatenate([[0], np.cumsum(size - 4 * left_out)])
    return out.view(np.uint8).reshape(len(out), size)[is_taken].tobytes(), ends.tolist()
