"""Runs of partition records in a log, replayed together.

When topics are made or a broker fails, thousands of records of one kind follow each other, each of another partition.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from metadata.image.change_layout import CHANGE_FRAME, changes_of
from metadata.image.delta import MetadataDelta
from metadata.image.partition_reading import read_by_columns
from metadata.image.partition_records import IDENTITY, LISTS_AT, PARTITION_FRAME, TOPIC_ID, VERSION_AT
from wire.codegen.kinds import uuid_of
from wire.schema import MetadataRecord

# Shorter runs are quicker replayed one by one.
WORTH_COLUMNS: Final = 16


def run_kind(value: bytes | None) -> bytes:
    """The first bytes of a partition record of some kind; none for a record that is in no run."""
    kind = value[:VERSION_AT] if value is not None and len(value) >= LISTS_AT else b""
    return kind if kind in (PARTITION_FRAME, CHANGE_FRAME) else b""


def replay_run(delta: MetadataDelta, values: Sequence[bytes]) -> Sequence[int]:
    """Replay what can be by columns of records of one kind; answers the places of the others, to be replayed one by
    one. What is wrong with a record is left to that."""
    everything = range(len(values))
    # Two records of one partition count in their order.
    if len(values) < WORTH_COLUMNS or len({value[IDENTITY] for value in values}) < len(values):
        return everything
    if values[0][:VERSION_AT] == CHANGE_FRAME:
        changes, others = changes_of(values)
        return others if delta.replay_changes(changes) else everything
    if not all(delta.topics.has_topic(uuid_of(raw)) for raw in {value[TOPIC_ID] for value in values}):
        return everything
    tables, others = read_by_columns(values)
    delta.replay_partitions(tables)
    return others


def replay_runs(
    delta: MetadataDelta, records: Sequence[MetadataRecord], values: Sequence[bytes], base_offset: int
) -> None:
    """Replay records whose values are known, the first of them at `base_offset`: runs together, the others one by one.

    Raises ReplayError.
    """
    for kind, group in groupby(range(len(records)), lambda place: run_kind(values[place])):
        places = list(group)
        if kind:
            others = replay_run(delta, [values[place] for place in places])
            places = [places[other] for other in others]
        for place in places:
            delta.replay(records[place], base_offset + place)
