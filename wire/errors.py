"""Errors in bytes from another process or from a file."""


class DecodeError(Exception):
    """The bytes are not what Kafka's formats allow.

    `position` is the byte offset in the buffer handed to the reader, or None where no single place is to
    blame.
    """

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason, position)
        self.reason = reason
        self.position = position

    def __str__(self) -> str:
        return self.reason if self.position is None else f"{self.reason} (at byte {self.position})"


class BufferUnderflow(DecodeError):
    """The buffer ends before the value does."""


class TooManyElements(DecodeError):
    """The arrays of a message have more elements together, its unknown tagged fields among them, than its reader
    takes."""


class TooMuchData(DecodeError):
    """Compressed data unfold to more than their reader takes."""


class CorruptBatch(DecodeError):
    """A record batch has a header that cannot be right, or a checksum that does not match."""


class UnsupportedVersion(DecodeError):
    """A message, record or field does not exist in the version asked for."""
