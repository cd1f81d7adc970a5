"""`kquorum users`, against a broker that keeps the credentials."""

import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from kquorum.cli.main import run
from kquorum.network.security.scram import salted_password
from tests.support.administered_cluster import AdministeredCluster

SHA_256, SHA_512 = 1, 2


def users(cluster: AdministeredCluster, verb: str, *options: str) -> int:
    with cluster.served() as node:
        return run(["users", verb, *options, "-b", node.address])


@pytest.fixture
def password(tmp_path: Path) -> str:
    path = tmp_path / "password"
    path.write_text("geheim\n")
    path.chmod(0o600)
    return str(path)


def test_the_salted_password_is_sent_and_never_the_password(
    password: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = AdministeredCluster()
    assert users(cluster, "add", "alice", "--password-file", password, "--iterations", "5000") == 0
    sent = cluster.users["alice", SHA_512]
    assert sent.salted_password == salted_password("SCRAM-SHA-512", "geheim", sent.salt, 5000)
    told = capsys.readouterr()
    assert told.out == "user alice: SCRAM-SHA-512 added\n"
    assert told.err == ""


def test_the_password_may_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"geheim")))
    cluster = AdministeredCluster()
    assert users(cluster, "add", "alice", "--password-file", "-", "--mechanism", "scram-sha-256") == 0
    assert list(cluster.users) == [("alice", SHA_256)]


def test_without_file_and_terminal_the_command_says_how_to_give_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = AdministeredCluster()
    assert users(cluster, "add", "alice") == 2
    assert "give --password-file FILE" in capsys.readouterr().err
    assert cluster.users == {}


def test_at_a_terminal_it_is_typed_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = iter(["one", "one", "one", "two"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", lambda _: next(typed))
    cluster = AdministeredCluster()
    assert users(cluster, "add", "alice") == 0
    assert users(cluster, "add", "bob") == 1
    assert "not the same password; nothing was changed" in capsys.readouterr().err
    assert list(cluster.users) == [("alice", SHA_512)]


def test_add_and_alter_refuse_what_the_other_does(password: str, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = AdministeredCluster()
    assert users(cluster, "alter", "alice", "--password-file", password) == 1
    assert "`kquorum users add alice`" in capsys.readouterr().err
    assert users(cluster, "add", "alice", "--password-file", password, "--mechanism", "SCRAM-SHA-256") == 0
    before = cluster.users["alice", SHA_256]
    assert users(cluster, "add", "alice", "--password-file", password, "--mechanism", "SCRAM-SHA-256") == 1
    assert "`kquorum users alter alice`" in capsys.readouterr().err
    assert users(cluster, "alter", "alice", "--password-file", password, "--dry-run") == 0
    assert cluster.users["alice", SHA_256] is before
    assert users(cluster, "alter", "alice", "--password-file", password) == 0
    assert list(cluster.users) == [("alice", SHA_256)]
    assert cluster.users["alice", SHA_256].salt != before.salt


def test_remove_takes_all_mechanisms_or_those_named(
    password: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = AdministeredCluster()
    both = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512")
    assert users(cluster, "add", "alice", "--password-file", password, *both) == 0
    assert users(cluster, "remove", "alice", "--dry-run") == 0
    assert len(cluster.users) == 2
    assert users(cluster, "remove", "alice", "--mechanism", "SCRAM-SHA-512") == 0
    assert list(cluster.users) == [("alice", SHA_256)]
    capsys.readouterr()
    assert users(cluster, "list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 8192}
    ]
    assert users(cluster, "remove", "alice") == 0
    assert users(cluster, "remove", "alice") == 0
    assert "user alice has no such password" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"", "there is no password in"), (b"a\nb\n", "more than one line"), (b"\xff", "not UTF-8")],
)
def test_a_file_that_holds_no_password_is_refused(
    content: bytes, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "password"
    path.write_bytes(content)
    assert users(AdministeredCluster(), "add", "alice", "--password-file", str(path)) == 2
    assert told in capsys.readouterr().err


def test_a_file_that_others_can_read_is_warned_of(password: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(password).chmod(0o644)
    assert users(AdministeredCluster(), "add", "alice", "--password-file", password) == 0
    assert f"chmod 600 {password}" in capsys.readouterr().err
