"""TLS contexts from Kafka's `ssl.*` keys, for servers and for clients; TLS 1.2 and 1.3."""

import os
import ssl
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kquorum.network.security.errors import SecurityConfigError
from kquorum.network.security.handshake import ServerContext
from kquorum.network.security.pem import KeyPair, read_key_store, read_trust_store

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
PROTOCOLS_KEY = "ssl.enabled.protocols"
# Of TLS 1.2, those with AEAD and forward secrecy; all suites of TLS 1.3 have both. Java 8 and OpenSSL 1.0.1 know them.
_TLS_1_2_SUITES = "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL"
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
NO_KEY_STORE = "a listener with TLS needs a certificate and its private key: name a PEM file with both"
_WHOM_TO_TRUST = "ssl.client.auth asks clients for certificates, but nothing says which authority to trust"


def server_context(keys: Mapping[str, str]) -> ssl.SSLContext:
    """`keys` are Kafka's keys as they hold for one listener. Raises SecurityConfigError."""
    now_s = time.time()
    pair = read_key_store(keys, now_s)
    if pair is None:
        raise SecurityConfigError("ssl.keystore.location", NO_KEY_STORE)
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    _limit_versions_and_suites(context, keys)
    # A client must not make the server work for it again and again, nor learn anything from lengths.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    _use(context, pair)
    context.verify_mode = _client_auth(keys)
    trusted = read_trust_store(keys, now_s)
    if trusted is not None:
        context.load_verify_locations(cadata=trusted.decode("ascii"))
    elif context.verify_mode is not ssl.CERT_NONE:
        raise SecurityConfigError("ssl.truststore.location", _WHOM_TO_TRUST)
    return context


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The same as PEM, for those who make no context of Python's (gRPC's clients)."""

    pair: KeyPair | None
    trusted: bytes | None


def read_tls_files(keys: Mapping[str, str]) -> TlsFiles:
    """Raises SecurityConfigError."""
    now_s = time.time()
    pair, trusted = read_key_store(keys, now_s), read_trust_store(keys, now_s)
    if _client_auth(keys) is ssl.CERT_REQUIRED and trusted is None:
        raise SecurityConfigError("ssl.truststore.location", _WHOM_TO_TRUST)
    return TlsFiles(pair, trusted)


def http2_context(keys: Mapping[str, str]) -> ssl.SSLContext:
    """As `server_context`, for a listener of HTTP/2, which it names (RFC 9113, 3.2). Raises SecurityConfigError."""
    context = server_context(keys)
    context.set_alpn_protocols(["h2"])
    return context


def client_context(keys: Mapping[str, str]) -> ssl.SSLContext:
    """For connections to others: the authorities of `ssl.truststore.*`, else those of the system; the key pair, if
    there is one, is shown to servers that ask. Raises SecurityConfigError."""
    now_s = time.time()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _limit_versions_and_suites(context, keys)
    context.check_hostname = _checks_hostname(keys)
    trusted = read_trust_store(keys, now_s)
    if trusted is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cadata=trusted.decode("ascii"))
    if (pair := read_key_store(keys, now_s)) is not None:
        _use(context, pair)
    return context


def _checks_hostname(keys: Mapping[str, str]) -> bool:
    key = "ssl.endpoint.identification.algorithm"
    algorithm = keys.get(key, "https").strip().lower()
    if algorithm not in ("", "https"):
        raise SecurityConfigError(
            key, f"{algorithm!r} is neither https nor empty, which leaves the host unchecked"
        )
    return bool(algorithm)


def _client_auth(keys: Mapping[str, str]) -> ssl.VerifyMode:
    wanted = keys.get("ssl.client.auth", "none").strip().lower()
    if wanted not in _CLIENT_AUTH:
        raise SecurityConfigError("ssl.client.auth", f"{wanted!r} is none of {', '.join(_CLIENT_AUTH)}")
    return _CLIENT_AUTH[wanted]


def _limit_versions_and_suites(context: ssl.SSLContext, keys: Mapping[str, str]) -> None:
    versions = [_VERSIONS[name] for name in _enabled_versions(keys)]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    context.set_ciphers(_TLS_1_2_SUITES)


def _enabled_versions(keys: Mapping[str, str]) -> frozenset[str]:
    key = PROTOCOLS_KEY
    names = [name.strip() for name in keys.get(key, ",".join(_VERSIONS)).split(",") if name.strip()]
    unknown = [name for name in names if name not in _VERSIONS]
    if unknown or not names:
        said = f"{unknown[0]} cannot be enabled" if unknown else "it is empty"
        raise SecurityConfigError(key, f"{said}: there are {' and '.join(_VERSIONS)}")
    return frozenset(names)


def _use(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Python's TLS takes key and certificate from files only: one in memory where the system has such."""
    data = pair.key + pair.certificates
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kquorum-tls", os.MFD_CLOEXEC)
        try:
            _write_all(descriptor, data)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        return
    descriptor, name = tempfile.mkstemp()  # readable by this user alone
    try:
        _write_all(descriptor, data)
        context.load_cert_chain(name)
    finally:
        os.close(descriptor)
        Path(name).unlink()


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
