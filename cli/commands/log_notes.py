"""The audit note that tells of a record: whoever asks for one topic's records wants to see who made them."""

from cli.commands.log_filters import has_audit_note
from spark_replay.rows import RecordRow


class PrecedingNote:
    """`observe` every record in order; `take` the note that covers the newest one, once."""

    def __init__(self) -> None:
        self._note: RecordRow | None = None
        self._last_covered = -1

    def observe(self, row: RecordRow) -> None:
        if has_audit_note(row):
            assert row.payload is not None, "it has a note"
            note = row.payload["audit_note"]
            assert isinstance(note, dict), note
            self._note = row
            self._last_covered = row.offset + int(note["covered_records"])
        elif row.offset > self._last_covered:
            self._note = None

    def take(self) -> RecordRow | None:
        note, self._note = self._note, None
        return note
