"""The bytes of a snapshot to record values, with what Kafka's reader does not check: that the footer is there."""

from collections.abc import Iterator

from kquorum.wire.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    decode_control_record,
)
from kquorum.wire.errors import DecodeError
from kquorum.wire.primitives import Buffer
from kquorum.wire.record_batch import Record, check_batch, read_records, read_values


class SnapshotReader:
    """Reads the header at once and the rest as it is asked for; raises DecodeError for a file that is no snapshot.

    `data` may be a view of a mapped file: no more than one batch is held beside it.
    """

    def __init__(self, data: Buffer) -> None:
        self._data = data
        self.kraft_version = 0
        self.voters: VotersRecord | None = None
        header = check_batch(data)
        controls = self._controls(header.is_control, read_records(data, 0, header))
        if not controls or not isinstance(controls[0], SnapshotHeaderRecord):
            raise DecodeError("the file does not begin with a snapshot header", 0)
        self.last_contained_log_timestamp_ms = controls[0].last_contained_log_timestamp
        self.epoch = header.partition_leader_epoch
        self._first_data_position = header.size_in_bytes
        for control in controls[1:]:
            self._take(control)

    def values(self) -> Iterator[bytes]:
        """The value of every data record, in order. Raises DecodeError on a bad batch or a missing footer."""
        position = self._first_data_position
        while position < len(self._data):
            header = check_batch(self._data, position)
            if header.is_control:
                records = read_records(self._data, position, header)
                self._check_footer(position, position + header.size_in_bytes, records)
                return
            for number, value in enumerate(read_values(self._data, position, header), header.base_offset):
                if not value:
                    raise DecodeError(f"data record {number} of the snapshot is empty", position)
                yield value
            position += header.size_in_bytes
        raise DecodeError("the snapshot has no footer: it was cut off or never finished", position)

    def _check_footer(self, position: int, end: int, records: tuple[Record, ...]) -> None:
        controls = self._controls(True, records)
        if not any(isinstance(control, SnapshotFooterRecord) for control in controls):
            raise DecodeError("a control batch in the middle of the snapshot is not its footer", position)
        if end != len(self._data):
            raise DecodeError(f"{len(self._data) - end} bytes follow the footer of the snapshot", end)

    @staticmethod
    def _controls(is_control: bool, records: tuple[Record, ...]) -> list[ControlRecord]:
        if not is_control:
            return []
        return [decode_control_record(record.key, record.value) for record in records]

    def _take(self, control: ControlRecord) -> None:
        if isinstance(control, KRaftVersionRecord):
            self.kraft_version = control.k_raft_version
        elif isinstance(control, VotersRecord):
            self.voters = control
