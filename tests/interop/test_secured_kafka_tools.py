"""Kafka's own command line tools over TLS and SASL, a delegation token among the ways in."""

import re
from collections.abc import Iterator, Mapping

import pytest

from kquorum.cli.processes import wait_until
from tests.interop.kafka_process import Kafka, ToolFailed
from tests.support.secured import PLAIN_SECRET, PLAIN_USER, SECRETS, USER, USER_SECRET, SecuredCluster

pytestmark = [pytest.mark.interop, pytest.mark.slow]

WAIT_S = 30.0
TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required {};"
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required {};"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with SecuredCluster(tmp_path_factory.mktemp("secured-tools"), controllers=1, brokers=1) as running:
        running.start()
        yield running


def tls(cluster: SecuredCluster, protocol: str, certificate: str | None = None) -> dict[str, str]:
    keys = {
        "security.protocol": protocol,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": cluster.file("ca.pem"),
    }
    if certificate is not None:
        keys |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": cluster.file(certificate)}
    return keys


def login(mechanism: str, options: str) -> dict[str, str]:
    module = PLAIN_LOGIN if mechanism == "PLAIN" else SCRAM_LOGIN
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": module.format(options)}


def scram(
    cluster: SecuredCluster, name: str = USER, password: str = USER_SECRET, more: str = ""
) -> dict[str, str]:
    return tls(cluster, "SASL_SSL") | login("SCRAM-SHA-512", f'username="{name}" password="{password}"{more}')


class Tools:
    def __init__(self, kafka: Kafka, cluster: SecuredCluster) -> None:
        self._kafka = kafka
        self._cluster = cluster

    def run(self, tool: str, listener: str, keys: Mapping[str, str], *arguments: str) -> str:
        config = self._cluster.command_config("tool.properties", keys)
        where = ("--bootstrap-server", self._cluster.listener(listener), "--command-config", config)
        return self._kafka.run(tool, *where, *arguments)


@pytest.fixture
def tools(kafka: Kafka, cluster: SecuredCluster) -> Tools:
    return Tools(kafka, cluster)


def test_topics_over_each_listener(tools: Tools, cluster: SecuredCluster) -> None:
    plain = {"security.protocol": "SASL_PLAINTEXT"} | login(
        "PLAIN", f'username="{PLAIN_USER}" password="{PLAIN_SECRET}"'
    )
    for listener, keys in (
        ("PASSWORD", scram(cluster)),
        ("TLS", tls(cluster, "SSL", "alice.pem")),
        ("OPEN", plain),
    ):
        topic = f"over-{listener.lower()}"
        tools.run(TOPICS, listener, keys, "--create", "--topic", topic, "--partitions", "2")
        assert wait_until(lambda: topic in tools.run(TOPICS, listener, keys, "--list").split(), WAIT_S)  # noqa: B023


def test_wrong_passwords_are_reported(tools: Tools, cluster: SecuredCluster) -> None:
    with pytest.raises(ToolFailed, match="invalid credentials with SASL mechanism SCRAM-SHA-512"):
        tools.run(TOPICS, "PASSWORD", scram(cluster, password="wrong"), "--list")


def test_a_certificate_of_another_authority_is_reported(tools: Tools, cluster: SecuredCluster) -> None:
    """And not taken for a fault of the network, after which Kafka's clients would try until a timeout."""
    with pytest.raises(ToolFailed, match="SslAuthenticationException"):
        tools.run(TOPICS, "TLS", tls(cluster, "SSL", "untrusted.pem"), "--list")


def test_a_user_made_by_kafka_configs_gets_in(tools: Tools, cluster: SecuredCluster) -> None:
    entity = ("--entity-type", "users", "--entity-name", "mary")
    config = "SCRAM-SHA-512=[iterations=8192,password=sEcret-of-mary]"
    tools.run(CONFIGS, "PASSWORD", scram(cluster), "--alter", "--add-config", config, *entity)
    mary = scram(cluster, "mary", "sEcret-of-mary")
    assert "over-password" in tools.run(TOPICS, "PASSWORD", mary, "--list")


def test_a_delegation_token_opens_the_door(tools: Tools, cluster: SecuredCluster) -> None:
    told = tools.run(TOKENS, "PASSWORD", scram(cluster), "--create", "--max-life-time-period", "-1")
    rows = [re.split(r"\s+", line) for line in told.splitlines() if f"User:{USER}" in line]
    assert len(rows) == 1, told
    token_id, hmac = rows[0][0], rows[0][1]
    token = scram(cluster, token_id, hmac, ' tokenauth="true"')
    assert wait_until(lambda: "over-password" in tools.run(TOPICS, "PASSWORD", token, "--list"), WAIT_S)
    assert hmac not in cluster.all_output()


def test_a_renewal_that_changes_nothing_succeeds(tools: Tools, cluster: SecuredCluster) -> None:
    """No record is written for the second one; the tool sees the expiry that stands."""
    told = tools.run(TOKENS, "PASSWORD", scram(cluster), "--create", "--max-life-time-period", "3600000")
    (hmac,) = [re.split(r"\s+", line)[1] for line in told.splitlines() if f"User:{USER}" in line]
    renewal = ("--renew", "--hmac", hmac, "--renew-time-period", "3600000")
    expiries = [tools.run(TOKENS, "PASSWORD", scram(cluster), *renewal) for _ in range(2)]
    assert "Completed renew operation. New expiry date" in expiries[0]
    assert expiries[1] == expiries[0]


def test_java_speaks_tls_1_2(tools: Tools, cluster: SecuredCluster) -> None:
    """Its suites with CBC are not offered; those with AEAD are enough."""
    keys = tls(cluster, "SSL", "alice.pem") | {"ssl.protocol": "TLSv1.2", "ssl.enabled.protocols": "TLSv1.2"}
    tools.run(TOPICS, "TLS", keys, "--list")
    cbc = {
        "ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384,TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384"
    }
    with pytest.raises(ToolFailed, match="SslAuthenticationException"):
        tools.run(TOPICS, "TLS", keys | cbc, "--list")


def test_the_quorum_is_described_to_a_certificate(kafka: Kafka, cluster: SecuredCluster) -> None:
    config = cluster.command_config("controller.properties", tls(cluster, "SSL", "alice.pem"))
    where = ("--bootstrap-controller", f"localhost:{cluster.ports[1]}", "--command-config", config)
    assert "LeaderId:" in kafka.run(QUORUM, *where, "describe", "--status")


def test_no_secret_was_written(cluster: SecuredCluster) -> None:
    text = cluster.all_output()
    assert "authentication" in text
    assert [secret for secret in (*SECRETS, "sEcret") if secret in text] == []
