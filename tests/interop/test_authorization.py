"""Authorization as real clients see it: users with passwords, ACLs made while the cluster runs.

The controllers know each other by SASL/PLAIN as `node`, a super user: they have to before they have read any ACL.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kafka.admin import KafkaAdminClient

from kquorum.cli.processes import wait_until
from kquorum.metadata.authorizer.authorizer import CLASS_NAME
from kquorum.metadata.authorizer.codes import Operation
from tests.interop.kafka_process import Kafka
from tests.support.cluster import Cluster

pytestmark = pytest.mark.interop

WAIT_S = 30.0
USERS = {"admin": "sEcret-a", "alice": "sEcret-b", "bob": "sEcret-c"}
NODE_SECRET = "sEcret-n"
ACLS_TOOL = "org.apache.kafka.tools.AclCommand"


def overrides() -> dict[str, Any]:
    users = " ".join(f'user_{name}="{secret}"' for name, secret in USERS.items())
    node = f'username="node" password="{NODE_SECRET}" user_node="{NODE_SECRET}"'
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,CLIENT:SASL_PLAINTEXT",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": f"PlainLoginModule required {node};",
        "listener.name.client.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": f"PlainLoginModule required {users};",
        "authorizer.class.name": CLASS_NAME,
        "super.users": ["User:node", "User:admin"],
        "auto.create.topics.enable": True,
    }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("authorized")
    with Cluster(folder, brokers=2, overrides=overrides(), broker_listener="CLIENT") as running:
        running.start()
        admin = confluent(running, "admin")
        finish(admin.create_topics([NewTopic("orders", 1, 2), NewTopic("secret", 1, 2)]))
        assert wait_until(lambda: {"orders", "secret"} <= topics_of(admin), WAIT_S)
        yield running


def address(cluster: Cluster) -> str:
    return ",".join(cluster.address(each) for each in cluster.broker_ids)


def confluent(cluster: Cluster, user: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": address(cluster),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": USERS[user],
            "socket.timeout.ms": 10_000,
        }
    )


def finish(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(WAIT_S)


def refusals(futures: dict[Any, Any]) -> list[str]:
    told = []
    for future in futures.values():
        with pytest.raises(KafkaException) as caught:
            future.result(WAIT_S)
        told.append(caught.value.args[0].name())
    return told


def topics_of(admin: AdminClient) -> set[str]:
    return set(admin.list_topics(timeout=WAIT_S).topics)


def binding(user: str, operation: AclOperation, name: str, **changes: Any) -> AclBinding:
    return AclBinding(
        changes.get("resource_type", ResourceType.TOPIC),
        name,
        changes.get("pattern", ResourcePatternType.LITERAL),
        f"User:{user}",
        "*",
        operation,
        changes.get("permission", AclPermissionType.ALLOW),
    )


def grant(cluster: Cluster, *bindings: AclBinding) -> None:
    admin = confluent(cluster, "admin")  # it must outlive what it is asked
    finish(admin.create_acls(list(bindings)))


def test_without_acls_a_user_sees_nothing_and_changes_nothing(cluster: Cluster) -> None:
    bob = confluent(cluster, "bob")
    listed = bob.list_topics(timeout=WAIT_S)
    assert len(listed.brokers) == 2
    assert not listed.topics
    assert refusals(bob.create_topics([NewTopic("of-bob", 1, 1)])) == ["TOPIC_AUTHORIZATION_FAILED"]
    assert refusals(bob.delete_topics(["orders"])) == ["TOPIC_AUTHORIZATION_FAILED"]
    assert refusals(bob.create_partitions([NewPartitions("orders", 3)])) == ["TOPIC_AUTHORIZATION_FAILED"]
    assert refusals(bob.describe_configs([ConfigResource(ResourceType.TOPIC, "orders")])) == [
        "TOPIC_AUTHORIZATION_FAILED"
    ]
    assert refusals(bob.create_acls([binding("bob", AclOperation.ALL, "orders")])) == [
        "CLUSTER_AUTHORIZATION_FAILED"
    ]
    named = bob.list_topics("orders", timeout=WAIT_S).topics["orders"]
    assert named.error is not None
    assert named.error.name() == "TOPIC_AUTHORIZATION_FAILED"
    assert {"orders", "secret"} <= topics_of(confluent(cluster, "admin"))


def test_what_is_granted_is_there_at_every_broker(cluster: Cluster) -> None:
    grant(
        cluster,
        binding("alice", AclOperation.DESCRIBE, "orders"),
        binding("alice", AclOperation.CREATE, "alices-", pattern=ResourcePatternType.PREFIXED),
        binding("alice", AclOperation.ALL, "alices-", pattern=ResourcePatternType.PREFIXED),
        binding("alice", AclOperation.DELETE, "alices-kept", permission=AclPermissionType.DENY),
    )
    alice = confluent(cluster, "alice")
    assert wait_until(lambda: topics_of(alice) == {"orders"}, WAIT_S)
    finish(alice.create_topics([NewTopic("alices-own", 1, 1), NewTopic("alices-kept", 1, 1)]))
    assert wait_until(lambda: topics_of(alice) == {"orders", "alices-own", "alices-kept"}, WAIT_S)
    assert refusals(alice.delete_topics(["orders"])) == ["TOPIC_AUTHORIZATION_FAILED"]
    assert refusals(alice.delete_topics(["alices-kept"])) == ["TOPIC_AUTHORIZATION_FAILED"]
    finish(alice.delete_topics(["alices-own"]))
    assert wait_until(lambda: "alices-own" not in topics_of(alice), WAIT_S)


def kafka_python(cluster: Cluster, user: str) -> KafkaAdminClient:
    return KafkaAdminClient(
        bootstrap_servers=address(cluster).split(","),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username=user,
        sasl_plain_password=USERS[user],
    )


def test_kafka_python_is_refused_and_served_alike(cluster: Cluster) -> None:
    admin, bob = kafka_python(cluster, "admin"), kafka_python(cluster, "bob")
    try:
        assert "secret" in admin.list_topics()
        assert "secret" not in bob.list_topics()
        grant(cluster, binding("bob", AclOperation.READ, "secret"))
        assert wait_until(lambda: "secret" in bob.list_topics(), WAIT_S)
    finally:
        admin.close()
        bob.close()


def test_operations_are_reported_as_they_are(cluster: Cluster) -> None:
    rights = (AclOperation.DESCRIBE, AclOperation.ALTER_CONFIGS)
    grant(cluster, *(binding("alice", each, "orders") for each in rights))
    alice = confluent(cluster, "alice")
    assert wait_until(lambda: "orders" in topics_of(alice), WAIT_S)

    def operations() -> set[int]:
        futures = alice.describe_topics(TopicCollection(["orders"]), include_authorized_operations=True)
        [topic] = [future.result(WAIT_S) for future in futures.values()]
        return {each.value for each in topic.authorized_operations}

    wanted = {Operation.DESCRIBE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS}
    assert wait_until(lambda: wanted <= operations(), WAIT_S)
    assert Operation.WRITE not in operations()


def test_kafkas_own_tool_grants_and_takes_away(cluster: Cluster, kafka: Kafka, tmp_path: Path) -> None:
    config = tmp_path / "admin.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="admin" password="{USERS["admin"]}";\n'
    )
    where = ("--bootstrap-server", address(cluster), "--command-config", str(config))
    what = ("--allow-principal", "User:bob", "--operation", "Create", "--cluster")
    bob = confluent(cluster, "bob")
    assert refusals(bob.create_topics([NewTopic("of-bob", 1, 1)])) == ["TOPIC_AUTHORIZATION_FAILED"]
    assert "operation=CREATE, permissionType=ALLOW" in kafka.run(ACLS_TOOL, *where, "--add", *what)
    finish(bob.create_topics([NewTopic("of-bob", 1, 1)]))
    kafka.run(ACLS_TOOL, *where, "--remove", "--force", *what)
    assert refusals(bob.create_topics([NewTopic("of-bob-too", 1, 1)])) == ["TOPIC_AUTHORIZATION_FAILED"]


def test_acls_and_refusals_survive_the_active_controller(cluster: Cluster) -> None:
    old = cluster.leader_id()
    cluster.kill(old)
    try:
        assert wait_until(lambda: cluster.leader_id() != old, WAIT_S)
        bob = confluent(cluster, "bob")
        assert refusals(bob.create_topics([NewTopic("of-bob-3", 1, 1)])) == ["TOPIC_AUTHORIZATION_FAILED"]
    finally:
        cluster.start_node(old)


def test_acls_are_listed_for_clients_that_may_describe_the_cluster(cluster: Cluster) -> None:
    everything = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    grant(cluster, binding("carol", AclOperation.READ, "orders"))
    admin, bob = confluent(cluster, "admin"), confluent(cluster, "bob")
    assert wait_until(lambda: admin.describe_acls(everything).result(WAIT_S), WAIT_S)
    # librdkafka has no place for the error of the whole answer; the log says that there was one.
    assert bob.describe_acls(everything).result(WAIT_S) == []
    denied = "User:bob at 127.0.0.1 is denied DESCRIBE on cluster kafka-cluster, asked by DESCRIBE_ACLS"
    assert wait_until(lambda: any(denied in cluster.log_text(each) for each in cluster.broker_ids), WAIT_S)


def test_denials_are_in_the_log_and_secrets_are_not(cluster: Cluster) -> None:
    bob = confluent(cluster, "bob")
    refused = refusals(bob.create_acls([binding("bob", AclOperation.ALL, "orders")]))
    refused += refusals(bob.delete_topics(["secret"]))
    assert refused == ["CLUSTER_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"]
    denials = (
        "User:bob at 127.0.0.1 is denied ALTER on cluster kafka-cluster, asked by CREATE_ACLS",
        "User:bob at 127.0.0.1 is denied DELETE on topic secret, asked by DELETE_TOPICS",
    )
    assert wait_until(lambda: all(denial in _logs(cluster) for denial in denials), WAIT_S)
    assert "sEcret" not in _logs(cluster)


def _logs(cluster: Cluster) -> str:
    return "".join(cluster.log_text(node_id) for node_id in cluster.node_ids)
