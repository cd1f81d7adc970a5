"""What a user who does not exist is told: the salt and iterations that somebody who does might have.

Both go to whoever asks, before any password. So they must look like those of the others, be the same whenever they are
asked for, and stay what they are when others come and go.
"""

import hashlib
import hmac
import secrets
from bisect import bisect_left, insort
from dataclasses import dataclass

from network.security.names import SCRAM_HASHES
from network.security.scram import MIN_ITERATIONS, ScramKeys

_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"
# Kafka's tools write so many random bits in base 36: mostly 25 or 26 digits, seldom fewer.
_SALT_BITS = 130
_SALT_DIGITS = range(22, 27)


@dataclass(frozen=True, slots=True)
class SaltForm:
    """`raw_bytes` is the length of a salt of any bytes; None: digits, as in the salts of Kafka's tools and ours."""

    raw_bytes: int | None = None
    iterations: int = MIN_ITERATIONS


AS_KAFKA = SaltForm()


def new_salt() -> bytes:
    return _in_base_36(secrets.randbits(_SALT_BITS))


def form_of(salt: bytes, iterations: int) -> SaltForm:
    is_kafkas = len(salt) in _SALT_DIGITS and not salt.strip(_DIGITS)
    return SaltForm(None if is_kafkas else len(salt), iterations)


def stand_in(mechanism: str, name: str, form: SaltForm, pepper: bytes) -> ScramKeys:
    """Keys that no proof fits."""
    seed = hmac.digest(pepper, f"{mechanism}:{name}".encode(), "sha512")
    if form.raw_bytes is None:
        salt = _in_base_36(int.from_bytes(seed) >> (8 * len(seed) - _SALT_BITS))
    else:
        salt = hashlib.shake_256(seed).digest(form.raw_bytes)
    nothing = bytes(hashlib.new(SCRAM_HASHES[mechanism]).digest_size)
    return ScramKeys(salt=salt, stored_key=nothing, server_key=nothing, iterations=form.iterations)


class Forms:
    """For each name the form of one user's salt. Names and users have places on a ring that only who knows the pepper
    can work out; a name goes by the next user, so that another one more or less changes it for few."""

    def __init__(self, pepper: bytes) -> None:
        self._pepper = pepper
        self._ring: list[tuple[bytes, str]] = []
        self._forms: dict[str, SaltForm] = {}

    def put(self, user: str, form: SaltForm) -> None:
        if user not in self._forms:
            insort(self._ring, (self._place(user), user))
        self._forms[user] = form

    def remove(self, user: str) -> None:
        """One that was put."""
        del self._forms[user]
        del self._ring[bisect_left(self._ring, (self._place(user), user))]

    def of(self, name: str) -> SaltForm:
        if not self._ring:
            return AS_KAFKA
        next_one = bisect_left(self._ring, (self._place(name), ""))
        return self._forms[self._ring[next_one % len(self._ring)][1]]

    def _place(self, name: str) -> bytes:
        return hmac.digest(self._pepper, f"place of {name}".encode(), "sha256")


def _in_base_36(number: int) -> bytes:
    digits = bytearray()
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return bytes(reversed(digits)) or _DIGITS[:1]
