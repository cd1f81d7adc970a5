"""The keys that a file of `--command-config` may hold. Kafka's clients ignore unknown keys; a command warns of them."""

from collections.abc import Iterator, Mapping

from kquorum.wire.near_names import near_names

# What a command makes use of.
USED_KEYS = frozenset(
    """
    security.protocol sasl.mechanism sasl.jaas.config ssl.keystore.type ssl.keystore.location ssl.keystore.key
    ssl.keystore.certificate.chain ssl.key.password ssl.truststore.type ssl.truststore.location
    ssl.truststore.certificates ssl.endpoint.identification.algorithm ssl.enabled.protocols
    """.split()  # noqa: SIM905 - a paragraph of names reads better than a column of strings
)
# Kafka's clients and brokers know them too (SslConfigs, SaslConfigs, SecurityConfig); a file may be for both.
_PASSED_OVER = frozenset(
    """
    security.providers ssl.protocol ssl.provider ssl.cipher.suites ssl.keystore.password ssl.truststore.password
    ssl.keymanager.algorithm ssl.trustmanager.algorithm ssl.secure.random.implementation ssl.engine.factory.class
    ssl.client.auth ssl.principal.mapping.rules ssl.allow.dn.changes ssl.allow.san.changes
    security.inter.broker.protocol sasl.enabled.mechanisms sasl.mechanism.inter.broker.protocol
    sasl.mechanism.controller.protocol
    """.split()  # noqa: SIM905 - a paragraph of names reads better than a column of strings
)
# Login callbacks, Kerberos and OAuth have dozens, which grow with Kafka.
_FAMILIES = ("sasl.client.", "sasl.kerberos.", "sasl.login.", "sasl.oauthbearer.", "sasl.server.")
_OURS = ("security.", "ssl.", "sasl.")
_CLOSE = 0.85


def doubtful_keys(keys: Mapping[str, str]) -> Iterator[str]:
    """A line for each key that looks like one for security and is none, and for a login that is not used."""
    for key in keys:
        if key in USED_KEYS or key in _PASSED_OVER or key.startswith(_FAMILIES):
            continue
        found = near_names(key, USED_KEYS, 1, cutoff=0.6 if key.startswith(_OURS) else _CLOSE)
        if found or key.startswith(_OURS):
            yield f"unknown key {key}" + (f" (did you mean {found[0]}?)" if found else "")
    protocol = keys.get("security.protocol", "PLAINTEXT").strip().upper()
    logins = [key for key in ("sasl.mechanism", "sasl.jaas.config") if key in keys]
    if logins and protocol in ("PLAINTEXT", "SSL"):
        yield f"{' and '.join(logins)} without effect: security.protocol is {protocol}, without SASL"
