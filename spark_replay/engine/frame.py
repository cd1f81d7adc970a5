"""Rows with named columns, on whatever engine; a question is a function from frames to frames.

A frame is a query that has not run yet: only `collect`, `count`, `is_empty`, `rows`, `kept` and `write_parquet` run it.
The methods with PySpark's names do what PySpark's do.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from pathlib import Path
from typing import Any, Protocol, Self, TypeGuard

from kquorum.spark_replay.audit_manifest import AuditedSource, AuditManifest
from kquorum.spark_replay.engine.column import Column, ColumnOrName


class Row(Protocol):
    """One row, or a struct in one: a value by its name or place."""

    def __getitem__(self, key: Any, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def asDict(self) -> dict[str, Any]: ...  # noqa: N802 - PySpark's name


def is_row(value: object) -> TypeGuard[Row]:
    return isinstance(value, tuple) and hasattr(value, "asDict")


class Grouped(Protocol):
    def agg(self, *columns: Column) -> "Frame": ...
    def count(self) -> "Frame": ...


class Frame(ABC):
    @property
    @abstractmethod
    def columns(self) -> list[str]: ...
    @abstractmethod
    def select(self, *columns: ColumnOrName) -> Self:
        """`struct.*` is every field of a struct."""

    @abstractmethod
    def where(self, condition: ColumnOrName) -> Self: ...
    @abstractmethod
    def withColumns(self, columns: Mapping[str, Column]) -> Self: ...  # noqa: N802
    @abstractmethod
    def withColumnsRenamed(self, names: Mapping[str, str]) -> Self: ...  # noqa: N802
    @abstractmethod
    def drop(self, *names: str) -> Self: ...
    @abstractmethod
    def join(self, other: Self, on: str | Sequence[str] | Column, how: str = "inner") -> Self:
        """`how` is inner or left. With a condition the two have no column in common."""

    @abstractmethod
    def crossJoin(self, other: Self) -> Self: ...  # noqa: N802
    @abstractmethod
    def unionAll(self, other: Self) -> Self: ...  # noqa: N802
    @abstractmethod
    def unionByName(self, other: Self) -> Self:  # noqa: N802
        """NULL for columns that one of them lacks."""

    @abstractmethod
    def groupBy(self, *columns: ColumnOrName) -> Grouped: ...  # noqa: N802
    @abstractmethod
    def rollup(self, *columns: ColumnOrName) -> Grouped: ...
    @abstractmethod
    def orderBy(self, *columns: ColumnOrName) -> Self: ...  # noqa: N802
    @abstractmethod
    def limit(self, rows: int) -> Self: ...
    @abstractmethod
    def distinct(self) -> Self: ...
    @abstractmethod
    def readable(self) -> Self:
        """With timestamps as texts in UTC."""

    @abstractmethod
    def broadcast(self) -> Self:
        """The same rows, which are few: a join sends them to where the others are."""

    @abstractmethod
    def shared(self) -> Self:
        """The same rows, for a query that reads them several times."""

    @abstractmethod
    def kinds(self) -> dict[str, str]:
        """Of each column `number`, `nested` for what holds a struct or a map, or `other`."""

    @abstractmethod
    def collect(self) -> Sequence[Row]: ...
    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """One by one, in memory that does not depend on their number."""

    @abstractmethod
    def count(self) -> int: ...
    @abstractmethod
    def kept(self) -> AbstractContextManager[Self]:
        """The same rows, computed once for all queries within the context."""

    @abstractmethod
    def write_parquet(self, folder: Path) -> None:
        """Into a folder that is not there yet. Raises OSError."""

    def withColumn(self, name: str, column: Column) -> Self:  # noqa: N802
        return self.withColumns({name: column})

    def withColumnRenamed(self, name: str, new: str) -> Self:  # noqa: N802
        return self.withColumnsRenamed({name: new})

    def agg(self, *columns: Column) -> "Frame":
        return self.groupBy().agg(*columns)

    def isEmpty(self) -> bool:  # noqa: N802
        return not self.limit(1).collect()


def union_of(frames: Sequence[Frame]) -> Frame:
    return reduce(lambda one, other: one.unionAll(other), frames)


class Tables(Protocol):
    """The tables of one audit, as questions read them."""

    @property
    def manifest(self) -> AuditManifest: ...

    def frame(self, name: str) -> Frame:
        """One table by its name; KeyError for another."""

    def values(self, rows: Sequence[tuple[Any, ...]], columns: Mapping[str, str]) -> Frame:
        """A frame of these rows; `columns` has their names and types."""

    def source(self, name: str) -> AuditedSource: ...
