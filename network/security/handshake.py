"""TLS whose server tells the peer why a handshake fails, and that bounds records without data.

OpenSSL has an alert ready when a handshake fails, but asyncio and uvloop close the connection without sending it. To
Kafka's clients that looks like a network's fault, and they try until their time is over; with the alert they know that
it is about TLS.

OpenSSL reads through all records that carry no data within one call, a KeyUpdate of TLS 1.3 (27 bytes) for some 5
microseconds. Sixty connections that sent nothing else held the loop of a leader for 2.6 s. So it is given one record at
a time here, and a connection with too many records without data ends; so does a handshake in too many short records.
"""

import contextlib
import socket
import ssl
from contextvars import ContextVar
from typing import Any, cast

# Where a handshake that begins in this context takes place.
CONNECTION: ContextVar[socket.socket] = ContextVar("CONNECTION")

# Records without data that a peer may send, and how many bytes of data allow for one more. Java sends a KeyUpdate
# every 128 GiB, OpenSSL none by itself.
_RECORDS_WITHOUT_DATA = 64
_DATA_FOR_ONE_MORE = 1_048_576
# Records of a handshake that may be shorter than what a client may ask for as the longest of all (RFC 6066, 4). A
# handshake of 131 KB in records of a byte took 80 ms.
_SHORT_HANDSHAKE_RECORDS = 64
_SHORT_BYTES = 512
_HEADER_BYTES = 5
# Change of cipher, alert, handshake, application data, heartbeat (RFC 8446, 5.1; RFC 6520).
_CONTENT_TYPES = range(20, 25)
# With what encryption and padding may add (RFC 5246, 6.2.3).
_LONGEST_RECORD = 16_384 + 2_048


class TooManyRecords(ssl.SSLError):
    """Of a peer; `reason` as OpenSSL's errors have one."""

    def __init__(self, which: str) -> None:
        super().__init__(ssl.SSL_ERROR_SSL, f"too many {which}")
        self.reason = f"too many {which}".replace(" ", "_").upper()


class _Records:
    """Ciphertext on its way from `source` to `sink`, one whole record at a time."""

    __slots__ = ("_bytes", "_position", "_sink", "_source")

    def __init__(self, source: ssl.MemoryBIO, sink: ssl.MemoryBIO) -> None:
        self._source, self._sink = source, sink
        self._bytes = b""
        self._position = 0

    def pass_one(self) -> int:
        """How many bytes were passed on; the end of the stream comes last, and counts as one."""
        if self._source.pending:
            self._bytes = self._bytes[self._position :] + self._source.read()
            self._position = 0
        size = self.size_of_next()
        if size:
            self._sink.write(self._bytes[self._position : self._position + size])
            self._position += size
            return size
        if self._source.eof and not self._sink.eof:
            self._sink.write(self._bytes[self._position :])
            self._position = len(self._bytes)
            self._sink.write_eof()
            return 1
        return 0

    def size_of_next(self) -> int:
        """0 while a record is not whole. What is no record is passed on as it is, for OpenSSL says so at once."""
        left = len(self._bytes) - self._position
        if left and self._bytes[self._position] not in _CONTENT_TYPES:
            return left
        if left < _HEADER_BYTES:
            return 0
        header_end = self._position + _HEADER_BYTES
        length = int.from_bytes(self._bytes[header_end - 2 : header_end], "big")
        if length > _LONGEST_RECORD:
            return left
        return _HEADER_BYTES + length if left >= _HEADER_BYTES + length else 0


class _ServerSide(ssl.SSLObject):
    outgoing: ssl.MemoryBIO
    connection: socket.socket | None
    records: _Records
    _short_handshake_records = 0
    _without_data = 0
    _data_bytes = 0

    def do_handshake(self) -> None:
        """Raises SSLError also for a peer that sends too many short records."""
        while True:
            try:
                super().do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                passed = self.records.pass_one()
                if not passed:
                    raise
                self._count_in_handshake(passed)
            except ssl.SSLError:
                self._send_alert()
                raise
            else:
                self.connection = None
                return

    def read(self, len: int = 1024, buffer: bytearray | None = None) -> Any:  # type: ignore[override]  # noqa: A002
        """Raises SSLError for a peer that sends too many records without data."""
        is_new_record = False
        while True:
            try:
                data: Any = super().read(len, buffer)
            except ssl.SSLWantReadError:
                self._count(is_new_record)
                if not self.records.pass_one():
                    raise
                is_new_record = True
            else:
                self._data_bytes += data if buffer is not None else data.__len__()
                return data

    def pending(self) -> int:
        """uvloop reads while there is something here or in its own BIO, which `records` may have emptied."""
        return super().pending() + self.records.size_of_next()

    def unwrap(self) -> None:
        is_new_record = False
        while True:
            try:
                super().unwrap()
            except ssl.SSLWantReadError:
                self._count(is_new_record)
                if not self.records.pass_one():
                    raise
                is_new_record = True
            else:
                return

    def _count_in_handshake(self, record_bytes: int) -> None:
        self._short_handshake_records += record_bytes < _SHORT_BYTES
        if self._short_handshake_records > _SHORT_HANDSHAKE_RECORDS:
            raise TooManyRecords("short TLS records in a handshake") from None

    def _count(self, is_without_data: bool) -> None:
        self._without_data += is_without_data
        if self._without_data > _RECORDS_WITHOUT_DATA + self._data_bytes // _DATA_FOR_ONE_MORE:
            raise TooManyRecords("TLS records without data") from None

    def _send_alert(self) -> None:
        """As much as fits: what was sent before has gone out, for the peer has answered it."""
        alert = self.outgoing.read()
        if alert and self.connection is not None:
            with contextlib.suppress(OSError):
                self.connection.send(alert, socket.MSG_DONTWAIT)


class ServerContext(ssl.SSLContext):
    """Handshakes that find no CONNECTION fail without a word."""

    sslobject_class = _ServerSide

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *arguments: Any, **options: Any
    ) -> ssl.SSLObject:
        taken = ssl.MemoryBIO()
        made = cast(_ServerSide, super().wrap_bio(taken, outgoing, *arguments, **options))
        made.outgoing, made.connection = outgoing, CONNECTION.get(None)
        made.records = _Records(incoming, taken)
        return made
