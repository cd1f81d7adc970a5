"""`--command-config FILE`: what a command says of a file that is missing or wrong."""

from pathlib import Path

import pytest

from kquorum.cli.main import run
from tests.support.certificates import write

PASSWORD = "never-to-be-shown"


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
