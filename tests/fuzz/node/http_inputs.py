"""What is thrown at the listener of the metrics: HTTP, and what is nearly that."""

from random import Random

from tests.fuzz.listener.inputs import After, Input, other_protocol_bytes
from tests.fuzz.mutation import mutated

_METHODS = (
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PATCH",
    "get",
    "G" * 300,
    "",
)
_PATHS = (
    "/metrics",
    "/healthz",
    "/healthz?live",
    "/livez",
    "/",
    "/../../etc/passwd",
    "/metrics?" + "&name[]=x" * 500,
    "/%00%ff%2e%2e",
    "//metrics",
    "*",
    "http://127.0.0.1/metrics",
    "/" + "a" * 8_000,
    "",
)
_VERSIONS = ("HTTP/1.1", "HTTP/1.0", "HTTP/1.9", "HTTP/2.0", "HTTP/0.9", "", "HTTP/1.1 x")
_HEADERS = (
    "Host: 127.0.0.1",
    "Accept: application/openmetrics-text; version=1.0.0; charset=utf-8",
    "Accept: " + "text/plain;q=0.1," * 400,
    "Accept: application/openmetrics-text; version=" + "1." * 500 + "; escaping=allow-utf-8",
    "Content-Length: 18446744073709551616",
    "Transfer-Encoding: chunked",
    "Connection: keep-alive, Upgrade, HTTP2-Settings",
    "Upgrade: h2c",
    "Range: bytes=0-,0-,0-",
    "Expect: 100-continue",
    "Cookie: " + "a" * 4_000,
    "no colon",
    ": no name",
    " folded: line",
    "X: \xff\x00\x7f",
)


def request(random_source: Random) -> bytes:
    lines = [
        f"{random_source.choice(_METHODS)} {random_source.choice(_PATHS)} {random_source.choice(_VERSIONS)}"
    ]
    lines += random_source.choices(_HEADERS, k=random_source.choice((0, 1, 2, 5, 30)))
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def sound(random_source: Random) -> bytes:
    """What scrapers and load balancers ask."""
    path = random_source.choice(("/metrics", "/metrics", "/healthz", "/healthz?live", "/livez"))
    header = random_source.choice(_HEADERS[:2])
    return f"{random_source.choice(('GET', 'HEAD'))} {path} HTTP/1.1\r\n{header}\r\n\r\n".encode()


def changed(random_source: Random) -> bytes:
    return mutated([request(random_source), sound(random_source)], random_source)


def many_headers(random_source: Random) -> bytes:
    """About as many as fit, or more."""
    line = random_source.choice((b"a:\r\n", b":\r\n", b"Accept: text/plain\r\n", b"x\r\n"))
    size = random_source.choice((4_000, 8_000, 8_192, 9_000, 100_000))
    return b"GET /metrics HTTP/1.1\r\n" + line * (size // len(line)) + b"\r\n"


def pipelined(random_source: Random) -> bytes:
    return sound(random_source) * random_source.randint(2, 200)


def endless(random_source: Random) -> bytes:
    return b"GET /" + random_source.randbytes(random_source.choice((10, 8_192, 200_000))).replace(
        b"\r\n\r\n", b""
    )


def garbage(random_source: Random) -> bytes:
    return random_source.randbytes(random_source.choice((1, 4, 20, 200, 20_000)))


_KINDS = (
    ("a request of odd parts", request, None),
    ("a sound request", sound, After.SILENCE),
    ("a changed request", changed, None),
    ("many headers", many_headers, None),
    ("pipelined requests", pipelined, After.SILENCE),
    ("a request line without an end", endless, None),
    ("random bytes", garbage, None),
    ("another protocol", other_protocol_bytes, None),
    ("a request that stops", endless, After.SILENCE),
    ("a request in drops", endless, After.DRIP),
)
_WEIGHTS = (250, 100, 350, 40, 10, 40, 100, 30, 1, 1)


class HttpInputs:
    def __init__(self, seed: int) -> None:
        self._seed = seed

    def make(self, number: int) -> Input:
        random_source = Random(f"http {self._seed} {number}")
        kind, make, after = random_source.choices(_KINDS, _WEIGHTS)[0]
        return Input(
            kind,
            make(random_source),
            after if after is not None else random_source.choice((After.END, After.RESET)),
        )
