"""Salt and iterations for a user that does not exist, such as an existing user might have.

Every client can ask for both before it gives a password. So they must look like those of existing users, be the same at
each request, and stay the same when other users come and go.
"""

import hashlib
import hmac
import math
import secrets

from kquorum.network.security.names import SCRAM_HASHES
from kquorum.network.security.scram import ScramKeys
from kquorum.wire.salt_forms import FormCounts, SaltForm

_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"
# Kafka's tools write so many random bits in base 36.
_SALT_BITS = 130

AS_KAFKA = SaltForm()


def new_salt() -> bytes:
    return _in_base_36(secrets.randbits(_SALT_BITS))


def unknown_user_credentials(mechanism: str, name: str, form: SaltForm, pepper: bytes) -> ScramKeys:
    """Keys that no proof fits."""
    seed = hmac.digest(pepper, f"{mechanism}:{name}".encode(), "sha512")
    if form.raw_bytes is None:
        salt = _in_base_36(int.from_bytes(seed) >> (8 * len(seed) - _SALT_BITS))
    else:
        salt = hashlib.shake_256(seed).digest(form.raw_bytes)
    nothing = bytes(hashlib.new(SCRAM_HASHES[mechanism]).digest_size)
    return ScramKeys(salt=salt, stored_key=nothing, server_key=nothing, iterations=form.iterations)


def form_for(name: str, counts: FormCounts, pepper: bytes) -> SaltForm:
    """The form that a name's salt would have: each form as likely as it is frequent, by a draw that nothing but the
    pepper reveals. The highest draw wins, so that one more user of a form changes it for few names, and only
    towards that form. The cost grows with the number of forms, which is small, not with the number of users."""
    if not counts:
        return AS_KAFKA
    return max(counts.items(), key=lambda each: _draw(name, each[0], pepper) / each[1])[0]


def _draw(name: str, form: SaltForm, pepper: bytes) -> float:
    """The logarithm of an even draw between 0 and 1: divided by weights, the highest is each one's with a chance of
    its weight (weighted rendezvous hashing)."""
    drawn = hmac.digest(pepper, f"form {form.raw_bytes} {form.iterations} of {name}".encode(), "sha256")
    return math.log((int.from_bytes(drawn[:8]) + 1) / (2**64 + 1))


def _in_base_36(number: int) -> bytes:
    digits = bytearray()
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return bytes(reversed(digits)) or _DIGITS[:1]
