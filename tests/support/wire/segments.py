"""A segment of three batches, and what a scan finds in it."""

from kquorum.wire.log_scan import Damage, ScannedBatch
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.record_batch import write_batch
from kquorum.wire.record_frame import encode_record


def batch(base_offset: int, epoch: int = 1, records: int = 1) -> bytes:
    return write_batch(
        base_offset=base_offset,
        leader_epoch=epoch,
        timestamp_ms=1700000000000,
        records=[(None, encode_record(NoOpRecord()))] * records,
    )


FIRST, SECOND, THIRD = batch(100), batch(101, records=3), batch(104, epoch=2)


SEGMENT = FIRST + SECOND + THIRD


STARTS = (0, len(FIRST), len(FIRST) + len(SECOND))


def positions(found: list[ScannedBatch | Damage]) -> list[int]:
    return [item.position for item in found if isinstance(item, ScannedBatch)]


def only_damage(found: list[ScannedBatch | Damage]) -> Damage:
    (damage,) = (item for item in found if isinstance(item, Damage))
    return damage
