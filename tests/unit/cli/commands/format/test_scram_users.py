"""`kquorum format --add-scram`, `kquorum certs make` and `--command-config`."""

import base64
import stat
from pathlib import Path

import pytest
from cryptography import x509

from cli.commands.features.metadata_versions import DEFAULT
from cli.commands.format.initial_records import parse_scram_users
from cli.failures import CliError
from cli.main import run
from network.security.scram import keys_of
from network.security.unknown_user_credentials import AS_KAFKA
from node.config.load import load_config
from snapshots.bootstrap import read_bootstrap_checkpoint
from tests.support.certificates import issued, write
from tests.support.config_files import SMALL
from tests.support.config_files import write as write_config
from tests.tidy.tree import ROOT
from wire.metadata_records.security import UserScramCredentialRecord
from wire.salt_forms import form_of

PASSWORD = "never-to-be-shown"
SALT = base64.b64encode(b"a salt of some length").decode()


def test_a_user_in_the_words_of_kafkas_tool() -> None:
    text = f'SCRAM-SHA-512=[name=alice,password="{PASSWORD}",iterations=8192,salt="{SALT}"]'
    [record] = parse_scram_users([text], DEFAULT)
    assert isinstance(record, UserScramCredentialRecord)
    keys = keys_of("SCRAM-SHA-512", PASSWORD, base64.b64decode(SALT), 8192)
    assert (record.name, record.mechanism, record.iterations) == ("alice", 2, 8192)
    assert (record.salt, record.stored_key, record.server_key) == (
        keys.salt,
        keys.stored_key,
        keys.server_key,
    )


def test_a_salt_looks_like_those_that_strangers_are_told() -> None:
    """Else its length would tell who was there from the beginning."""
    records = [parse_scram_users(["SCRAM-SHA-512=[name=a,password=b]"], DEFAULT)[0] for _ in range(2)]
    salts = [record.salt for record in records if isinstance(record, UserScramCredentialRecord)]
    assert len(set(salts)) == 2
    assert {form_of(salt, 4096) for salt in salts} == {AS_KAFKA}


def test_a_salted_password_is_as_good() -> None:
    import hashlib

    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), base64.b64decode(SALT), 4096)
    text = f"SCRAM-SHA-256=[name=a,saltedpassword={base64.b64encode(salted).decode()},salt={SALT}]"
    [record] = parse_scram_users([text], DEFAULT)
    assert isinstance(record, UserScramCredentialRecord)
    assert record.stored_key == keys_of("SCRAM-SHA-256", PASSWORD, base64.b64decode(SALT), 4096).stored_key


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PASSWORD, "must begin with SCRAM-SHA-256="),
        (f"PLAIN=[name=a,password={PASSWORD}]", "must begin with"),
        (f"SCRAM-SHA-256=name=a,password={PASSWORD}", "[name=...,password=...]"),
        (f"SCRAM-SHA-256=[password={PASSWORD}]", "needs a name"),
        ("SCRAM-SHA-256=[name=a]", "either password or saltedpassword"),
        (f"SCRAM-SHA-256=[name=a,password={PASSWORD},saltedpassword=AAAA]", "either"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=AAAA]", "the salt it was made with"),
        (f"SCRAM-SHA-256=[name=a,password={PASSWORD},iterations=1]", "4096"),
        (f"SCRAM-SHA-256=[name=a,password={PASSWORD},iterations=x]", "4096"),
        (f"SCRAM-SHA-256=[name=a,password={PASSWORD},salt=*]", "base64"),
        (f"SCRAM-SHA-256=[name=a,password={PASSWORD},pasword=x]", "each once"),
        (f"SCRAM-SHA-256=[name=a,name=b,password={PASSWORD}]", "each once"),
    ],
)
def test_what_is_no_user_is_never_quoted(text: str, said: str) -> None:
    with pytest.raises(CliError) as caught:
        parse_scram_users([text], DEFAULT)
    assert said in str(caught.value)
    assert PASSWORD not in str(caught.value)


def test_a_user_twice_and_an_old_metadata_version() -> None:
    text = f"SCRAM-SHA-256=[name=a,password={PASSWORD}]"
    with pytest.raises(CliError, match="twice"):
        parse_scram_users([text, text], DEFAULT)
    with pytest.raises(CliError, match="needs metadata"):
        parse_scram_users([text], 8)


def test_format_writes_users_behind_the_features(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_config(tmp_path)
    user = f"SCRAM-SHA-512=[name=admin,password={PASSWORD}]"
    assert run(["format", "-c", str(path), "--data-dir", str(tmp_path), "-S", user]) == 0
    for node_id in (1, 11):
        records = read_bootstrap_checkpoint((tmp_path / f"data/{node_id}/bootstrap.checkpoint").read_bytes())
        assert isinstance(records[-1], UserScramCredentialRecord)
        assert records[-1].name == "admin"
    shown = capsys.readouterr()
    assert PASSWORD not in shown.out + shown.err


# Certificates


def names(path: Path) -> list[str]:
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(each.value) for each in found]


def test_certificates_for_each_node_and_client(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path, SMALL + 'advertised.listeners = "PLAINTEXT://broker.example.org:9092"\n')
    certs = tmp_path / "certs"
    options = ("--client", "alice", "--client", "bob", "--host", "10.0.0.7")
    assert run(["certs", "make", str(certs), "-c", str(config), *options]) == 0
    made = {path.name for path in certs.iterdir()}
    assert made == {"ca.pem", "ca.key", "node-1.pem", "node-11.pem", "alice.pem", "bob.pem"}
    assert names(certs / "node-1.pem") == ["127.0.0.1", "localhost", "10.0.0.7"]
    assert names(certs / "node-11.pem") == ["broker.example.org", "127.0.0.1", "localhost", "10.0.0.7"]
    for name in made - {"ca.pem"}:
        assert stat.S_IMODE((certs / name).stat().st_mode) == 0o600
    assert "User:CN=alice" in capsys.readouterr().out


def test_certificates_of_two_authorities_are_not_mixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path)
    command = ["certs", "make", str(tmp_path / "certs"), "-c", str(config)]
    assert run(command) == 0
    before = (tmp_path / "certs/ca.pem").read_bytes()
    assert run(command) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert (tmp_path / "certs/ca.pem").read_bytes() == before
    assert run([*command, "--overwrite"]) == 0
    assert (tmp_path / "certs/ca.pem").read_bytes() != before


def test_the_example_is_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths in it are from the folder in which the commands are run."""
    from node.security import check_security

    monkeypatch.chdir(tmp_path)
    example = ROOT / "examples" / "secured.toml"
    assert run(["certs", "make", "certs", "-c", str(example)]) == 0
    cluster = load_config(example)
    for node in cluster.nodes:
        check_security(cluster, node)
        assert node.kquorum_grpc_security == "ssl"


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.stem)
def test_every_node_of_every_example_can_be_watched(example: Path) -> None:
    for node in load_config(example).nodes:
        assert node.kquorum_grpc_listener is not None
        assert node.kquorum_metrics_listener is not None


# How commands ask


def test_a_command_config_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("-b", "127.0.0.1:1", "--command-config", str(tmp_path / "none.properties"))
    assert run(["topics", "list", *options]) == 2
    assert "none.properties: there is no such file (--command-config)" in " ".join(
        capsys.readouterr().err.split()
    ).replace(str(tmp_path) + "/", "").replace("- ", "-")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"security.protocol": "TLS"}, "security.protocol"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, "sasl.jaas.config"),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": f"PlainLoginModule required username=x password={PASSWORD}",
            },
            "semicolon",
        ),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": f'PlainLoginModule required username="x" password="{PASSWORD}";',
            },
            "goes with ScramLoginModule",
        ),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/nowhere/ca.pem"}, "/nowhere/ca.pem"),
    ],
)
def test_a_command_config_that_cannot_be_used(
    tmp_path: Path, keys: dict[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "c.properties", "".join(f"{key}={value}\n" for key, value in keys.items()))
    assert run(["topics", "list", "-b", "127.0.0.1:1", "--command-config", path]) == 2
    shown = capsys.readouterr()
    assert said in " ".join(shown.err.split())
    assert PASSWORD not in shown.out + shown.err


def test_one_command_line_does_not_remember_the_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "c.properties", "security.protocol=TLS\n")
    assert run(["topics", "list", "-b", "127.0.0.1:1", "--command-config", path]) == 2
    assert run(["topics", "list", "-b", "127.0.0.1:1", "--timeout-ms", "200"]) == 6


def test_a_certificate_can_be_read_by_openssl(tmp_path: Path) -> None:
    from network.security.tls import server_context

    server_context({"ssl.keystore.location": write(tmp_path / "n.pem", issued("n", "localhost"))})
