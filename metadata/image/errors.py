"""How replaying a record fails."""


class CannotReplayError(Exception):
    """A record contradicts the state it is applied to; raised by the parts of a delta, which know no offsets."""


class ReplayError(Exception):
    """A record of the log contradicts the state before it: this log was not written by a sound controller.

    Fatal for a controller; a reader of foreign logs may report it and go on.
    """

    def __init__(self, offset: int, record: object, reason: str) -> None:
        self.offset = offset
        self.record = record
        self.reason = reason
        # Unreadable bytes may be those of a credential, and this text goes into logs and to clients.
        shown = f"a record of {len(record)} bytes" if isinstance(record, bytes) else repr(record)
        super().__init__(f"offset {offset}: cannot replay {shown}: {reason}")
