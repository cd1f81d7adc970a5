"""Certificates to try TLS with: an authority of one's own, a certificate for each node, and one for a client.

For a demonstration and for tests. The authority's key lies beside the certificates, which is no way to keep the key of
an authority that matters.
"""

import datetime as dt
import ipaddress
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_FILE = "ca.pem"
AUTHORITY_KEY_FILE = "ca.key"
# Of a common name in X.520.
MOST_NAME_CHARACTERS = 64
_PRIVATE = 0o600
_PUBLIC = 0o644
_CLOCKS_MAY_DIFFER = dt.timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its private key in one PEM file, as `ssl.keystore.location` takes it."""

    path: Path
    subject: str
    hosts: tuple[str, ...]


class Authority:
    """Issues certificates. Made with a key of its own; `now` is the time from which all of them hold."""

    def __init__(self, common_name: str, now: dt.datetime, days: int) -> None:
        self._now = now
        self._days = days
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(common_name)
        self._identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(is_authority=True), critical=True)
        self._certificate = builder.add_extension(self._identifier, critical=False).sign(
            self._key, hashes.SHA256()
        )

    @property
    def pem(self) -> bytes:
        return self._certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return _key_pem(self._key)

    def issue(self, common_name: str, hosts: Sequence[str] = ()) -> bytes:
        """Key and certificate in PEM, good for servers at these hosts and for clients."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_name(common_name), key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(is_authority=False), critical=True)
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._identifier)
        builder = builder.add_extension(issuer, critical=False)
        if hosts:
            names = x509.SubjectAlternativeName(map(_general_name, hosts))
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return _key_pem(key) + certificate.public_bytes(Encoding.PEM)

    def _builder(self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        until = self._now + dt.timedelta(days=self._days)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _CLOCKS_MAY_DIFFER)
            .not_valid_after(until)
        )


class BadName(ValueError):
    """A name for which no certificate can be made; says which and why."""


_CLIENT_NAME = re.compile(r"[\w@+-][\w@+. -]*")


def check_client_names(clients: Sequence[str], node_ids: Iterable[int]) -> None:
    """Each is the name of a file and in a certificate, and must be that of nothing else in the folder.

    Raises BadName.
    """
    taken = {
        Path(AUTHORITY_FILE).stem: "the authority",
        **{f"node-{each}": f"node {each}" for each in node_ids},
    }
    for name in clients:
        if not name or len(name) > MOST_NAME_CHARACTERS:
            raise BadName(
                f"a client's name has 1 to {MOST_NAME_CHARACTERS} characters, {name[:80]!r} has {len(name)}"
            )
        if _CLIENT_NAME.fullmatch(name) is None or name != name.strip():
            raise BadName(
                f"{name!r} cannot be a client's name: it may have letters, digits, and @ + - _, within it also dots "
                "and blanks"
            )
        if (whose := taken.get(name.lower())) is not None:
            raise BadName(
                f"{name!r} is the name of {whose}'s certificate: choose another name for the client"
            )
        taken[name.lower()] = f"the client {name}"


def files_of(folder: Path, node_ids: Iterable[int], clients: Iterable[str]) -> tuple[Path, ...]:
    """What `make_certificates` writes."""
    names = (*(f"node-{each}.pem" for each in node_ids), *(f"{name}.pem" for name in clients))
    return tuple(folder / name for name in (AUTHORITY_FILE, AUTHORITY_KEY_FILE, *names))


def make_certificates(
    folder: Path, nodes: Iterable[tuple[int, Sequence[str]]], clients: Iterable[str], authority: Authority
) -> tuple[Issued, ...]:
    """Write `ca.pem`, `node-<id>.pem` for (id, hosts) of each node, and `<name>.pem` for each client. Private keys can
    be read by this user alone."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / AUTHORITY_FILE, authority.pem, _PUBLIC)
    _write(folder / AUTHORITY_KEY_FILE, authority.key_pem, _PRIVATE)
    wanted = [(f"node-{node_id}", tuple(hosts)) for node_id, hosts in nodes]
    wanted += [(name, ()) for name in clients]
    issued = []
    for name, hosts in wanted:
        path = folder / f"{name}.pem"
        _write(path, authority.issue(name, hosts), _PRIVATE)
        issued.append(Issued(path, f"CN={name}", hosts))
    return tuple(issued)


def _write(path: Path, data: bytes, mode: int) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
