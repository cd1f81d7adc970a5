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
    """Ciphertext on its way from `source` to `sink`, one whole record at a time.

    No more than one record is ever taken out of `source`: the loop pauses a connection by what lies there. All of a
    flood lay here once, at 800 MB a node, and each record moved it.
    """

    __slots__ = ("_record", "_sink", "_source")

    def __init__(self, source: ssl.MemoryBIO, sink: ssl.MemoryBIO) -> None:
        self._source, self._sink = source, sink
        # As much of the next record as has come.
        self._record = bytearray()

    def pass_one(self) -> int:
        """How many bytes were passed on; the end of the stream comes last, and counts as one."""
        while (missing := self._missing()) and self._source.pending:
            self._record += self._source.read(missing)
        size = 0 if missing else len(self._record)
        if not size and self._source.eof and not self._sink.eof:
            self._sink.write(self._record)
            self._record.clear()
            self._sink.write_eof()
            return 1
        if size:
            self._sink.write(self._record)
            self._record.clear()
        return size

    def _missing(self) -> int:
        """How many bytes at least, until the record is whole. What is no record is passed on at once, for OpenSSL to
        refuse it."""
        have = len(self._record)
        if have and self._record[0] not in _CONTENT_TYPES:
            return 0
        if have < _HEADER_BYTES:
            return _HEADER_BYTES - have
        length = int.from_bytes(self._record[_HEADER_BYTES - 2 : _HEADER_BYTES], "big")
        return 0 if length > _LONGEST_RECORD else _HEADER_BYTES + length - have


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
