"""Which config keys hold secrets.

Kafka knows it from the type PASSWORD in each component's `ConfigDef`; a log does not say which components wrote it,
and plugins (tiered storage, authorizers) bring keys of their own. So the name decides, and in doubt it is a secret.
"""

import re

# Kafka's keys of type PASSWORD whose names say nothing of a secret (KIP-651: PEM material inline).
PEM_KEYS = ("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.truststore.certificates")
TOKEN_KEYS = ("delegation.token.master.key",)

SECRET_WORDS = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "jaas.config",
    "private.key",
    "access.key",
    "account.key",
    "api.key",
    "credential",
    "connection.string",
    "basic.auth.user.info",
    "bearer.auth",
    "client.assertion",
    "session.key",
    "encryption.key",
    "decryption.key",
    "signing.key",
    "master.key",
    "shared.key",
    "secret.key",
    "license",
)
SECRET_ENDS = ("token", "pwd")

# What describes a secret without being one: where it lies, how it is encoded, whom it belongs to.
HARMLESS_ENDS = (
    ".class",
    ".client.id",
    ".enable",
    ".enabled",
    ".file",
    ".location",
    ".ms",
    ".path",
    ".scope",
    ".type",
)
HARMLESS_PREFIXES = ("password.encoder.",)
ENCODER_SECRETS = ("password.encoder.secret", "password.encoder.old.secret")

_CAMEL_EDGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[-_]")


def is_sensitive_config(name: str) -> bool:
    """Whether the value of config key `name` must not be shown; listener prefixes and any spelling of words count."""
    plain = _SEPARATORS.sub(".", _CAMEL_EDGE.sub(".", name)).lower()
    if plain in ENCODER_SECRETS or plain.endswith(PEM_KEYS + TOKEN_KEYS):
        return True
    if plain.startswith(HARMLESS_PREFIXES) or plain.endswith(HARMLESS_ENDS):
        return False
    return plain.endswith(SECRET_ENDS) or any(word in plain for word in SECRET_WORDS)
