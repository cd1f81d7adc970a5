"""Real clients over TLS and SASL against a real cluster, and those that must not get in."""

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
)
from confluent_kafka.admin import UserScramCredentialUpsertion as Upsertion
from kafka.admin import KafkaAdminClient

from kquorum.cli.processes import wait_until
from tests.support.secured import (
    LISTENERS,
    PLAIN_SECRET,
    PLAIN_USER,
    SECRETS,
    USER,
    USER_SECRET,
    SecuredCluster,
)

pytestmark = pytest.mark.interop

WAIT_S = 30.0
Admin = Callable[..., Any]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with SecuredCluster(tmp_path_factory.mktemp("secured"), controllers=3, brokers=2) as running:
        running.start()
        yield running


def confluent(cluster: SecuredCluster, listener: str, **keys: str) -> AdminClient:
    config = {"bootstrap.servers": cluster.listener(listener), "ssl.ca.location": cluster.file("ca.pem")}
    if listener == "TLS":
        config |= {"security.protocol": "SSL"}
    elif listener == "PASSWORD":
        config |= scram("SASL_SSL", "SCRAM-SHA-512", USER, USER_SECRET)
    else:
        config |= scram("SASL_PLAINTEXT", "PLAIN", PLAIN_USER, PLAIN_SECRET)
    return AdminClient(config | {"socket.timeout.ms": "5000"} | keys)  # type: ignore[arg-type]


def scram(protocol: str, mechanism: str, name: str, password: str) -> dict[str, str]:
    return {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
    }


def kafka_python(cluster: SecuredCluster, listener: str, **keys: Any) -> KafkaAdminClient:
    config: dict[str, Any] = {"bootstrap_servers": cluster.listener(listener).split(",")}
    if listener != "OPEN":
        config |= {"ssl_cafile": cluster.file("ca.pem")}
    if listener == "TLS":
        config |= {"security_protocol": "SSL"}
    else:
        is_open = listener == "OPEN"
        config |= {
            "security_protocol": "SASL_PLAINTEXT" if is_open else "SASL_SSL",
            "sasl_mechanism": "PLAIN" if is_open else "SCRAM-SHA-512",
            "sasl_plain_username": PLAIN_USER if is_open else USER,
            "sasl_plain_password": PLAIN_SECRET if is_open else USER_SECRET,
        }
    return KafkaAdminClient(**config | keys)


def ports(cluster: SecuredCluster, listener: str) -> set[int]:
    return {cluster.listener_ports[broker_id, listener] for broker_id in cluster.broker_ids}


@pytest.mark.parametrize("listener", LISTENERS)
def test_librdkafka_does_its_work(cluster: SecuredCluster, listener: str) -> None:
    admin = confluent(cluster, listener)
    topic = f"of-librdkafka-{listener.lower()}"
    for future in admin.create_topics([NewTopic(topic, 2, 2)]).values():
        future.result(WAIT_S)
    assert wait_until(lambda: topic in admin.list_topics(timeout=WAIT_S).topics, WAIT_S)
    # Metadata has each broker's endpoint on the listener that was asked.
    assert {each.port for each in admin.list_topics(timeout=WAIT_S).brokers.values()} == ports(
        cluster, listener
    )
    for future in admin.delete_topics([topic]).values():
        future.result(WAIT_S)


class OldTls(SecuredCluster):
    """Its listener TLS speaks TLS 1.2 only: librdkafka has no key for the version."""

    def _common(self) -> dict[str, Any]:
        return super()._common() | {"listener.name.tls.ssl.enabled.protocols": "TLSv1.2"}


@pytest.mark.slow
def test_clients_of_tls_1_2_get_in(tmp_path: Path) -> None:
    """librdkafka and kafka-python know the suites with AEAD, which are the only ones."""
    with OldTls(tmp_path, controllers=1, brokers=1) as running:
        running.start()
        assert confluent(running, "TLS").list_topics(timeout=WAIT_S).brokers
        admin = kafka_python(running, "TLS")
        assert admin.describe_cluster()["brokers"]
        admin.close()


@pytest.mark.parametrize("listener", LISTENERS)
def test_kafka_python_does_its_work(cluster: SecuredCluster, listener: str) -> None:
    admin = kafka_python(cluster, listener)
    topic = f"of-kafka-python-{listener.lower()}"
    admin.create_topics({topic: {"num_partitions": 2, "replication_factor": 2}}, wait_for_metadata=True)
    assert topic in admin.list_topics()
    assert {int(each["port"]) for each in admin.describe_cluster()["brokers"]} == ports(cluster, listener)
    admin.delete_topics([topic])
    admin.close()


def test_the_other_scram(cluster: SecuredCluster) -> None:
    admin = confluent(cluster, "PASSWORD", **{"sasl.mechanism": "SCRAM-SHA-256"})
    assert len(admin.list_topics(timeout=WAIT_S).brokers) == 2


def test_a_user_made_while_the_cluster_runs_gets_in_at_every_broker(cluster: SecuredCluster) -> None:
    admin = confluent(cluster, "PASSWORD")
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    alteration = Upsertion("late-comer", info, b"sEcret-of-the-late-comer")
    for future in admin.alter_user_scram_credentials([alteration]).values():
        future.result(WAIT_S)
    for broker_id in cluster.broker_ids:
        address = f"localhost:{cluster.listener_ports[broker_id, 'PASSWORD']}"
        keys = {"bootstrap.servers": address, "sasl.username": "late-comer"}
        client = confluent(cluster, "PASSWORD", **keys, **{"sasl.password": "sEcret-of-the-late-comer"})
        assert wait_until(lambda client=client: can_list(client), WAIT_S)  # type: ignore[misc]


def can_list(admin: AdminClient) -> bool:
    try:
        admin.list_topics(timeout=5)
    except KafkaException:
        return False
    return True


@pytest.mark.parametrize(
    ("listener", "keys"),
    [
        ("PASSWORD", {"sasl.password": "wrong"}),
        ("PASSWORD", {"sasl.username": "unknown"}),
        ("OPEN", {"sasl.password": "wrong"}),
        ("PASSWORD", {"sasl.mechanism": "PLAIN"}),
    ],
)
def test_a_wrong_password_is_refused(cluster: SecuredCluster, listener: str, keys: dict[str, str]) -> None:
    errors: list[str] = []
    keys = keys | {"error_cb": lambda error: errors.append(str(error))}  # type: ignore[dict-item]
    admin = confluent(cluster, listener, **keys)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=1)
    assert wait_until(lambda: admin.poll(0.1) is not None and bool(errors), WAIT_S)
    assert any("invalid credentials" in error or "mechanism" in error for error in errors), errors


KAFKA_PYTHON = """
import logging, sys
from kafka.admin import KafkaAdminClient
logging.basicConfig(level=logging.WARNING, stream=sys.stdout)
KafkaAdminClient(bootstrap_servers=sys.argv[1], security_protocol="SASL_SSL", ssl_cafile=sys.argv[2],
    sasl_mechanism="SCRAM-SHA-512", sasl_plain_username="unknown", sasl_plain_password="x", bootstrap_timeout_ms=2000)
"""


def test_kafka_python_stays_out_too(cluster: SecuredCluster) -> None:
    """In a process of its own, for it leaves its sockets to the garbage collector."""
    command = (sys.executable, "-W", "ignore", "-c", KAFKA_PYTHON)
    arguments = (cluster.listener("PASSWORD").split(",")[0], cluster.file("ca.pem"))
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    # It does not read an answer behind which the connection ends at once.
    assert (
        "invalid credentials with SASL mechanism SCRAM-SHA-512" in done.stdout
        or "disconnected" in done.stdout
    )


def test_a_certificate_of_another_authority_is_refused_and_affects_no_other_client(
    cluster: SecuredCluster,
) -> None:
    good = confluent(cluster, "TLS", **pair(cluster, "alice.pem"))
    assert can_list(good)
    untrusted = confluent(cluster, "TLS", **pair(cluster, "untrusted.pem"))
    with pytest.raises(KafkaException):
        untrusted.list_topics(timeout=1)
    assert can_list(good)
    logs = "".join(cluster.log_text(broker_id) for broker_id in cluster.broker_ids)
    assert "its certificate is of an authority that is not trusted here" in logs


def pair(cluster: SecuredCluster, name: str) -> dict[str, str]:
    return {"ssl.certificate.location": cluster.file(name), "ssl.key.location": cluster.file(name)}


def test_a_client_that_trusts_another_authority_leaves_by_itself(cluster: SecuredCluster) -> None:
    admin = confluent(cluster, "TLS", **{"ssl.ca.location": cluster.file("untrusted.pem")})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=1)


def test_bytes_that_are_no_tls_on_a_port_with_tls(cluster: SecuredCluster) -> None:
    for data in (b"GET / HTTP/1.1\r\n\r\n", bytes(64), b"\x16\x03\x01\xff\xff" + b"x" * 100):
        address = ("127.0.0.1", cluster.listener_ports[cluster.broker_ids[0], "TLS"])
        with socket.create_connection(address, timeout=WAIT_S) as raw:
            raw.sendall(data)
            raw.shutdown(socket.SHUT_WR)
            assert drained(raw)
    assert can_list(confluent(cluster, "TLS"))


def drained(raw: socket.socket) -> bool:
    """Whether the server ends the connection."""
    try:
        while raw.recv(4096):
            pass
    except ConnectionResetError:
        return True
    return True


@pytest.mark.slow
def test_leaders_change_under_tls(cluster: SecuredCluster) -> None:
    """Controllers find each other again, and clients notice nothing but a pause."""
    old = cluster.leader_id()
    cluster.kill(old)
    try:
        assert wait_until(lambda: cluster.leader_id() != old, WAIT_S)
        admin = confluent(cluster, "PASSWORD")
        for future in admin.create_topics([NewTopic("after-the-change", 1, 1)]).values():
            future.result(WAIT_S)
    finally:
        cluster.start_node(old)


def test_describe_configs_tells_no_secret(cluster: SecuredCluster) -> None:
    resource = ConfigResource(ResourceType.BROKER, str(cluster.broker_ids[0]))
    admin = confluent(cluster, "PASSWORD")
    [configs] = [each.result(WAIT_S) for each in admin.describe_configs([resource]).values()]
    assert configs["ssl.keystore.location"].value.endswith(".pem")
    assert configs["delegation.token.secret.key"].value is None
    told = " ".join(str(entry.value) for entry in configs.values())
    assert [secret for secret in SECRETS if secret in told] == []


def test_no_secret_is_in_anything_that_was_written(cluster: SecuredCluster) -> None:
    """As much as was written by now, and of two logins that nodes had something to say about."""
    for listener in ("PASSWORD", "OPEN"):
        with pytest.raises(KafkaException):
            confluent(cluster, listener, **{"sasl.password": f"no-{USER_SECRET}"}).list_topics(timeout=1)
    assert wait_until(lambda: "authentication" in cluster.all_output(), WAIT_S)
    text = cluster.all_output()
    assert [secret for secret in SECRETS if secret in text] == []
    assert "sEcret" not in text
