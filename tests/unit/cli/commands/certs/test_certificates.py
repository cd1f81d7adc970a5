"""`kquorum certs make`, and the examples that name its files."""

import stat
from pathlib import Path

import pytest
from cryptography import x509

from kquorum.cli.main import run
from kquorum.node.config.load import load_config
from tests.support.certificates import issued, write
from tests.support.config_files import SMALL
from tests.support.config_files import write as write_config
from tests.support.tree import ROOT


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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("../../evil", "cannot be a client's name"),
        ("/tmp/evil", "cannot be a client's name"),
        ("..", "cannot be a client's name"),
        (".hidden", "cannot be a client's name"),
        ("two\nlines", "cannot be a client's name"),
        ("blank ", "cannot be a client's name"),
        ("zero\0", "cannot be a client's name"),
        ("", "has 0"),
        ("x" * 65, "has 65"),
        ("ca", "of the authority's certificate"),
        ("CA", "of the authority's certificate"),
        ("node-1", "of node 1's certificate"),
        ("Node-11", "of node 11's certificate"),
    ],
)
def test_a_name_that_is_no_clients_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    config = write_config(tmp_path)
    folder = tmp_path / "a/b/certs"
    assert run(["certs", "make", str(folder), "-c", str(config), "--client", name]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not folder.exists()
    assert not list(tmp_path.rglob("*evil*"))


def test_two_names_that_some_file_systems_take_for_one_are_refused(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    clients = ("--client", "alice", "--client", "Alice")
    assert run(["certs", "make", str(tmp_path / "certs"), "-c", str(config), *clients]) == 2


@pytest.mark.parametrize("name", ["alice", "o-brien", "jörg", "ops team", "a.b@example.org"])
def test_usual_names_are_taken(tmp_path: Path, name: str) -> None:
    config = write_config(tmp_path)
    assert run(["certs", "make", str(tmp_path / "certs"), "-c", str(config), "--client", name]) == 0
    assert (tmp_path / f"certs/{name}.pem").exists()


@pytest.mark.parametrize("there", ["node-1.pem", "client.pem", "ca.key"])
def test_the_certificate_of_another_authority_is_not_replaced_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], there: str
) -> None:
    config = write_config(tmp_path)
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs" / there).write_text("kept")
    assert run(["certs", "make", str(tmp_path / "certs"), "-c", str(config)]) == 2
    assert there in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "certs").iterdir()] == [there]
    assert (tmp_path / "certs" / there).read_text() == "kept"


def test_the_example_is_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths in it are from the folder in which the commands are run."""
    from kquorum.node.security import check_security

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


def test_a_certificate_can_be_read_by_openssl(tmp_path: Path) -> None:
    from kquorum.network.security.tls import server_context

    server_context({"ssl.keystore.location": write(tmp_path / "n.pem", issued("n", "localhost"))})
