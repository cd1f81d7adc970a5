"""The partitions of topics as record values, written by columns."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from metadata.image.directories import MIGRATING
from metadata.image.partition_columns import PADDING, Column
from metadata.image.partition_records import LONGEST_LIST, NUMBERS, Records, Shape, layout_of
from metadata.image.partition_state import RECOVERED
from metadata.image.partitions import NUMBER_COLUMNS, PartitionTable
from wire.metadata_records.topics import PartitionRecord
from wire.record_frame import encode_record

_NO_SHAPE = -1


def partition_values(
    tables: Sequence[tuple[UUID, PartitionTable]], version: int
) -> Iterator[list[bytes | None]]:
    """For each topic's table the record values of its partitions, in the order of their ids.

    None stands for a partition that no layout has room for: what is rare goes through the codec of single records.
    """
    if not tables:
        return
    columns = _Columns([table for _, table in tables], np.array([each.bytes for each, _ in tables], "V16"))
    values = columns.values(version)
    for start, stop in pairwise(accumulate((len(table) for _, table in tables), initial=0)):
        yield values[start:stop]


def _cut(records: Records, size: int) -> list[bytes]:
    raw = records.tobytes()
    return [raw[start : start + size] for start in range(0, len(raw), size)]


class _Columns:
    """The tables of several topics side by side, as one."""

    def __init__(self, tables: Sequence[PartitionTable], topic_ids: Records) -> None:
        sizes = [len(table) for table in tables]
        self._numbers = np.concatenate([table.cells[:NUMBER_COLUMNS] for table in tables], axis=1)
        self._replicas = _side_by_side([table.replicas for table in tables])
        self._isr = _side_by_side([table.isr for table in tables])
        self._topic_ids = np.repeat(topic_ids, sizes)
        firsts = list(accumulate((len(table.directory_ids) for table in tables[:-1]), initial=0))
        # Padding stays far below zero.
        self._directories = _side_by_side([table.directories for table in tables])
        self._directories += np.repeat(np.array(firsts, dtype=np.int32), sizes)[:, np.newaxis]
        self._directory_ids = np.array(
            [each.bytes for table in tables for each in table.directory_ids], dtype="V16"
        )
        self._is_rare = np.concatenate(
            [np.isin(table.ids, list(table.rare_lists)) for table in tables]
            if any(table.rare_lists for table in tables)
            else [np.zeros(len(self._topic_ids), dtype=np.bool_)]
        )

    def values(self, version: int) -> list[bytes | None]:
        values: list[bytes | None] = [None] * len(self._topic_ids)
        replica_counts = (self._replicas != PADDING).sum(axis=1)
        isr_counts = (self._isr != PADDING).sum(axis=1)
        is_plain = (replica_counts <= LONGEST_LIST) & (isr_counts <= LONGEST_LIST) & ~self._is_rare
        is_plain &= self._numbers[len(NUMBERS)] == RECOVERED
        codes = np.where(is_plain, replica_counts << 8 | isr_counts, _NO_SHAPE)
        for code in np.unique(codes[is_plain]).tolist():
            replica_count, isr_count = code >> 8, code & 255
            shape = Shape(version, replica_count, isr_count, replica_count if version else 0)
            rows = np.flatnonzero(codes == code)
            for row, value in zip(rows.tolist(), self._values_of(rows, shape), strict=True):
                values[row] = value
        return values

    def _values_of(self, rows: NDArray[np.intp], shape: Shape) -> list[bytes]:
        example = _example(shape)
        records = np.frombuffer(bytearray(example * len(rows)), dtype=layout_of(shape))
        for column, name in enumerate(NUMBERS):
            records[name] = self._numbers[column, rows]
        records["topic_id"] = self._topic_ids[rows]
        records["replicas"] = self._replicas[rows, : shape.replica_count]
        records["isr"] = self._isr[rows, : shape.isr_count]
        if shape.directory_count:
            numbers = self._directories[rows, : shape.directory_count]
            records["directories"] = self._directory_ids[numbers]
        return _cut(records, len(example))


def _side_by_side(matrices: Sequence[Column]) -> Column:
    """Matrices of (rows, width) one below the other, padded to the widest."""
    width = max(matrix.shape[1] for matrix in matrices)
    if all(matrix.shape[1] == width for matrix in matrices):
        return np.concatenate(matrices)
    whole = np.full((sum(map(len, matrices)), width), PADDING, dtype=np.int32)
    start = 0
    for matrix in matrices:
        whole[start : start + len(matrix), : matrix.shape[1]] = matrix
        start += len(matrix)
    return whole


def _example(shape: Shape) -> bytes:
    """A record of this shape, by the codec of single records: what all records of the shape have in common."""
    return encode_record(
        PartitionRecord(
            partition_id=0,
            topic_id=UUID(int=0),
            replicas=(0,) * shape.replica_count,
            isr=(0,) * shape.isr_count,
            directories=(MIGRATING,) * shape.directory_count,
        ),
        shape.version,
    )
