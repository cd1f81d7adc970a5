"""kafka-python's admin client does each operation of an administrator against a running cluster."""

from collections.abc import Iterator

import pytest
from kafka import TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    KafkaAdminClient,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka.errors import KafkaError

from kquorum.cli.processes import wait_until
from tests.support.cluster import Cluster

WAIT_S = 30.0
PREFERRED = 0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("kafka-python"), controllers=3, brokers=3) as running:
        running.start()
        yield running


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Iterator[KafkaAdminClient]:
    servers = [cluster.address(broker_id) for broker_id in cluster.broker_ids]
    client = KafkaAdminClient(bootstrap_servers=servers)
    yield client
    client.close()


def leaders(admin: KafkaAdminClient, topic: str) -> list[int]:
    described = admin.describe_topics([topic])[0]
    partitions = sorted(described["partitions"], key=lambda each: int(each["partition_index"]))
    return [int(each["leader_id"]) for each in partitions]


def replicas(admin: KafkaAdminClient, topic: str) -> list[list[int]]:
    described = admin.describe_topics([topic])[0]
    partitions = sorted(described["partitions"], key=lambda each: int(each["partition_index"]))
    return [list(each["replica_nodes"]) for each in partitions]


def live_brokers(admin: KafkaAdminClient) -> set[int]:
    return {
        int(each["broker_id"]) for each in admin.describe_cluster()["brokers"] if not each.get("is_fenced")
    }


def test_topics_and_partitions(admin: KafkaAdminClient) -> None:
    admin.create_topics({"grown": {"num_partitions": 2, "replication_factor": 2}}, wait_for_metadata=True)
    admin.create_partitions({"grown": 5})
    assert wait_until(lambda: len(replicas(admin, "grown")) == 5, WAIT_S)
    assert all(len(set(each)) == 2 for each in replicas(admin, "grown"))
    with pytest.raises(Exception, match=r"INVALID_PARTITIONS|InvalidPartitions"):
        admin.create_partitions({"grown": 3})
    admin.delete_topics(["grown"])
    assert wait_until(lambda: "grown" not in admin.list_topics(), WAIT_S)


def test_configs_are_set_described_and_reset(admin: KafkaAdminClient) -> None:
    admin.create_topics({"tuned": {"configs": {"cleanup.policy": "delete"}}}, wait_for_metadata=True)
    wanted = {"retention.ms": "60000", "cleanup.policy": ("APPEND", "compact")}

    def is_altered() -> bool:
        """The client first asks some broker which configs there are, and that one may not have the topic yet."""
        try:
            admin.alter_configs([ConfigResource("TOPIC", "tuned", wanted)])
        except ValueError:
            return False
        return True

    assert wait_until(is_altered, WAIT_S)

    def is_shown(key: str, value: str) -> bool:
        """By the broker that the client happens to ask, which may be behind the one that it asked before."""
        told = admin.describe_configs([ConfigResource("TOPIC", "tuned", {key: None})], config_filter="all")
        found = told["topic"].get("tuned", {}).get(key, {"value": ""})
        return sorted(str(found["value"]).split(",")) == sorted(value.split(","))

    assert wait_until(lambda: is_shown("retention.ms", "60000"), WAIT_S)
    assert wait_until(lambda: is_shown("cleanup.policy", "compact,delete"), WAIT_S)
    admin.reset_configs([ConfigResource("TOPIC", "tuned", ["retention.ms"])])
    assert wait_until(lambda: is_shown("retention.ms", "604800000"), WAIT_S), "the default again"
    refused = admin.alter_configs([ConfigResource("TOPIC", "tuned", {"retention.ms": "long"})])
    assert "retention.ms" in str(refused)


def test_a_partition_moves_and_its_preferred_leader_is_elected(
    cluster: Cluster, admin: KafkaAdminClient
) -> None:
    first, second, third = cluster.broker_ids
    admin.create_topics({"moved": {"assignments": {0: [first, second]}}}, wait_for_metadata=True)
    where = TopicPartition("moved", 0)
    assert admin.alter_partition_reassignments({where: [second, first]}) == {where: None}
    assert wait_until(lambda: replicas(admin, "moved") == [[second, first]], WAIT_S)
    assert leaders(admin, "moved") == [first]
    admin.elect_leaders(PREFERRED, {"moved": [0]})
    assert wait_until(lambda: leaders(admin, "moved") == [second], WAIT_S)
    assert admin.alter_partition_reassignments({where: [third, second]}) == {where: None}
    assert wait_until(lambda: replicas(admin, "moved") == [[third, second]], WAIT_S)
    assert admin.list_partition_reassignments() == {}


def test_acls_are_created_described_and_deleted(admin: KafkaAdminClient) -> None:
    acl = ACL(
        principal="User:alice",
        host="*",
        operation=ACLOperation.READ,
        permission_type=ACLPermissionType.ALLOW,
        resource_pattern=ResourcePattern(ResourceType.TOPIC, "orders-", ACLResourcePatternType.PREFIXED),
    )
    everything = ACLFilter(
        principal="User:alice",
        host=None,
        operation=ACLOperation.ANY,
        permission_type=ACLPermissionType.ANY,
        resource_pattern=ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
    )
    created = admin.create_acls([acl])
    assert (created["succeeded"], created["failed"]) == ([acl], [])
    assert wait_until(lambda: admin.describe_acls(everything)[0] == [acl], WAIT_S)
    [(_, deleted, _)] = admin.delete_acls([everything])
    assert deleted == [acl]
    assert wait_until(lambda: admin.describe_acls(everything)[0] == [], WAIT_S)


def test_scram_users_come_and_go(admin: KafkaAdminClient) -> None:
    alteration = UserScramCredentialUpsertion(
        "bob", ScramMechanism.SCRAM_SHA_512, "swordfish", iterations=4096
    )
    assert admin.alter_user_scram_credentials([alteration]) == {"bob": None}

    def known() -> object:
        return admin.describe_user_scram_credentials()

    assert wait_until(lambda: "bob" in str(known()), WAIT_S)
    assert "swordfish" not in str(known())
    gone = UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_512)
    assert admin.alter_user_scram_credentials([gone]) == {"bob": None}
    assert wait_until(lambda: "bob" not in str(known()), WAIT_S)


def test_features_are_described_and_changed(admin: KafkaAdminClient) -> None:
    told = admin.describe_features()["group.version"]
    assert told["supported"] == (0, 1)
    before = told["finalized"]
    admin.update_features({"group.version": ("SAFE_DOWNGRADE", 0)}, validate_only=True)
    assert admin.describe_features()["group.version"]["finalized"] == before
    with pytest.raises(KafkaError, match=r"metadata\.version"):
        admin.update_features({"metadata.version": 3000})


@pytest.mark.slow
def test_all_of_it_goes_on_while_the_quorum_changes_its_leader(
    cluster: Cluster, admin: KafkaAdminClient
) -> None:
    names = [f"through-{number}" for number in range(12)]
    leader = cluster.leader_id()
    for number, name in enumerate(names):
        if number == len(names) // 2:
            cluster.kill(leader)
        admin.create_topics({name: {"num_partitions": 1, "replication_factor": 1}})
    assert wait_until(lambda: set(names) <= set(admin.list_topics()), WAIT_S)
    admin.delete_topics(names)
    assert wait_until(lambda: not set(names) & set(admin.list_topics()), WAIT_S)
    assert cluster.leader_id() != leader
    cluster.start_node(leader)


@pytest.mark.slow
def test_a_reassignment_to_a_dead_broker_is_listed_and_cancelled(cluster: Cluster) -> None:
    """The last test, and a client of its own: kafka-python asks a broker that it knew once, though it be dead."""
    first, second, third = cluster.broker_ids
    cluster.kill(first)
    try:
        fenced = f"broker {first} was fenced"
        assert wait_until(
            lambda: any(fenced in cluster.log_text(each) for each in cluster.controller_ids), WAIT_S
        )
        admin = KafkaAdminClient(bootstrap_servers=[cluster.address(second), cluster.address(third)])
        assert wait_until(lambda: live_brokers(admin) == {second, third}, WAIT_S)
        admin.create_topics({"stuck": {"assignments": {0: [third, second]}}}, wait_for_metadata=True)
        where = TopicPartition("stuck", 0)
        # A dead broker never gets in sync, so this one stays until it is cancelled.
        assert admin.alter_partition_reassignments({where: [second, first]}) == {where: None}
        running = admin.list_partition_reassignments()
        assert (running[where]["adding_replicas"], running[where]["removing_replicas"]) == ([first], [third])
        assert admin.alter_partition_reassignments({where: None}) == {where: None}
        assert admin.list_partition_reassignments() == {}
        assert wait_until(lambda: sorted(replicas(admin, "stuck")[0]) == sorted([second, third]), WAIT_S)
        admin.close()
    finally:
        cluster.start_node(first)
