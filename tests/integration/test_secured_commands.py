"""The command line asks a cluster with TLS and SASL, and says what is wrong when it may not."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest

from tests.support.cluster import PROJECT_ROOT
from tests.support.secured import SECRETS, USER, USER_SECRET, SecuredCluster

pytestmark = pytest.mark.slow

LOGIN = 'ScramLoginModule required username="{}" password="{}";'


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    folder = tmp_path_factory.mktemp("secured-commands")
    with SecuredCluster(folder, controllers=1, brokers=1, with_grpc=True) as running:
        running.start()
        yield running


def keys(cluster: SecuredCluster, name: str = USER, password: str = USER_SECRET) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": LOGIN.format(name, password),
        "ssl.truststore.location": cluster.file("ca.pem"),
    }


def kquorum(
    cluster: SecuredCluster, *arguments: str, config: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Exit status and all that was said, which never has a secret in it."""
    if config is not None:
        arguments = (*arguments, "--command-config", cluster.command_config("command.properties", config))
    done = subprocess.run(
        [sys.executable, "-m", "kquorum.cli.entry", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT), "COLUMNS": "200"},
    )
    told = done.stdout + done.stderr
    assert [secret for secret in SECRETS if secret in told] == []
    return done.returncode, " ".join(told.split())


def broker(cluster: SecuredCluster, listener: str = "PASSWORD") -> tuple[str, ...]:
    return ("-b", cluster.listener(listener), "--timeout-ms", "10000")


def test_brokers_are_asked_as_the_file_says(cluster: SecuredCluster) -> None:
    config = keys(cluster)
    assert kquorum(cluster, "topics", "create", "orders", *broker(cluster), config=config)[0] == 0
    status, told = kquorum(cluster, "topics", "list", *broker(cluster), config=config)
    assert (status, "orders" in told) == (0, True)
    status, told = kquorum(cluster, "configs", "describe", "--broker", "101", *broker(cluster), config=config)
    assert (status, "ssl.keystore.location" in told) == (0, True), told


def test_controllers_of_a_config_are_asked_as_the_nodes_ask_each_other(cluster: SecuredCluster) -> None:
    status, told = kquorum(cluster, "quorum", "status", "-c", str(cluster.config_path))
    assert (status, "leader 1" in told) == (0, True), told


def test_controllers_by_address_are_asked_as_the_file_says(cluster: SecuredCluster) -> None:
    asked = ("quorum", "status", "--bootstrap-controller", cluster.address(1), "--timeout-ms", "5000")
    alice = {
        "security.protocol": "SSL",
        "ssl.truststore.location": cluster.file("ca.pem"),
        "ssl.keystore.location": cluster.file("alice.pem"),
    }
    assert kquorum(cluster, *asked, config=alice)[0] == 0
    anonymous = {key: value for key, value in alice.items() if key != "ssl.keystore.location"}
    status, told = kquorum(cluster, *asked, config=anonymous)
    assert (status, "it wants a certificate of this side" in told) == (1, True), told
    untrusted = alice | {"ssl.keystore.location": cluster.file("untrusted.pem")}
    assert kquorum(cluster, *asked, config=untrusted)[0] == 1
    assert "its certificate is of an authority that is not trusted here" in cluster.log_text(1)


def test_grpc_has_tls_too(cluster: SecuredCluster) -> None:
    listed = ("topics", "list", "--grpc", f"127.0.0.1:{cluster.grpc_ports[101]}", "--timeout-ms", "5000")
    status, told = kquorum(cluster, *listed, config=keys(cluster))
    assert status == 0, told
    assert kquorum(cluster, *listed)[0] == 6
    assert kquorum(cluster, "quorum", "history", "-c", str(cluster.config_path))[0] == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"sasl.jaas.config": LOGIN.format(USER, "wrong")},
            "invalid credentials with SASL mechanism SCRAM-SHA-512",
        ),
        ({"sasl.jaas.config": LOGIN.format("anonymous", USER_SECRET)}, "invalid credentials"),
        (
            {
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": 'PlainLoginModule required username="a" password="b";',
            },
            "does not offer the SASL mechanism PLAIN",
        ),
        ({"security.protocol": "SSL"}, "closed by the peer"),
        ({"security.protocol": "PLAINTEXT"}, "does its listener want TLS?"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "does its listener want TLS?"),
    ],
)
def test_what_is_wrong_is_said(cluster: SecuredCluster, changes: dict[str, str], said: str) -> None:
    asked = ("topics", "list", "-b", cluster.listener("PASSWORD"), "--timeout-ms", "3000")
    status, told = kquorum(cluster, *asked, config=keys(cluster) | changes)
    # A refused request is status 1; 6 means that no connection was possible.
    is_refused = "Authentication failed" in told or "does not offer" in told
    assert (status, said in told) == (1 if is_refused else 6, True), told


def test_a_tls_client_on_a_listener_without(cluster: SecuredCluster) -> None:
    asked = ("topics", "list", "-b", cluster.listener("OPEN"), "--timeout-ms", "3000")
    status, told = kquorum(cluster, *asked, config=keys(cluster))
    assert (status, "TLS" in told) == (6, True), told
    assert "it begins with TLS, and this listener has none" in cluster.log_text(101)


def test_all_that_was_written_has_no_secret(cluster: SecuredCluster) -> None:
    text = cluster.all_output()
    assert "authentication" in text
    assert [secret for secret in SECRETS if secret in text] == []
