"""librdkafka's admin client does each operation of an administrator against a running cluster."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import ElectionType, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from kquorum.cli.processes import wait_until
from tests.support.cluster import Cluster

WAIT_S = 30.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("confluent"), controllers=3, brokers=2) as running:
        running.start()
        yield running


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> AdminClient:
    servers = ",".join(cluster.address(broker_id) for broker_id in cluster.broker_ids)
    return AdminClient({"bootstrap.servers": servers, "socket.timeout.ms": 10_000})


def done(futures: dict[Any, Any]) -> list[Any]:
    """All results, in the order of the requests; raises KafkaException for the first refusal."""
    return [future.result(WAIT_S) for future in futures.values()]


def partitions(admin: AdminClient, topic: str) -> Any:
    [described] = done(admin.describe_topics(TopicCollection([topic])))
    return described.partitions


def create(admin: AdminClient, topic: NewTopic) -> None:
    done(admin.create_topics([topic]))
    assert wait_until(lambda: topic.topic in admin.list_topics(timeout=WAIT_S).topics, WAIT_S)


def test_topics_and_partitions(admin: AdminClient) -> None:
    create(admin, NewTopic("grown", 2, 2))
    done(admin.create_partitions([NewPartitions("grown", 4)]))
    assert wait_until(lambda: len(partitions(admin, "grown")) == 4, WAIT_S)
    with pytest.raises(KafkaException, match=r"partitions|INVALID_PARTITIONS"):
        done(admin.create_partitions([NewPartitions("grown", 4)]))
    with pytest.raises(KafkaException, match="exists"):
        done(admin.create_topics([NewTopic("grown", 1, 1)]))
    done(admin.delete_topics(["grown"]))
    assert wait_until(lambda: "grown" not in admin.list_topics(timeout=WAIT_S).topics, WAIT_S)


def test_configs_of_topics_and_brokers(cluster: Cluster, admin: AdminClient) -> None:
    create(admin, NewTopic("tuned", 1, 1))
    topic = ConfigResource(ConfigResource.Type.TOPIC, "tuned")
    topic.add_incremental_config(
        ConfigEntry("retention.ms", "60000", incremental_operation=AlterConfigOpType.SET)
    )
    broker_id = str(cluster.broker_ids[0])
    broker = ConfigResource(ConfigResource.Type.BROKER, broker_id)
    broker.add_incremental_config(
        ConfigEntry("log.cleaner.threads", "2", incremental_operation=AlterConfigOpType.SET)
    )
    done(admin.incremental_alter_configs([topic]))
    done(admin.incremental_alter_configs([broker]))

    def told(key: str, *, of: ConfigResource = topic) -> Any:
        [entries] = done(admin.describe_configs([ConfigResource(of.restype, of.name)]))
        return entries[key]

    assert wait_until(lambda: told("retention.ms").value == "60000", WAIT_S)
    assert not told("retention.ms").is_default
    assert wait_until(lambda: told("log.cleaner.threads", of=broker).value == "2", WAIT_S)
    assert told("node.id", of=broker).value == broker_id
    assert told("node.id", of=broker).is_read_only
    assert told("segment.bytes").value == "1073741824"
    assert told("segment.bytes").is_default
    legacy = ConfigResource(ConfigResource.Type.TOPIC, "tuned", set_config={"segment.ms": "1000"})
    with pytest.warns(DeprecationWarning, match="alter_configs"):
        done(admin.alter_configs([legacy]))
    assert wait_until(lambda: told("segment.ms").value == "1000", WAIT_S)
    assert told("retention.ms").is_default, "what a legacy request does not name is taken off"


def test_preferred_leaders_are_elected(cluster: Cluster, admin: AdminClient) -> None:
    create(admin, NewTopic("led", 2, replica_assignment=[list(cluster.broker_ids)] * 2))
    outcome = admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("led", 0)]).result(WAIT_S)
    assert [error.name() for error in outcome.values()] == ["ELECTION_NOT_NEEDED"]


def test_acls_are_created_described_and_deleted(admin: AdminClient) -> None:
    binding = AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.LITERAL,
        "User:carol",
        "*",
        AclOperation.WRITE,
        AclPermissionType.DENY,
    )
    everything = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        "User:carol",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    done(admin.create_acls([binding]))
    assert wait_until(lambda: admin.describe_acls(everything).result(WAIT_S) == [binding], WAIT_S)
    assert done(admin.delete_acls([everything])) == [[binding]]
    assert wait_until(lambda: admin.describe_acls(everything).result(WAIT_S) == [], WAIT_S)


def test_scram_users_come_and_go(admin: AdminClient) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    done(admin.alter_user_scram_credentials([UserScramCredentialUpsertion("dave", info, b"swordfish")]))

    def known() -> Any:
        return admin.describe_user_scram_credentials().result(WAIT_S)

    assert wait_until(lambda: "dave" in known(), WAIT_S)
    assert [each.iterations for each in known()["dave"].scram_credential_infos] == [8192]
    gone = UserScramCredentialDeletion("dave", ScramMechanism.SCRAM_SHA_256)
    done(admin.alter_user_scram_credentials([gone]))
    assert wait_until(lambda: "dave" not in known(), WAIT_S)
    with pytest.raises(KafkaException, match=r"RESOURCE_NOT_FOUND|not found|non-existent|does not exist"):
        done(admin.alter_user_scram_credentials([gone]))


def test_all_of_it_goes_on_while_the_quorum_changes_its_leader(cluster: Cluster, admin: AdminClient) -> None:
    names = [f"through-{number}" for number in range(12)]
    leader = cluster.leader_id()
    for number, name in enumerate(names):
        if number == len(names) // 2:
            cluster.kill(leader)
        done(admin.create_topics([NewTopic(name, 1, 1)], operation_timeout=WAIT_S, request_timeout=WAIT_S))
    assert wait_until(lambda: set(names) <= set(admin.list_topics(timeout=WAIT_S).topics), WAIT_S)
    assert cluster.leader_id() != leader
    cluster.start_node(leader)
