"""`kquorum format --add-scram`: users who can log in from the first moment on."""

import base64
from pathlib import Path

import pytest

from kquorum.cli.commands.features.metadata_versions import DEFAULT
from kquorum.cli.commands.format.initial_records import parse_scram_users
from kquorum.cli.failures import CliError
from kquorum.cli.main import run
from kquorum.network.security.scram import keys_of
from kquorum.network.security.unknown_user_credentials import AS_KAFKA
from kquorum.snapshots.bootstrap import read_bootstrap_checkpoint
from kquorum.wire.metadata_records.security import UserScramCredentialRecord
from kquorum.wire.salt_forms import form_of
from tests.support.config_files import write as write_config

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


def test_a_salt_has_the_form_of_those_for_unknown_users() -> None:
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
