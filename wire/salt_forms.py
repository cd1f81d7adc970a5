"""The form of the salt of a SCRAM credential. A server sends the salt to every client, before authentication.

A user without a credential is answered with a salt of a form that others have
(network.security.unknown_user_credentials), so the metadata count the forms beside the credentials.
"""

from dataclasses import dataclass

from immutables import Map

MIN_ITERATIONS = 4096  # RFC 7677, and Kafka's ScramMechanism
_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"
# Kafka's tools write 130 random bits in base 36: mostly 25 or 26 digits, seldom fewer.
_SALT_DIGITS = range(22, 27)


@dataclass(frozen=True, slots=True)
class SaltForm:
    """`raw_bytes` is the length of a salt of any bytes; None: digits, as in the salts of Kafka's tools and ours."""

    raw_bytes: int | None = None
    iterations: int = MIN_ITERATIONS


# How many users have salts of each form.
FormCounts = Map[SaltForm, int]


def form_of(salt: bytes, iterations: int) -> SaltForm:
    is_kafkas = len(salt) in _SALT_DIGITS and not salt.strip(_DIGITS)
    return SaltForm(None if is_kafkas else len(salt), iterations)
