"""SCRAM (RFC 5802, RFC 7677) as Kafka speaks it: the messages and the arithmetic that both sides share.

No channel binding. User names and passwords go in as they are, in UTF-8: Kafka does not prepare them (SASLprep).
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from kquorum.network.security.names import SCRAM_HASHES as HASHES
from kquorum.wire.salt_forms import MIN_ITERATIONS as MIN_ITERATIONS

# A server must not make its clients compute for minutes (Kafka's own limit for credentials is 16384).
MAX_ITERATIONS = 10_000_000
GS2_HEADER = "n,,"
# Of one message. Three are the rule, four Kafka's; before a peer is known it may send half a MiB of them.
_MAX_ATTRIBUTES = 64
# Of one message. A server keeps several copies of it until the client's next one, in up to four bytes a character: half
# a MiB took 8 MB for each connection, before any login.
MAX_MESSAGE_BYTES = 4_096
_CHANNEL_BINDING = "biws"  # base64 of "n,,"


class ScramError(Exception):
    """The exchange cannot go on; the message holds no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramKeys:
    """What a server keeps of a password: enough to check a proof, not to make one."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """`bare` is the part that is signed, `gs2_header` what stands before it; `extensions` are Kafka's
    (`tokenauth=true`)."""

    username: str
    nonce: str
    bare: str
    authorization_id: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)
    gs2_header: str = GS2_HEADER


@dataclass(frozen=True, slots=True)
class ClientFinal:
    without_proof: str
    nonce: str
    proof: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ServerFirst:
    nonce: str
    salt: bytes
    iterations: int
    text: str


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Hi() of RFC 5802: the only costly step, and the client's alone."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def keys_of(mechanism: str, password: str, salt: bytes, iterations: int) -> ScramKeys:
    return keys_of_salted(mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations)


def keys_of_salted(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramKeys:
    name = HASHES[mechanism]
    stored_key = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
    server_key = hmac.digest(salted, b"Server Key", name)
    return ScramKeys(salt=salt, stored_key=stored_key, server_key=server_key, iterations=iterations)


def signature(mechanism: str, key: bytes, message: str) -> bytes:
    return hmac.digest(key, message.encode(), HASHES[mechanism])


def xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def parse_client_first(data: bytes) -> ClientFirst:
    """Raises ScramError."""
    text = _text(data)
    flag, comma, rest = text.partition(",")
    authorization, second_comma, bare = rest.partition(",")
    if not comma or not second_comma or flag[:1] not in ("n", "y", "p"):
        raise ScramError("the client's first message does not begin with n,,")
    if flag not in ("n", "y"):
        raise ScramError("channel binding is not supported")
    if authorization and not authorization.startswith("a="):
        raise ScramError("the client's first message has a bad authorization identity")
    attributes = _attributes(bare)
    if [name for name, _ in attributes[:2]] != ["n", "r"] or not attributes[1][1]:
        raise ScramError("the client's first message lacks a user name or a nonce")
    return ClientFirst(
        decode_name(attributes[0][1]),
        attributes[1][1],
        bare,
        decode_name(authorization[2:]),
        dict(attributes[2:]),
        f"{flag},{authorization},",
    )


def parse_server_first(data: bytes) -> ServerFirst:
    """Raises ScramError."""
    text = _text(data)
    attributes = _attributes(text)
    if attributes and attributes[0][0] == "e":
        raise ScramError(f"the server refuses: {attributes[0][1]}")
    if [name for name, _ in attributes[:3]] != ["r", "s", "i"]:
        raise ScramError("the server's first message lacks nonce, salt or iterations")
    nonce, salt, iterations = (value for _, value in attributes[:3])
    if not iterations.isascii() or not iterations.isdigit() or len(iterations) > len(str(MAX_ITERATIONS)):
        raise ScramError("the server's first message has a bad number of iterations")
    return ServerFirst(nonce, _base64(salt), int(iterations), text)


def parse_client_final(data: bytes, client_first: ClientFirst) -> ClientFinal:
    """Raises ScramError, also for a channel binding other than that of the first message."""
    text = _text(data)
    without_proof, separator, proof = text.rpartition(",p=")
    attributes = _attributes(without_proof)
    if not separator or [name for name, _ in attributes[:2]] != ["c", "r"]:
        raise ScramError("the client's final message lacks channel binding, nonce or proof")
    if attributes[0][1] != to_base64(client_first.gs2_header.encode()):
        raise ScramError("the client's final message has another channel binding than its first one")
    return ClientFinal(without_proof, attributes[1][1], _base64(proof))


def encode_name(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def decode_name(text: str) -> str:
    """Raises ScramError for an `=` that begins no escape."""
    decoded = text.replace("=2C", ",").replace("=3D", "\0")
    if "=" in decoded or "\0" in text:
        raise ScramError("the user name is not encoded as RFC 5802 has it")
    return decoded.replace("\0", "=")


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def client_final_without_proof(nonce: str) -> str:
    return f"c={_CHANNEL_BINDING},r={nonce}"


def _text(data: bytes) -> str:
    if len(data) > MAX_MESSAGE_BYTES:
        raise ScramError(f"a message has {len(data)} bytes; {MAX_MESSAGE_BYTES} are the most")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ScramError("a message is not UTF-8") from None


def _attributes(text: str) -> list[tuple[str, str]]:
    if text.count(",") >= _MAX_ATTRIBUTES:
        raise ScramError(f"a message has more than {_MAX_ATTRIBUTES} attributes")
    parts = [part.partition("=") for part in text.split(",")]
    if not all(name and separator for name, separator, _ in parts):
        raise ScramError("a message is not a list of attributes")
    return [(name, value) for name, _, value in parts]


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ScramError("a message holds what is not base64") from None
