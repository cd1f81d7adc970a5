"""Keys that are misspelt, in a config and in the file of `--command-config`, and warnings that are given only once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kquorum.cli.clients.client_keys import doubtful_keys
from kquorum.cli.main import run
from kquorum.node.config.errors import ConfigError, Place, Problem
from kquorum.node.config.load import load_config
from tests.support import config_files


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("security.protcol", "unknown key security.protcol (did you mean security.protocol?)"),
        ("securty.protocol", "unknown key securty.protocol (did you mean security.protocol?)"),
        (
            "ssl.truststore.locaton",
            "unknown key ssl.truststore.locaton (did you mean ssl.truststore.location?)",
        ),
        ("sasl.jaas.confg", "unknown key sasl.jaas.confg (did you mean sasl.jaas.config?)"),
        ("ssl.frobnicate", "unknown key ssl.frobnicate"),
    ],
)
def test_what_was_meant_is_asked(key: str, said: str) -> None:
    assert list(doubtful_keys({key: "x"})) == [said]


def test_the_other_keys_of_kafkas_clients_are_passed_over() -> None:
    names = (
        "bootstrap.servers client.id request.timeout.ms default.api.timeout.ms retries acks group.id "
        "metadata.max.age.ms ssl.protocol ssl.cipher.suites ssl.truststore.password security.providers "
        "sasl.login.class "
        "sasl.kerberos.service.name sasl.oauthbearer.token.endpoint.url sasl.client.callback.handler.class"
    )
    assert list(doubtful_keys(dict.fromkeys(names.split(), "x"))) == []


def test_a_login_without_sasl() -> None:
    told = "sasl.mechanism and sasl.jaas.config without effect: security.protocol is SSL, without SASL"
    keys = {"security.protocol": "ssl", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "x"}
    assert list(doubtful_keys(keys)) == [told]
    assert list(doubtful_keys(keys | {"security.protocol": "SASL_SSL"})) == []


def test_a_command_warns_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protcol=SSL\n")
    command = ["topics", "list", "-b", "127.0.0.1:1,127.0.0.1:2", "--command-config", str(file)]
    assert run(command) == 6
    assert capsys.readouterr().err.count(f"{file}: unknown key security.protcol") == 1


def test_a_key_of_a_listener_is_asked_for_with_its_listener(tmp_path: Path) -> None:
    text = config_files.SMALL.replace(
        "[defaults]\n", '[defaults]\nlistener.name.client.plain.sasl.jaas.confg = "x"\n'
    )
    with pytest.raises(
        ConfigError, match=r"did you mean listener\.name\.client\.plain\.sasl\.jaas\.config\?"
    ):
        load_config(config_files.write(tmp_path, text))


def test_a_sole_controller_on_every_address(tmp_path: Path) -> None:
    text = (
        '[cluster]\ncluster.id = "a3F1b3J1bS1leGFtcGxlMQ"\n[[nodes]]\nnode.id = 1\nprocess.roles = "controller"\n'
        'controller.listener.names = "CONTROLLER"\nlisteners = "CONTROLLER://0.0.0.0:9093"\nlog.dirs = "d"\n'
    )
    with pytest.raises(ConfigError, match=r"0\.0\.0\.0\) is none that voters could be derived from"):
        load_config(config_files.write(tmp_path, text))


def test_a_problem_is_reported_once() -> None:
    problem = Problem("no", Place(Path("q.toml"), 3))
    assert str(ConfigError([problem, problem])) == "q.toml:3: no"


def test_a_reader_that_has_seen_enough_of_the_help_is_no_failure() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [sys.executable, "-m", "kquorum.cli.entry", "topics"]
        ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")
