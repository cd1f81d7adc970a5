"""What is thrown: bytes, and how the connection goes on after them. The same seed and number make the same input."""

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from random import Random

from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.primitives import write_uvarint
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import is_flexible, supported_versions
from kquorum.wire.protocol.frames import encode_frame
from kquorum.wire.protocol.headers import encode_request_header
from tests.fuzz.mutation import mutated
from tests.support.hostile_requests import HostileRequests
from tests.support.kio.classes import request_class
from tests.support.kio.entities import build
from tests.support.kio.frames import encode_request
from tests.support.kio.plans import plan_of
from tests.support.wire_values import fullest, least

MAX_FRAME_BYTES = 1_000_000
_SOUND_OF_EACH = 40
# HostileRequests makes no requests of these.
_WITH_OTHER_VALUES = frozenset({ApiKey.PRODUCE, ApiKey.SASL_HANDSHAKE})
Versions = Mapping[ApiKey, tuple[int, int]]


class After(Enum):
    """How a connection goes on after an input."""

    ANSWER = auto()  # the input is whole: a valid request behind it is answered, or the server closes
    END = auto()  # the peer ends its side, and the server closes
    RESET = auto()  # the peer resets the connection
    SILENCE = auto()  # nothing more comes, and the server closes in its own time
    DRIP = auto()  # a byte now and then comes, and the server closes in its own time
    DEAF = auto()  # the answers are not taken for longer than the server allows; then the peer goes away


@dataclass(frozen=True, slots=True)
class Input:
    kind: str
    data: bytes
    after: After


class Inputs:
    def __init__(
        self, offered: Versions, image: MetadataImage, seed: int, cluster_id: str = "the-cluster"
    ) -> None:
        self._offered = tuple(offered.items())
        # In the newest version, which is the flexible one.
        self.flexible = tuple(
            (api_key, highest) for api_key, (_, highest) in offered.items() if is_flexible(api_key, highest)
        )
        self._seed = seed
        self._sound = tuple(_sound_requests(offered, image, seed, cluster_id))

    def make(self, number: int) -> Input:
        random_source = Random(f"listener {self._seed} {number}")
        kind, make, after = random_source.choices(_KINDS, _WEIGHTS)[0]
        return Input(
            kind,
            make(self, random_source),
            after if after is not None else random_source.choice((After.END, After.RESET)),
        )

    def an_api(self, random_source: Random) -> tuple[ApiKey, int]:
        api_key, versions = random_source.choice(self._offered)
        return api_key, random_source.randint(*versions)

    def a_request(self, random_source: Random) -> bytes:
        """Sound, with fields that may be anything; of any version that we can read."""
        return random_source.choice(self._sound)


def _sound_requests(offered: Versions, image: MetadataImage, seed: int, cluster_id: str) -> Iterator[bytes]:
    hostile = HostileRequests(seed, cluster_id, "the-secret")
    for api_key, (lowest, highest) in offered.items():
        for version in range(lowest, highest + 1):
            yield full_request(api_key, version)
            yield least_request(api_key, version)
        for number in range(0 if api_key in _WITH_OTHER_VALUES else _SOUND_OF_EACH):
            version = hostile.random.randint(lowest, highest)
            body = hostile.request(api_key, version, image)
            yield encode_request(api_key, version, number, (None, "", "fuzz")[number % 3], body)


@cache
def full_request(api_key: ApiKey, version: int) -> bytes:
    return encode_request(api_key, version, 7, "fuzz", fullest(plan_of(request_class(api_key, version))))


@cache
def least_request(api_key: ApiKey, version: int) -> bytes:
    return encode_request(api_key, version, 7, None, least(plan_of(request_class(api_key, version))))


def random_bytes(_inputs: Inputs, random_source: Random) -> bytes:
    return random_source.randbytes(random_source.choice((1, 3, 4, 5, 20, 200, 2000)))


def other_protocol(_inputs: Inputs, random_source: Random) -> bytes:
    return other_protocol_bytes(random_source)


def other_protocol_bytes(random_source: Random) -> bytes:
    return random_source.choice(_OTHER_PROTOCOLS)


def bad_length(inputs: Inputs, random_source: Random) -> bytes:
    length = random_source.choice(
        (0, -1, -(2**31), MAX_FRAME_BYTES + 1, 2**31 - 1, -random_source.getrandbits(31))
    )
    return struct.pack(">i", length) + inputs.a_request(random_source)


def truncated(inputs: Inputs, random_source: Random) -> bytes:
    frame = encode_frame(inputs.a_request(random_source))
    return frame[: random_source.randrange(1, len(frame))]


def many_and_a_cut(inputs: Inputs, random_source: Random) -> bytes:
    frames = b"".join(
        encode_frame(inputs.a_request(random_source)) for _ in range(random_source.randint(1, 5))
    )
    return frames[: random_source.randrange(1, len(frames))]


def oversized(_inputs: Inputs, random_source: Random) -> bytes:
    """A valid length; only the beginning of the frame comes."""
    return struct.pack(">i", random_source.randint(100_000, MAX_FRAME_BYTES)) + random_source.randbytes(
        random_source.randrange(100)
    )


def garbage_body(inputs: Inputs, random_source: Random) -> bytes:
    api_key, version = inputs.an_api(random_source)
    header = encode_request_header(api_key, version, random_source.getrandbits(31), "fuzz")
    return encode_frame(header + random_source.randbytes(random_source.choice((0, 1, 2, 8, 40, 300))))


def hostile_lengths(inputs: Inputs, random_source: Random) -> bytes:
    """Counts and lengths which claim far more than there is."""
    api_key, version = inputs.an_api(random_source)
    header = encode_request_header(api_key, version, 1, None)
    claim = random_source.choice(
        (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\x00\x0f\xff\xff")
    )
    return encode_frame(header + bytes(random_source.randrange(12)) + claim * random_source.randint(1, 5))


def flood_of_tags(inputs: Inputs, random_source: Random) -> bytes:
    """Tagged fields that mean nothing, a few bytes each, in the header or behind the body."""
    api_key, version = random_source.choice(inputs.flexible)
    flood = _tags(random_source.choice((1, 64, 65, 3000, 150_000, 250_000)), random_source.random() < 0.8)
    if random_source.random() < 0.5:
        header = encode_request_header(api_key, version, 1, None)
        return encode_frame(header[:-1] + flood + least_request(api_key, version)[len(header) :])
    return encode_frame(least_request(api_key, version)[:-1] + flood)


@cache
def _tags(count: int, is_ascending: bool) -> bytes:
    out = bytearray()
    write_uvarint(out, count)
    for number in range(count):
        # Above all that are known.
        write_uvarint(out, 10_000 + (number if is_ascending else 0))
        out.append(0)
    return bytes(out)


def flood_of_elements(_inputs: Inputs, random_source: Random) -> bytes:
    """Empty names, a byte each."""
    out = bytearray(encode_request_header(ApiKey.DELETE_GROUPS, 2, 1, None))
    count = random_source.choice((1000, 20_000, 250_000))
    write_uvarint(out, count + 1)
    return encode_frame(bytes(out) + b"\x01" * count + b"\x00")


def any_header(_inputs: Inputs, random_source: Random) -> bytes:
    """An API and version that may not exist."""
    api_key = random_source.choice((random_source.randint(-5, 100), random_source.randint(-32768, 32767)))
    version = random_source.choice((random_source.randint(-2, 20), random_source.randint(-32768, 32767)))
    client_id = random_source.choice(
        (b"\xff\xff", b"\x00\x00", b"\x00\x04fuzz", b"\x7f\xff", b"\x80\x00", b"\x00\x02\xff\xfe")
    )
    return encode_frame(
        struct.pack(">hhi", api_key, version, 5)
        + client_id
        + random_source.randbytes(random_source.randrange(30))
    )


def mutated_request(inputs: Inputs, random_source: Random) -> bytes:
    return encode_frame(mutated(_sound(inputs, random_source), random_source) or b"\x00")


def mutated_stream(inputs: Inputs, random_source: Random) -> bytes:
    """The lengths of the frames among what may be changed."""
    return mutated([encode_frame(request) for request in _sound(inputs, random_source)], random_source)


def _sound(inputs: Inputs, random_source: Random) -> list[bytes]:
    api_key, version = inputs.an_api(random_source)
    return [full_request(api_key, version), least_request(api_key, version), inputs.a_request(random_source)]


def sound_request(inputs: Inputs, random_source: Random) -> bytes:
    return encode_frame(inputs.a_request(random_source))


def pipelined(inputs: Inputs, random_source: Random) -> bytes:
    return b"".join(
        encode_frame(inputs.a_request(random_source)) for _ in range(random_source.randint(2, 12))
    )


def repeated(_inputs: Inputs, random_source: Random) -> bytes:
    """One request again and again, for more answers than the kernel has room for: all configs of a broker."""
    version = supported_versions(ApiKey.DESCRIBE_CONFIGS)[1]
    cls = request_class(ApiKey.DESCRIBE_CONFIGS, version)
    resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": None}
    asked = {"resources": [resource], "include_synonyms": True, "include_documentation": True}
    request = encode_request(ApiKey.DESCRIBE_CONFIGS, version, 1, "deaf", build(cls, asked))
    return encode_frame(request) * random_source.randint(50, 150)


def large(_inputs: Inputs, random_source: Random) -> bytes:
    """A frame of about the largest size, whole, of an API that does not exist."""
    return encode_frame(
        struct.pack(">hhi", 999, 0, 1) + bytes(random_source.randint(500_000, MAX_FRAME_BYTES - 8))
    )


def large_and_cut(inputs: Inputs, random_source: Random) -> bytes:
    return large(inputs, random_source)[: random_source.randint(200_000, 500_000)]


_OTHER_PROTOCOLS = (
    b"GET / HTTP/1.0\r\n\r\n",
    b"OPTIONS * RTSP/1.0\r\n\r\n",
    b"HELP\r\n",
    b"\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"EHLO fuzz\r\n",
    b"\x80\x00\x00\x28\x72\xfe\x1d\x13\x00\x00\x00\x00\x00\x00\x00\x02\x00\x01\x86\xa0",
    b"\x00\x1e\x00\x06\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07version\x04bind\x00\x00\x10\x00\x03",
    b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(range(160)),
    b"\x00\x00\x00\xa4\xff\x53\x4d\x42\x72\x00\x00\x00\x00\x08\x01\x40" + bytes(60),
    b"\x03\x00\x00\x0b\x06\xe0\x00\x00\x00\x00\x00",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    b"*1\r\n$4\r\nPING\r\n",
    b"\x00\x00\x00\x17\x00\x03\x00\x00user\x00postgres\x00\x00",
)

_Make = Callable[[Inputs, Random], bytes]
_KINDS: tuple[tuple[str, _Make, After | None], ...] = (
    ("random bytes", random_bytes, None),
    ("another protocol", other_protocol, None),
    ("a bad length", bad_length, None),
    ("a truncated request", truncated, None),
    ("requests and a cut", many_and_a_cut, None),
    ("a frame that does not come", oversized, None),
    ("changed bytes in a stream", mutated_stream, None),
    ("a garbage body", garbage_body, After.ANSWER),
    ("hostile lengths", hostile_lengths, After.ANSWER),
    ("any header", any_header, After.ANSWER),
    ("a flood of tagged fields", flood_of_tags, After.ANSWER),
    ("a flood of elements", flood_of_elements, After.ANSWER),
    ("a changed request", mutated_request, After.ANSWER),
    ("a sound request", sound_request, After.ANSWER),
    ("pipelined requests", pipelined, After.ANSWER),
    ("a half-open connection", truncated, After.SILENCE),
    ("a frame in drops", oversized, After.DRIP),
    ("a large frame that stops", large_and_cut, After.SILENCE),
    ("a large frame", large, After.ANSWER),
    ("a deaf peer", repeated, After.DEAF),
)
_WEIGHTS = (60, 30, 30, 60, 30, 20, 60, 160, 60, 50, 25, 2, 260, 140, 30, 4, 2, 2, 10, 0.2)
