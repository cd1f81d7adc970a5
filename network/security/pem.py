"""Keys and certificates in PEM, as Kafka's `ssl.keystore.*` and `ssl.truststore.*` name them, checked before use.

OpenSSL says `[SSL] PEM lib` to most mistakes; the checks here say which key, which file and what to do.
"""

import errno
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kquorum.network.security.errors import SecurityConfigError
from kquorum.regular_files import open_regular

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

# The certificates of all public authorities together take a fifth of it. A node looks at its stores every few seconds.
MOST_BYTES: Final = 1 << 20
_JAVA_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_DER_SEQUENCE = b"\x30"
_CERTIFICATE = re.compile(b"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_AS_PEM = (
    "for a JKS file first `keytool -importkeystore -srckeystore FILE -destkeystore FILE.p12 -deststoretype PKCS12`, "
    "then `openssl pkcs12 -in FILE.p12 -out FILE.pem -nodes`"
)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key without encryption and its certificate, the certificates of its issuers behind it; all PEM."""

    certificates: bytes
    key: bytes = field(repr=False)


def read_key_store(keys: Mapping[str, str], now_s: float) -> KeyPair | None:
    """From `ssl.keystore.location`, or `ssl.keystore.certificate.chain` and `ssl.keystore.key`; None without any.

    Raises SecurityConfigError.
    """
    _check_type(keys, "ssl.keystore.type")
    location, chain = keys.get("ssl.keystore.location"), keys.get("ssl.keystore.certificate.chain")
    if location:
        at_fault, key_at_fault, place = "ssl.keystore.location", "ssl.keystore.location", f"{location}: "
        data = key_data = _read(at_fault, location)
    elif chain or keys.get("ssl.keystore.key"):
        at_fault, key_at_fault, place = "ssl.keystore.certificate.chain", "ssl.keystore.key", ""
        data, key_data = (chain or "").encode(), keys.get("ssl.keystore.key", "").encode()
    else:
        return None
    certificates = _certificates(at_fault, place, data)
    key = _private_key(key_at_fault, place, key_data, keys.get("ssl.key.password"))
    _check_belongs(key_at_fault, place, key, certificates)
    _check_dates(at_fault, place, certificates[0], now_s)
    return KeyPair(b"".join(map(_certificate_pem, certificates)), _key_pem(key))


def read_trust_store(keys: Mapping[str, str], now_s: float) -> bytes | None:
    """The trusted authorities in PEM, from `ssl.truststore.location` or `ssl.truststore.certificates`.

    Raises SecurityConfigError.
    """
    _check_type(keys, "ssl.truststore.type")
    if location := keys.get("ssl.truststore.location"):
        at_fault, place = "ssl.truststore.location", f"{location}: "
        data = _read(at_fault, location)
    elif inline := keys.get("ssl.truststore.certificates"):
        at_fault, place, data = "ssl.truststore.certificates", "", inline.encode()
    else:
        return None
    certificates = _certificates(at_fault, place, data)
    for certificate in certificates:
        _check_dates(at_fault, place, certificate, now_s)
    return b"".join(map(_certificate_pem, certificates))


def _check_type(keys: Mapping[str, str], key: str) -> None:
    if (kind := keys.get(key, "PEM").upper()) != "PEM":
        raise SecurityConfigError(key, f"{kind} cannot be read here, only PEM: {_AS_PEM}; then set {key}=PEM")


def _read(key: str, location: str) -> bytes:
    try:
        data = _content(location)
    except OSError as error:
        remedy = "`kquorum certs make` makes one to try things with"
        raise SecurityConfigError(key, f"{location} cannot be read: {error.strerror}; {remedy}") from error
    if data.startswith(_JAVA_MAGIC):
        raise SecurityConfigError(
            key, f"{location} is a Java key store (JKS), only PEM can be read: {_AS_PEM}"
        )
    if data.startswith(_DER_SEQUENCE):
        raise SecurityConfigError(key, f"{location} is PKCS12 or DER, only PEM can be read: {_AS_PEM}")
    return data


def _content(location: str) -> bytes:
    """Raises OSError, also for a pipe or a device, which may never end, and for a file of more than `MOST_BYTES`. A
    device is not even opened: to open some of them does something."""
    if not stat.S_ISREG(Path(location).stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    with os.fdopen(open_regular(Path(location), follows_links=True), "rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES:,} bytes, which no key store in PEM has")
    return data


def _certificates(key: str, place: str, data: bytes) -> "list[Certificate]":
    from cryptography.x509 import load_pem_x509_certificates

    blocks = b"\n".join(_CERTIFICATE.findall(data))
    if not blocks:
        raise SecurityConfigError(key, f"{place}there is no certificate in it (BEGIN CERTIFICATE)")
    try:
        return load_pem_x509_certificates(blocks)
    except ValueError as error:
        raise SecurityConfigError(key, f"{place}a certificate in it cannot be read") from error


def _private_key(key: str, place: str, data: bytes, password: str | None) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    block = _private_key_block(key, place, data)
    is_encrypted = b"ENCRYPTED" in block
    if is_encrypted and not password:
        message = f"{place}the private key is encrypted: give its password in ssl.key.password"
        raise SecurityConfigError("ssl.key.password", message)
    try:
        return load_pem_private_key(block, password.encode() if is_encrypted and password else None)
    except (ValueError, TypeError) as error:
        if is_encrypted:
            message = f"{place}the private key cannot be decrypted with this password"
            raise SecurityConfigError("ssl.key.password", message) from None
        # The words of the library may quote what they could not read.
        raise SecurityConfigError(key, f"{place}the private key cannot be read") from error


def _private_key_block(key: str, place: str, data: bytes) -> bytes:
    begin = data.find(b"PRIVATE KEY-----")
    start, end = data.rfind(b"-----BEGIN ", 0, max(begin, 0)), data.find(b"-----END ", max(begin, 0))
    stop = data.find(b"-----", end + len(b"-----END "))
    if min(begin, start, end, stop) < 0:
        message = (
            "there is no private key in it (BEGIN PRIVATE KEY), which belongs there beside the certificate"
        )
        raise SecurityConfigError(key, place + message)
    return data[start : stop + len(b"-----")] + b"\n"


def _check_belongs(key: str, place: str, private_key: Any, certificates: "list[Certificate]") -> None:
    public = private_key.public_key()
    first = certificates[0]
    if first.public_key() == public:
        return
    if any(other.public_key() == public for other in certificates[1:]):
        message = "the certificate of the private key must come first, its issuers behind it"
        raise SecurityConfigError(key, place + message)
    subject = first.subject.rfc4514_string()
    raise SecurityConfigError(
        key,
        f"{place}the private key is not that of the certificate {subject}: put the two that belong together there",
    )


def _check_dates(key: str, place: str, certificate: "Certificate", now_s: float) -> None:
    subject = certificate.subject.rfc4514_string()
    if certificate.not_valid_after_utc.timestamp() < now_s:
        when = certificate.not_valid_after_utc.isoformat()
        message = f"the certificate {subject} expired at {when}: have a new one issued"
        raise SecurityConfigError(key, place + message)
    if certificate.not_valid_before_utc.timestamp() > now_s:
        when = certificate.not_valid_before_utc.isoformat()
        message = f"the certificate {subject} is not valid before {when}: is the clock of this machine right?"
        raise SecurityConfigError(key, place + message)


def _certificate_pem(certificate: "Certificate") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem
