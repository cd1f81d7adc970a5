"""Kafka's names and numbers of protocols and mechanisms; imported where TLS itself is not wanted."""

from collections.abc import Mapping
from typing import Final

PLAINTEXT: Final = 0
SSL: Final = 1
SASL_PLAINTEXT: Final = 2
SASL_SSL: Final = 3

PROTOCOLS: Final[Mapping[str, int]] = {
    "PLAINTEXT": PLAINTEXT,
    "SSL": SSL,
    "SASL_PLAINTEXT": SASL_PLAINTEXT,
    "SASL_SSL": SASL_SSL,
}
WITH_TLS: Final = frozenset({SSL, SASL_SSL})
WITH_SASL: Final = frozenset({SASL_PLAINTEXT, SASL_SSL})

PLAIN: Final = "PLAIN"
# SCRAM mechanism -> Python's name of its hash.
SCRAM_HASHES: Final[Mapping[str, str]] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS: Final = (PLAIN, *SCRAM_HASHES)
