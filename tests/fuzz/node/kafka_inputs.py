"""What is thrown at a listener of Kafka's protocol on top of `tests.fuzz.listener.inputs`: long arrays, and logins."""

from functools import lru_cache
from random import Random

from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.frames import encode_frame
from tests.fuzz.listener.inputs import After, Input, Inputs, Versions
from tests.fuzz.mutation import mutated
from tests.support.kio.classes import request_class
from tests.support.kio.entities import build
from tests.support.kio.frames import encode_request
from tests.support.network.long_bodies import LongArray, long_arrays

_LONG_SHARE = 0.003
# Below and above what the costly APIs may have.
_LENGTHS = (300, 1_900, 4_000)
_LOGIN_SHARE = 0.4
_MECHANISMS = (
    "PLAIN",
    "PLAIN",
    "SCRAM-SHA-256",
    "SCRAM-SHA-256",
    "SCRAM-SHA-512",
    "GSSAPI",
    "",
    "x" * 30_000,
    "\x00",
)
_TOKENS = (
    b"",
    b"\x00",
    b"\x00mallory\x00wrong",
    b"admin\x00mallory\x00a-secret-of-a-test",
    b"\x00" * 500,
    b"n,,n=mallory,r=fyko+d2lbbFgONRv9qkxdawL",
    b"n,a=admin,n=mallory,r=abc",
    b"n,,n=" + b"m" * 30_000 + b",r=x",
    b"n,,n=mallory,r=" + b"r" * 30_000,
    b"n,,n=" + b"=2C=3D" * 5_000 + b",r=x",
    b"y,,n=mallory,r=x,tokenauth=true",
    b"c=biws,r=x,p=" + b"AAAA" * 11,
    b"c=biws,r=" + b"r" * 200_000 + b",p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    b"," * 100_000,
    b"=" * 100_000,
    b"x" * 500_000,
    b"\xff\xfe" * 50,
)


class KafkaInputs:
    def __init__(self, inputs: Inputs, offered: Versions, seed: int, *, logs_in: bool = False) -> None:
        """`logs_in`: many inputs try to log in."""
        self._inputs = inputs
        self._seed = seed
        self._logs_in = logs_in
        self._arrays = [
            array
            for api_key, versions in offered.items()
            for version in sorted(set(versions))
            for array in long_arrays(api_key, version)
        ]

    def make(self, number: int) -> Input:
        random_source = Random(f"kafka {self._seed} {number}")
        share = random_source.random()
        if share < _LONG_SHARE:
            data = _long(random_source.choice(self._arrays), random_source.choice(_LENGTHS))
            return Input("a long array", data, After.ANSWER)
        if self._logs_in and share > 1 - _LOGIN_SHARE:
            return Input("an odd login", _login(random_source), After.ANSWER)
        return self._inputs.make(number)


@lru_cache(maxsize=300)
def _long(array: LongArray, count: int) -> bytes:
    return encode_frame(array.request(count))


def _login(random_source: Random) -> bytes:
    asked = (
        [handshake(random_source.choice(_MECHANISMS), random_source.choice((0, 1)))]
        if random_source.random() < 0.8
        else []
    )
    for _ in range(random_source.choice((0, 1, 1, 2, 3))):
        token = random_source.choice(_TOKENS)
        if len(token) < 1_000 and random_source.random() < 0.5:
            token = mutated([token or b"n,,"], random_source)
        asked.append(authenticate(token) if random_source.random() < 0.9 else token)
    if random_source.random() < 0.1:
        asked = [mutated([each], random_source) for each in asked]
    return b"".join(encode_frame(each or b"\x00") for each in asked) or b"\x00"


def handshake(mechanism: str, version: int = 1) -> bytes:
    cls = request_class(ApiKey.SASL_HANDSHAKE, version)
    return encode_request(ApiKey.SASL_HANDSHAKE, version, 1, "fuzz", build(cls, {"mechanism": mechanism}))


def authenticate(token: bytes) -> bytes:
    cls = request_class(ApiKey.SASL_AUTHENTICATE, 2)
    return encode_request(ApiKey.SASL_AUTHENTICATE, 2, 2, "fuzz", build(cls, {"auth_bytes": token}))
