"""What is wrong with keys and certificates is said with key, file and remedy."""

import os
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from kquorum.network.security.errors import SecurityConfigError
from kquorum.network.security.tls import client_context, read_tls_files, server_context
from tests.support.certificates import HOSTS, authority, issued, write

PASSWORD = "the-password-of-the-key"
CERTIFICATE_BEGINS = "-----BEGIN CERTIFICATE-----"


def parts(common_name: str = "node", **how: int) -> tuple[str, str]:
    """Key and certificate."""
    text = issued(common_name, *HOSTS, **how)  # type: ignore[arg-type]
    at = text.index(CERTIFICATE_BEGINS)
    return text[:at], text[at:]


def encrypted() -> str:
    key, certificate = parts()
    loaded = load_pem_private_key(key.encode(), None)
    encryption = BestAvailableEncryption(PASSWORD.encode())
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode() + certificate


def refused(keys: dict[str, str]) -> SecurityConfigError:
    with pytest.raises(SecurityConfigError) as caught:
        server_context(keys)
    assert PASSWORD not in str(caught.value)
    assert "PRIVATE KEY-----\n" not in str(caught.value)
    return caught.value


def test_one_file_with_key_and_certificate(tmp_path: Path) -> None:
    for text in ("".join(parts()), "".join(reversed(parts()))):
        server_context(
            {"ssl.keystore.location": write(tmp_path / "node.pem", text), "ssl.keystore.type": "PEM"}
        )


def test_key_and_certificate_within_the_config() -> None:
    key, certificate = parts()
    server_context({"ssl.keystore.key": key, "ssl.keystore.certificate.chain": certificate})


def test_an_encrypted_key(tmp_path: Path) -> None:
    keys = {"ssl.keystore.location": write(tmp_path / "node.pem", encrypted())}
    server_context(keys | {"ssl.key.password": PASSWORD})
    error = refused(keys)
    assert error.key == "ssl.key.password"
    assert "is encrypted" in str(error)
    assert "cannot be decrypted" in str(refused(keys | {"ssl.key.password": PASSWORD + "x"}))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    error = refused({"ssl.keystore.location": str(tmp_path / "none.pem")})
    assert error.key == "ssl.keystore.location"
    assert str(tmp_path / "none.pem") in str(error)
    assert "No such file" in str(error)


def test_no_key_store_at_all() -> None:
    assert "needs a certificate and its private key" in str(refused({}))


@pytest.mark.parametrize(("which", "said"), [(0, "no certificate in it"), (1, "no private key in it")])
def test_half_of_a_key_store(tmp_path: Path, which: int, said: str) -> None:
    path = write(tmp_path / "node.pem", parts()[which])
    assert f"{path}: there is {said}" in str(refused({"ssl.keystore.location": path}))


def test_a_key_of_another_certificate(tmp_path: Path) -> None:
    path = write(tmp_path / "node.pem", parts("other")[0] + parts("node")[1])
    error = refused({"ssl.keystore.location": path})
    assert "is not that of the certificate CN=node" in str(error)


def test_certificates_in_the_wrong_order(tmp_path: Path) -> None:
    key, certificate = parts()
    path = write(tmp_path / "node.pem", key + authority().pem.decode() + certificate)
    assert "must come first" in str(refused({"ssl.keystore.location": path}))


def test_an_expired_certificate(tmp_path: Path) -> None:
    path = write(tmp_path / "node.pem", "".join(parts(days_ago=40)))
    error = refused({"ssl.keystore.location": path})
    assert "CN=node expired at" in str(error)
    assert path in str(error)


def test_a_certificate_of_tomorrow(tmp_path: Path) -> None:
    path = write(tmp_path / "node.pem", "".join(parts(days_ago=-2)))
    assert "is not valid before" in str(refused({"ssl.keystore.location": path}))


def test_an_expired_authority(tmp_path: Path) -> None:
    trusted = write(tmp_path / "ca.pem", authority(days_ago=40).pem.decode())
    node = write(tmp_path / "node.pem", "".join(parts()))
    error = refused({"ssl.keystore.location": node, "ssl.truststore.location": trusted})
    assert error.key == "ssl.truststore.location"
    assert "expired" in str(error)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xfe\xed\xfe\xed\0\0\0\2", "is a Java key store (JKS)"),
        (b"\x30\x82\x0a\x56", "is PKCS12 or DER"),
    ],
)
def test_other_kinds_of_key_stores(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "node.jks").write_bytes(data)
    error = refused({"ssl.keystore.location": str(tmp_path / "node.jks")})
    assert said in str(error)
    assert "openssl pkcs12 -in" in str(error)


def test_a_kind_that_is_named_and_not_pem(tmp_path: Path) -> None:
    error = refused({"ssl.keystore.type": "JKS", "ssl.keystore.location": "x"})
    assert error.key == "ssl.keystore.type"
    assert "keytool -importkeystore" in str(error)


def test_garbage_between_the_lines_of_a_key(tmp_path: Path) -> None:
    key, certificate = parts()
    lines = key.splitlines()
    lines[1] = "*" * len(lines[1])
    path = write(tmp_path / "node.pem", "\n".join(lines) + "\n" + certificate)
    assert "the private key cannot be read" in str(refused({"ssl.keystore.location": path}))


def test_client_certificates_are_requested_but_none_is_trusted(tmp_path: Path) -> None:
    path = write(tmp_path / "node.pem", "".join(parts()))
    error = refused({"ssl.keystore.location": path, "ssl.client.auth": "required"})
    assert error.key == "ssl.truststore.location"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ssl.client.auth", "maybe"),
        ("ssl.enabled.protocols", "TLSv1.1"),
        ("ssl.enabled.protocols", ""),
        ("ssl.enabled.protocols", "SSLv3,TLSv1.3"),
    ],
)
def test_words_that_mean_nothing(tmp_path: Path, key: str, value: str) -> None:
    path = write(tmp_path / "node.pem", "".join(parts()))
    assert refused({"ssl.keystore.location": path, key: value}).key == key


def test_a_client_checks_hosts_unless_configured_otherwise() -> None:
    assert client_context({}).check_hostname
    assert not client_context({"ssl.endpoint.identification.algorithm": ""}).check_hostname
    with pytest.raises(SecurityConfigError, match="neither https nor empty"):
        client_context({"ssl.endpoint.identification.algorithm": "http"})


def test_old_versions_of_tls_are_out(tmp_path: Path) -> None:
    context = server_context({"ssl.keystore.location": write(tmp_path / "node.pem", "".join(parts()))})
    assert context.minimum_version.name == "TLSv1_2"


def test_what_grpc_gets_is_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "node.pem", encrypted())
    files = read_tls_files({"ssl.keystore.location": path, "ssl.key.password": PASSWORD})
    assert files.pair is not None
    assert b"ENCRYPTED" not in files.pair.key
    assert "PRIVATE" not in repr(files)


def test_a_chain_made_by_openssl_is_read(tmp_path: Path) -> None:
    """Other tools write words around the PEM blocks."""
    key, certificate = parts()
    (tmp_path / "c.pem").write_text(certificate)
    shown = subprocess.run(
        ["openssl", "x509", "-in", tmp_path / "c.pem", "-text"], check=True, capture_output=True, text=True
    )
    server_context({"ssl.keystore.location": write(tmp_path / "node.pem", key + shown.stdout)})


@pytest.mark.parametrize("key", ["ssl.keystore.location", "ssl.truststore.location"])
def test_a_pipe_in_the_place_of_a_store_is_refused_at_once(key: str, tmp_path: Path) -> None:
    pipe = tmp_path / "store.pem"
    os.mkfifo(pipe)
    stores = {"ssl.keystore.location": str(write(tmp_path / "node.pem", "".join(parts()))), key: str(pipe)}
    error = refused(stores)
    assert "no regular file" in str(error)
    assert error.key == key


@pytest.mark.parametrize("key", ["ssl.keystore.location", "ssl.truststore.location"])
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty", "a folder"])
def test_a_device_in_the_place_of_a_store_is_refused_at_once(key: str, device: str, tmp_path: Path) -> None:
    place = str(tmp_path) if device == "a folder" else device
    stores = {"ssl.keystore.location": str(write(tmp_path / "node.pem", "".join(parts()))), key: place}
    error = refused(stores)
    assert "no regular file" in str(error)
    assert error.key == key


@pytest.mark.parametrize("key", ["ssl.keystore.location", "ssl.truststore.location"])
def test_a_store_that_is_too_long_is_not_read_whole(key: str, tmp_path: Path) -> None:
    long = tmp_path / "long.pem"
    with long.open("wb") as file:
        file.truncate(1 << 40)  # it takes no space on the disk
    stores = {"ssl.keystore.location": str(write(tmp_path / "node.pem", "".join(parts()))), key: str(long)}
    error = refused(stores)
    assert "more than 1,048,576 bytes" in str(error)
    assert error.key == key


def test_all_authorities_of_a_system_fit_into_a_trust_store(tmp_path: Path) -> None:
    one = authority().pem.decode()
    trusted = write(tmp_path / "trusted.pem", one * 300)
    node = write(tmp_path / "node.pem", "".join(parts()))
    server_context({"ssl.keystore.location": node, "ssl.truststore.location": trusted})
