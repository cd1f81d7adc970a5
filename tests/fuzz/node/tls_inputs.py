"""What is thrown at a listener with TLS: handshakes that are cut, mixed, huge, and records after a sound one.

A ClientHello is written here and not by OpenSSL, so that the same seed and number make the same bytes.
"""

import struct
from dataclasses import dataclass
from random import Random
from typing import Protocol

from tests.fuzz.listener.inputs import After, Input, other_protocol_bytes
from tests.fuzz.mutation import mutated

CHANGE_CIPHER, ALERT, HANDSHAKE, DATA, HEARTBEAT = 20, 21, 22, 23, 24
_LONGEST = 16_384
# What OpenSSL takes of a ClientHello, about.
_LONGEST_HELLO = 131_000
_INSIDE_SHARE = 0.5
_SUITES = (0x1301, 0x1302, 0x1303, 0xC02B, 0xC02F, 0xC02C, 0xC030)
_GROUPS = (0x001D, 0x0017)
_SIGNATURES = (0x0403, 0x0804, 0x0807, 0x0401)
_TLS_1_2, _TLS_1_3 = 0x0303, 0x0304


@dataclass(frozen=True, slots=True)
class TlsInput(Input):
    """`data` goes to the socket as it is; or, `is_inside`, it is what a peer says after a sound handshake."""

    is_inside: bool = False
    # Inside: the length of what goes into each record, and the KeyUpdates before each of the first ones.
    record_bytes: int = _LONGEST
    key_updates: int = 0
    # Of the ciphertext of `data`: whether one bit of it is changed, and how much of its end is not sent.
    is_flipped: bool = False
    cut_bytes: int = 0
    # Whether the peer sends close_notify before it goes on, and may only listen then.
    says_farewell: bool = False


class Maker(Protocol):
    def make(self, number: int) -> Input: ...


class TlsInputs:
    def __init__(self, inner: Maker, seed: int) -> None:
        """`inner` makes what is sent inside of TLS."""
        self._inner = inner
        self._seed = seed

    def make(self, number: int) -> TlsInput:
        random_source = Random(f"tls {self._seed} {number}")
        if random_source.random() < _INSIDE_SHARE:
            return _inside(self._inner.make(number), random_source)
        kind, make, after = random_source.choices(_KINDS, _WEIGHTS)[0]
        ending = after if after is not None else random_source.choice((After.END, After.RESET))
        return TlsInput(kind, make(random_source), ending)


def _inside(said: Input, random_source: Random) -> TlsInput:
    way = random_source.randrange(8)
    key_updates = random_source.choice((1, 3, 64, 65, 2_000)) if way in (0, 1) else 0
    ending = said.after
    if way == 4:  # the rest of a record is waited for as long as for a login
        ending = random_source.choice((After.END, After.RESET))
    # A record for every few bytes of much data takes this side longer than the other.
    shortest = 1 if len(said.data) < 5_000 else 500
    return TlsInput(
        f"inside TLS: {said.kind}",
        said.data,
        ending,
        is_inside=True,
        record_bytes=max(shortest, random_source.choice((1, 17, 300))) if way in (1, 2) else _LONGEST,
        key_updates=key_updates,
        is_flipped=way == 3,
        cut_bytes=random_source.choice((1, 5, 16, 100)) if way == 4 else 0,
        says_farewell=way == 5,
    )


def record(content_type: int, data: bytes, version: int = _TLS_1_2, length: int | None = None) -> bytes:
    return struct.pack(">BHH", content_type, version, len(data) if length is None else length) + data


def in_records(data: bytes, size: int, content_type: int = HANDSHAKE) -> bytes:
    return b"".join(record(content_type, data[start : start + size]) for start in range(0, len(data), size))


def _extension(number: int, data: bytes) -> bytes:
    return struct.pack(">HH", number, len(data)) + data


def _list(numbers: tuple[int, ...]) -> bytes:
    return struct.pack(f">H{len(numbers)}H", 2 * len(numbers), *numbers)


def hello(random_source: Random, padding: int = 0) -> bytes:
    """A sound ClientHello, which a server answers: any 32 bytes are a key of X25519. `padding`: some bytes more."""
    extensions = _extension(10, _list(_GROUPS)) + _extension(13, _list(_SIGNATURES))
    if random_source.random() < 0.8:
        share = struct.pack(">HH", 0x001D, 32) + random_source.randbytes(32)
        # Without a share the server asks for another hello.
        shares = share if random_source.random() < 0.8 else b""
        extensions += _extension(43, struct.pack(">BHH", 4, _TLS_1_3, _TLS_1_2))
        extensions += _extension(51, struct.pack(">H", len(shares)) + shares)
    # Unknown extensions and suites are passed over; what does not fit into them stands behind the end.
    extensions += _extension(0x7000, bytes(min(padding, 60_000)))
    suites = _list(_SUITES + (0x00FF,) * (min(padding - 60_000, 65_000) // 2 if padding > 60_000 else 0))
    body = struct.pack(">H", _TLS_1_2) + random_source.randbytes(32) + b"\x20" + random_source.randbytes(32)
    body += suites + b"\x01\x00" + struct.pack(">H", len(extensions)) + extensions
    body += bytes(max(0, padding - 125_000))
    return _message(1, body)


def _message(kind: int, body: bytes, length: int | None = None) -> bytes:
    return struct.pack(">I", kind << 24 | (len(body) if length is None else length)) + body


def sound_hello(random_source: Random) -> bytes:
    return in_records(hello(random_source), _LONGEST)


def cut_hello(random_source: Random) -> bytes:
    whole = sound_hello(random_source)
    return whole[: random_source.randrange(1, len(whole))]


def changed_hello(random_source: Random) -> bytes:
    return (
        mutated([sound_hello(random_source), in_records(hello(random_source), 50)], random_source) or b"\x16"
    )


def hello_in_pieces(random_source: Random) -> bytes:
    padding = random_source.choice((0, 0, 0, 1_000, 20_000, 60_000))
    return in_records(hello(random_source, padding), random_source.choice((1, 2, 3, 40)))


def huge_hello(random_source: Random) -> bytes:
    size = random_source.choice((124_000, 126_000, 135_000, 500_000))
    return in_records(hello(random_source, size), random_source.choice((1, 16, 1_000, _LONGEST)))


def endless_message(random_source: Random) -> bytes:
    """A length that is lawful for no message, or for a long one that comes in part."""
    announced = random_source.choice((_LONGEST_HELLO, 2**24 - 1, 70_000))
    message = _message(random_source.choice((1, 2, 11, 20, 255)), bytes(60_000), announced)
    return in_records(message, random_source.choice((1, 100, _LONGEST)))


def long_record(random_source: Random) -> bytes:
    length = random_source.choice((_LONGEST + 1, _LONGEST + 2_048, _LONGEST + 2_049, 0xFFFF))
    data = random_source.randbytes(random_source.choice((0, 10, length)))
    return record(random_source.choice((HANDSHAKE, DATA)), data, length=length)


def mixed_records(random_source: Random) -> bytes:
    """Records of every kind around a hello, few or many, empty ones among them."""
    of_all_kinds = (
        record(CHANGE_CIPHER, b"\x01"),
        record(CHANGE_CIPHER, b"\x01\x01"),
        record(ALERT, b"\x01\x5a"),
        record(ALERT, b"\x02\x28"),
        record(ALERT, b"\x01\x00"),
        record(HANDSHAKE, b""),
        record(HANDSHAKE, b"\x00\x00\x00\x00"),
        record(HANDSHAKE, _message(20, bytes(32))),
        record(HANDSHAKE, _message(24, b"\x01")),
        record(DATA, b""),
        record(DATA, random_source.randbytes(60)),
        record(HEARTBEAT, b"\x01\x40\x00"),
        record(random_source.randrange(256), b"x", version=random_source.randrange(65_536)),
    )
    before = _some(of_all_kinds, random_source) if random_source.random() < 0.3 else b""
    hellos = sound_hello(random_source) * random_source.choice((0, 1, 1, 1, 2, 300))
    return before + hellos + _some(of_all_kinds, random_source)


def _some(records: tuple[bytes, ...], random_source: Random) -> bytes:
    """All different ones, or one many times."""
    if random_source.random() < 0.5:
        return b"".join(random_source.choices(records, k=random_source.randint(1, 12)))
    return random_source.choice(records) * random_source.choice((2, 33, 1_000, 20_000))


def old_hello(random_source: Random) -> bytes:
    """Of SSL 2, which some servers took long after its time."""
    specs = random_source.randbytes(3 * random_source.choice((1, 20, 5_000)))
    body = struct.pack(">BHHHH", 1, _TLS_1_2, len(specs), 0, 16) + specs + random_source.randbytes(16)
    return struct.pack(">H", 0x8000 | len(body)) + body


def garbage(random_source: Random) -> bytes:
    return random_source.randbytes(random_source.choice((1, 4, 5, 6, 200, 20_000)))


_KINDS = (
    ("a cut hello", cut_hello, None),
    ("a changed hello", changed_hello, None),
    ("a hello in pieces", hello_in_pieces, None),
    ("a huge hello", huge_hello, None),
    ("a message without an end", endless_message, None),
    ("a long record", long_record, None),
    ("mixed records", mixed_records, None),
    ("a hello of SSL 2", old_hello, None),
    ("a sound hello and no more", sound_hello, None),
    ("random bytes", garbage, None),
    ("another protocol", other_protocol_bytes, None),
    ("a hello that stops", cut_hello, After.SILENCE),
    ("a hello in drops", cut_hello, After.DRIP),
)
_WEIGHTS = (100, 300, 100, 60, 60, 60, 250, 20, 50, 50, 30, 0.5, 0.5)
