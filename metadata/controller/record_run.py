"""Records that were decided together, by columns, among those that were decided one by one."""

from collections.abc import Iterable, Iterator, Sequence

from metadata.image.delta import MetadataDelta
from wire.schema import MetadataRecord


class RecordRun:
    """As many records as there are `values`, which are theirs, in their order."""

    __slots__ = ()

    values: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.values)

    def replay(self, delta: MetadataDelta, offset: int) -> None:
        """What replaying the records one by one would do; `offset` is that of the first."""
        raise NotImplementedError


Entry = MetadataRecord | RecordRun


def record_count(entries: Iterable[Entry]) -> int:
    return sum(len(each) if isinstance(each, RecordRun) else 1 for each in entries)


def stretches(entries: Iterable[Entry]) -> Iterator[RecordRun | list[MetadataRecord]]:
    """The runs, and what stands between them, in their order."""
    records: list[MetadataRecord] = []
    for each in entries:
        if isinstance(each, RecordRun):
            if records:
                yield records
                records = []
            yield each
        else:
            records.append(each)
    if records:
        yield records


def plain_records(entries: Iterable[Entry]) -> list[MetadataRecord]:
    """The entries, none of which is a run."""
    records: list[MetadataRecord] = []
    for each in entries:
        assert not isinstance(each, RecordRun), "these records are decided one by one"
        records.append(each)
    return records
