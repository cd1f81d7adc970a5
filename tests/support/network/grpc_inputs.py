"""What is thrown at the gRPC listener: HTTP/2 written by hand, so that each part of it may be wrong.

A call is written for stream 1; the peer moves it to the next stream of its connection (`moved`).
"""

import struct
from collections.abc import Iterator, Mapping
from functools import cache
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from kquorum.wire.proto import broker_pb2, inspect_pb2, quorum_pb2
from tests.fuzz.listener.inputs import After, Input, other_protocol_bytes
from tests.fuzz.mutation import mutated
from tests.support.cluster import CLUSTER_ID

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM = ACK = 1
END_HEADERS = 4
# So that no answer waits for the peer to take it.
OPENING = (
    PREFACE
    + b"\x00\x00\x06\x04\x00\x00\x00\x00\x00"
    + struct.pack(">HI", 4, 2**31 - 1)
    + b"\x00\x00\x04\x08\x00\x00\x00\x00\x00"
    + struct.pack(">I", 2**31 - 1 - 65_535)
)
_SERVICES = tuple(
    service
    for file in (inspect_pb2, quorum_pb2, broker_pb2, health_pb2, reflection_pb2)
    for service in file.DESCRIPTOR.services_by_name.values()
)
METHODS: Mapping[str, Any] = {
    f"/{service.full_name}/{method.name}": method.input_type
    for service in _SERVICES
    for method in service.methods
}
_TEXTS = (
    "",
    "t0",
    "t1",
    "TopicRecord",
    "LeaderChange",
    CLUSTER_ID,
    "AAAAAAAAAAAAAAAAAAAAAQ",
    "x" * 300,
    "\U0001f600",
    "a/../b",
)
_NUMBERS = (0, 1, 2, 3, 5, 25, 100, 201, 2**31 - 1, 2**32 - 1, 2**63 - 1, -1, -(2**31), -(2**63))


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload


def moved(data: bytes, stream: int) -> bytes:
    """The frames of stream 1, on another stream."""
    out, position = bytearray(data), 0
    while position + 9 <= len(out):
        length = int.from_bytes(out[position : position + 3], "big")
        if out[position + 5 : position + 9] == b"\x00\x00\x00\x01":
            out[position + 5 : position + 9] = struct.pack(">I", stream)
        position += 9 + length
    return bytes(out)


def has_ended(data: bytes) -> bool:
    """Whether one of these whole frames ends a stream or the connection."""
    position = 0
    while position + 9 <= len(data):
        kind, flags = data[position + 3], data[position + 4]
        if kind in (RST_STREAM, GOAWAY) or (kind in (DATA, HEADERS) and flags & END_STREAM):
            return True
        position += 9 + int.from_bytes(data[position : position + 3], "big")
    return False


def field(name: bytes, value: bytes) -> bytes:
    """A header as HPACK has it without any table."""
    return b"\x00" + _length(len(name)) + name + _length(len(value)) + value


def _length(number: int) -> bytes:
    if number < 127:
        return bytes((number,))
    number, out = number - 127, bytearray((127,))
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


@cache
def headers(path: bytes, more: bytes = b"") -> bytes:
    return (
        field(b":method", b"POST")
        + field(b":scheme", b"http")
        + field(b":path", path)
        + field(b":authority", b"localhost")
        + field(b"content-type", b"application/grpc")
        + field(b"te", b"trailers")
        + more
    )


def message(data: bytes, flag: int = 0) -> bytes:
    return struct.pack(">BI", flag, len(data)) + data


def call(path: str, body: bytes, more: bytes = b"") -> bytes:
    """A whole call; `body` has the messages with their lengths."""
    return frame(HEADERS, END_HEADERS, 1, headers(path.encode(), more)) + b"".join(_data(body))


def _data(body: bytes) -> Iterator[bytes]:
    pieces = [body[start : start + 16_384] for start in range(0, len(body), 16_384)] or [b""]
    for piece in pieces[:-1]:
        yield frame(DATA, 0, 1, piece)
    yield frame(DATA, END_STREAM, 1, pieces[-1])


def filled(descriptor: Any, random_source: Random, depth: int = 0) -> Message:
    """With random fields: plausible ones and such as no client would send."""
    made: Any = GetMessageClass(descriptor)()
    for each in descriptor.fields:
        if random_source.random() < 0.25:
            continue
        if each.is_repeated:
            for _ in range(random_source.choice((0, 1, 2, 2, 40))):
                if each.type == FieldDescriptor.TYPE_MESSAGE:
                    getattr(made, each.name).add().CopyFrom(
                        filled(each.message_type, random_source, depth + 1)
                    )
                else:
                    getattr(made, each.name).append(_value(each, random_source))
        elif each.type == FieldDescriptor.TYPE_MESSAGE:
            getattr(made, each.name).CopyFrom(filled(each.message_type, random_source, depth + 1))
        else:
            setattr(made, each.name, _value(each, random_source))
    return made  # type: ignore[no-any-return]


def _value(each: Any, random_source: Random) -> object:
    kind = each.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if each.type == FieldDescriptor.TYPE_BYTES:
            return random_source.choice(
                (b"", bytes(16), random_source.randbytes(16), random_source.randbytes(15), b"x" * 5_000)
            )
        return random_source.choice(_TEXTS)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return random_source.random() < 0.5
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return random_source.choice((0, 1, 2, 3, 99, -1))
    low, high = _RANGES[kind]
    return min(max(random_source.choice((*_NUMBERS, random_source.randrange(200))), low), high)


_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def _some(random_source: Random) -> tuple[str, bytes]:
    path, descriptor = random_source.choice(tuple(METHODS.items()))
    return path, filled(descriptor, random_source).SerializeToString()


def sound_call(random_source: Random) -> bytes:
    path, data = _some(random_source)
    return call(path, message(data))


def changed_call(random_source: Random) -> bytes:
    path, data = _some(random_source)
    return call(path, message(mutated([data or b"\x00"], random_source)))


def garbage_call(random_source: Random) -> bytes:
    return call(
        random_source.choice(tuple(METHODS)),
        message(random_source.randbytes(random_source.choice((1, 5, 40, 300, 5_000)))),
    )


def odd_lengths(random_source: Random) -> bytes:
    """The messages' own lengths and flags are wrong, or there is another number of messages than one."""
    path, data = _some(random_source)
    body = random_source.choice(
        (
            b"",
            b"\x00",
            struct.pack(">BI", 0, 2**32 - 1) + data,
            struct.pack(">BI", 0, len(data) + 5) + data,
            message(data, 1),
            message(data, 255),
            message(data) * 2,
            message(data) * 300,
            message(b""),
        )
    )
    return call(path, body)


def wrong_method(random_source: Random) -> bytes:
    path = random_source.choice(tuple(METHODS))
    service = path.split("/")[1]
    wrong = random_source.choice(
        (
            "/",
            "",
            path[1:],
            path + "/",
            f"/{service}/Nothing",
            f"/{service}",
            "/x" * 3_000,
            path.lower(),
            path + "\x00",
        )
    )
    return call(wrong, message(b""))


def much_metadata(random_source: Random) -> bytes:
    path, data = _some(random_source)
    more = random_source.choice(
        (
            field(b"x", b"y" * random_source.choice((1_000, 8_000, 15_000))),
            b"".join(field(b"x%d" % each, b"y") for each in range(random_source.choice((10, 300, 1_000)))),
            field(b"x-bin", b"!!!not base64!!!"),
            field(b"grpc-timeout", random_source.choice((b"1n", b"99999999H", b"0S", b"-1S", b"x", b""))),
            field(b"grpc-encoding", random_source.choice((b"gzip", b"deflate", b"nothing", b"\xff"))),
            field(b"Upper", b"case") + field(b":late", b"pseudo"),
            field(b"authorization", b"\xff\x00\r\n"),
        )
    )
    return call(path, message(data), more)


def long_message(random_source: Random) -> bytes:
    """As long as gRPC takes it by default, and longer; of the shortest elements."""
    path = random_source.choice(tuple(METHODS))
    return call(path, _long(path, random_source.choice((60_000, 250_000, 1_000_000, 4_194_000, 4_400_000))))


@cache
def _long(path: str, size: int) -> bytes:
    repeated = [each for each in METHODS[path].fields if each.is_repeated]
    if not repeated:
        return message(b"\x08\x01" * (size // 2))
    element = bytearray()
    each = repeated[0]
    number = each.number << 3 | (2 if each.type != FieldDescriptor.TYPE_ENUM else 0)
    element += bytes((number, 0))
    return message(bytes(element) * (size // 2))


def changed_stream(random_source: Random) -> bytes:
    whole = OPENING + b"".join(
        moved(sound_call(random_source), 2 * each + 1) for each in range(random_source.randint(1, 4))
    )
    return mutated([whole], random_source)


def changed_frames(random_source: Random) -> bytes:
    """Behind a sound opening."""
    return OPENING + mutated([sound_call(random_source), much_metadata(random_source)], random_source)


def frames(random_source: Random) -> bytes:
    """Of any kind, flags and stream, with any payload."""
    out = bytearray(OPENING)
    for _ in range(random_source.choice((1, 3, 10))):
        kind, flags = (
            random_source.choice((*range(11), 255)),
            random_source.choice((0, 1, 4, 5, 8, 0x20, 255)),
        )
        stream = random_source.choice((0, 0, 1, 1, 2, 3, 2**31 - 1))
        out += frame(
            kind,
            flags,
            stream,
            random_source.randbytes(random_source.choice((0, 1, 4, 5, 6, 8, 100, 16_384))),
        )
    return bytes(out)


def flood(random_source: Random) -> bytes:
    """Many small frames: pings, settings, empty data, resets (CVE-2023-44487), headers that go on and on."""
    count = random_source.choice((10, 200, 2_000))
    opened = frame(HEADERS, END_HEADERS, 1, headers(b"/kquorum.v1.Inspect/Image"))
    match random_source.randrange(6):
        case 0:
            return OPENING + frame(PING, 0, 0, bytes(8)) * count
        case 1:
            return OPENING + frame(SETTINGS, 0, 0, b"") * count
        case 2:
            return OPENING + opened + frame(DATA, 0, 1, b"") * count
        case 3:
            begun = frame(HEADERS, 0, 1, headers(b"/kquorum.v1.Inspect/Image"))
            return OPENING + begun + frame(CONTINUATION, 0, 1, field(b"x", b"y")) * count
        case 4:
            return OPENING + frame(WINDOW_UPDATE, 0, 0, b"\x00\x00\x00\x01") * count
        case _:
            one = opened + frame(RST_STREAM, 0, 1, b"\x00\x00\x00\x08")
            return OPENING + b"".join(moved(one, 2 * each + 1) for each in range(min(count, 300)))


def cut_call(random_source: Random) -> bytes:
    whole = OPENING + sound_call(random_source)
    return whole[: random_source.randrange(1, len(whole))]


def garbage(random_source: Random) -> bytes:
    return random_source.choice((b"", PREFACE)) + random_source.randbytes(
        random_source.choice((1, 9, 50, 2_000))
    )


_KINDS = (
    ("a sound call", sound_call, After.ANSWER),
    ("a changed message", changed_call, After.ANSWER),
    ("a message of random bytes", garbage_call, After.ANSWER),
    ("odd lengths of messages", odd_lengths, After.ANSWER),
    ("a method that is not there", wrong_method, After.ANSWER),
    ("much metadata", much_metadata, After.ANSWER),
    ("a long message", long_message, After.ANSWER),
    ("changed bytes in a stream", changed_stream, None),
    ("changed frames", changed_frames, None),
    ("any frames", frames, None),
    ("a flood of frames", flood, None),
    ("a call that is cut", cut_call, None),
    ("random bytes", garbage, None),
    ("another protocol", other_protocol_bytes, None),
)
_WEIGHTS = (250, 250, 80, 50, 40, 40, 3, 60, 60, 40, 20, 60, 30, 10)


class GrpcInputs:
    def __init__(self, seed: int) -> None:
        self._seed = seed

    def make(self, number: int) -> Input:
        random_source = Random(f"grpc {self._seed} {number}")
        kind, make, after = random_source.choices(_KINDS, _WEIGHTS)[0]
        return Input(
            kind,
            make(random_source),
            after if after is not None else random_source.choice((After.END, After.RESET)),
        )
