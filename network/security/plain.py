"""SASL/PLAIN (RFC 4616): the password itself crosses the wire, so it belongs on TLS or on loopback."""

import hashlib
import hmac
from collections.abc import Mapping


class PlainError(Exception):
    """The message holds no secret."""


def encode_plain(username: str, password: str) -> bytes:
    return b"\0".join((b"", username.encode(), password.encode()))


def check_plain(data: bytes, users: Mapping[str, str]) -> str:
    """The name of the user whose password this is.

    Raises PlainError. Whether a user exists, and how much of a password is right, does not show in the time taken.
    """
    try:
        parts = data.decode().split("\0", 3)
    except UnicodeDecodeError:
        raise PlainError("the message is not UTF-8") from None
    if len(parts) != 3 or not parts[1] or not parts[2]:
        raise PlainError("the message is not authorization id, user name and password")
    authorization_id, username, password = parts
    known = users.get(username)
    is_right = hmac.compare_digest(_digest(password), _digest(known or ""))
    if known is None or not is_right:
        raise PlainError("no such user" if known is None else "wrong password")
    if authorization_id not in ("", username):
        raise PlainError("a client may act for itself only")
    return username


def _digest(text: str) -> bytes:
    """Of one length for all, so that comparing tells nothing of the length."""
    return hashlib.sha256(text.encode()).digest()
