"""`kquorum tokens`, against a broker that keeps them."""

import json
import stat
from pathlib import Path

import pytest

from kquorum.cli.main import run
from kquorum.wire.messages.error_codes import ErrorCode
from tests.support.administered_cluster import AdministeredCluster

SECRET = "c2VjcmV0"  # base64 of "secret"


def tokens(cluster: AdministeredCluster, verb: str, *options: str) -> int:
    with cluster.served() as node:
        return run(["tokens", verb, *options, "-b", node.address])


def test_a_new_token_is_shown_with_its_password_or_written_to_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = AdministeredCluster()
    assert tokens(cluster, "create", "--owner", "User:bob", "--renewer", "User:carol") == 0
    told = capsys.readouterr().out
    assert "token t of User:bob was created" in told
    assert SECRET in told
    [asked] = cluster.asked("CreateDelegationTokenRequest")
    assert [(each.principal_type, each.principal_name) for each in asked.renewers] == [("User", "carol")]
    file = tmp_path / "token"
    assert tokens(cluster, "create", "--password-file", str(file), "--json") == 0
    assert SECRET not in capsys.readouterr().out
    assert file.read_text() == f"{SECRET}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_no_token_is_created_for_a_file_that_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    cluster = AdministeredCluster()
    assert tokens(cluster, "create", "--password-file", str(file)) == 1
    assert "exists and is not overwritten" in capsys.readouterr().err
    assert cluster.tokens == {}


def test_the_list_shows_no_password_unless_asked_to(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = AdministeredCluster(tokens={"secret": 5})
    assert tokens(cluster, "list", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["password"] is None
    assert tokens(cluster, "list") == 0
    assert SECRET not in capsys.readouterr().out
    assert tokens(cluster, "list", "--json", "--show-secrets") == 0
    assert json.loads(capsys.readouterr().out)[0]["password"] == SECRET


def test_a_token_is_renewed_and_ended_by_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = AdministeredCluster(tokens={"a": 1_000, "b": 2_000})
    assert tokens(cluster, "renew", "a", "--period-ms", "500", "--dry-run") == 0
    assert cluster.tokens["a"] == 1_000
    assert tokens(cluster, "renew", "a", "--period-ms", "500") == 0
    assert cluster.tokens["a"] == 1_500
    assert tokens(cluster, "expire", "a", "--after-ms", "9") == 0
    assert cluster.tokens["a"] == 9
    assert tokens(cluster, "expire", "a") == 0
    assert list(cluster.tokens) == ["b"]
    assert tokens(cluster, "expire", "a") == 1
    assert "there is no token a that this client may see" in capsys.readouterr().err


def test_a_refusal_names_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = AdministeredCluster(refusals={"tokens": (ErrorCode.delegation_token_auth_disabled, "")})
    assert tokens(cluster, "create") == 1
    assert "set delegation.token.secret.key on every node" in capsys.readouterr().err
