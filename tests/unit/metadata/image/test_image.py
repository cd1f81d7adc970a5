"""What each record does to an image, and which records are refused."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from kquorum.metadata.image.cluster import Endpoint
from kquorum.metadata.image.configs import ConfigResource
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.directories import MIGRATING
from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.partitions import EMPTY_PARTITIONS
from kquorum.metadata.image.records import image_values
from kquorum.metadata.image.security import ScramUser
from kquorum.wire.errors import UnsupportedVersion
from kquorum.wire.metadata_records import cluster, configs, features, security, topics
from kquorum.wire.schema import MetadataRecord
from tests.support.image_records import image_from_values, image_records

A, B = UUID(int=0xA), UUID(int=0xB)
DIRECTORY = UUID(int=1000)


def replayed(*records: MetadataRecord, image: MetadataImage | None = None) -> MetadataImage:
    return delta_of(*records, image=image).apply(Provenance(last_contained_offset=len(records) - 1))


def delta_of(*records: MetadataRecord, image: MetadataImage | None = None) -> MetadataDelta:
    delta = MetadataDelta(image or MetadataImage.empty())
    for offset, record in enumerate(records):
        delta.replay(record, offset)
    return delta


def topic(name: str, topic_id: UUID) -> topics.TopicRecord:
    return topics.TopicRecord(name=name, topic_id=topic_id)


def partition(topic_id: UUID, number: int = 0, replicas: Sequence[int] = (0, 1)) -> topics.PartitionRecord:
    members = tuple(replicas)
    return topics.PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=members,
        isr=members,
        leader=members[0],
        leader_epoch=0,
        partition_epoch=0,
    )


def broker(broker_id: int, epoch: int = 5) -> cluster.RegisterBrokerRecord:
    return cluster.RegisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch, incarnation_id=UUID(int=9))


class TestTopics:
    def test_records_before_directories_mean_migrating(self) -> None:
        image = replayed(topic("a", A), partition(A))
        state = image.topics.partition(A, 0)
        assert state is not None
        assert state.directories == (MIGRATING, MIGRATING)

    def test_change_merges_only_what_it_names(self) -> None:
        image = replayed(topic("a", A), partition(A))
        change = topics.PartitionChangeRecord(partition_id=0, topic_id=A, leader=1, isr=(1,))
        state = replayed(change, image=image).topics.partition(A, 0)
        assert state is not None
        assert (state.leader, state.isr, state.replicas) == (1, (1,), (0, 1))
        assert (state.leader_epoch, state.partition_epoch) == (1, 1)

    def test_change_of_replicas_without_directories_keeps_known_ones(self) -> None:
        made = replace(partition(A), directories=(DIRECTORY, MIGRATING))
        change = topics.PartitionChangeRecord(partition_id=0, topic_id=A, replicas=(2, 0))
        state = replayed(topic("a", A), made, change).topics.partition(A, 0)
        assert state is not None
        assert state.directories == (MIGRATING, DIRECTORY)

    def test_untouched_topic_is_the_same_object(self) -> None:
        image = replayed(topic("a", A), partition(A), topic("b", B), partition(B))
        change = topics.PartitionChangeRecord(partition_id=0, topic_id=A, leader=1)
        changed = replayed(change, image=image)
        assert changed.topics.by_id[B] is image.topics.by_id[B]
        assert changed.cluster is image.cluster
        assert image.topics.by_name["a"].partitions.leaders.tolist().count(0) == 1
        assert changed.topics.by_name["a"].partitions.leaders.tolist().count(0) == 0

    def test_removed_and_made_again_under_the_same_name(self) -> None:
        image = replayed(topic("a", A), partition(A))
        delta = delta_of(topics.RemoveTopicRecord(topic_id=A), topic("a", B), partition(B), image=image)
        assert (delta.created_topic_ids, delta.deleted_topic_ids) == ({B}, {A})
        changed = delta.apply(Provenance())
        assert changed.topics.by_name["a"].id == B
        assert A not in changed.topics.by_id

    def test_made_and_removed_in_one_delta_never_was(self) -> None:
        delta = delta_of(topic("a", A), partition(A), topics.RemoveTopicRecord(topic_id=A))
        assert (delta.created_topic_ids, delta.deleted_topic_ids, delta.changed_topics) == (set(), set(), {})
        assert delta.apply(Provenance()).topics.is_empty

    def test_configs_go_with_their_topic(self) -> None:
        set_both = [
            configs.ConfigRecord(resource_type=2, resource_name=name, name="k", value="v")
            for name in ("a", "b")
        ]
        image = replayed(topic("a", A), *set_both, topics.RemoveTopicRecord(topic_id=A))
        assert set(image.configs.resources) == {ConfigResource(2, "b")}

    @pytest.mark.parametrize("name", ["a", ""])
    def test_clear_elr(self, name: str) -> None:
        made = replace(partition(A), eligible_leader_replicas=(1,), last_known_elr=(0,))
        image = replayed(
            topic("a", A), made, topic("b", B), partition(B), topics.ClearElrRecord(topic_name=name)
        )
        state, other = image.topics.partition(A, 0), image.topics.partition(B, 0)
        assert state is not None
        assert other is not None
        assert (state.elr, state.last_known_elr, state.partition_epoch) == ((), (), 1)
        assert other.partition_epoch == 0

    @pytest.mark.parametrize(
        "record",
        [
            topic("a", B),
            topic("b", A),
            partition(B),
            topics.PartitionChangeRecord(partition_id=0, topic_id=B),
            topics.PartitionChangeRecord(partition_id=7, topic_id=A),
            topics.RemoveTopicRecord(topic_id=B),
            topics.ClearElrRecord(topic_name="b"),
            replace(partition(A, 1), directories=(DIRECTORY,)),
        ],
    )
    def test_contradictions(self, record: MetadataRecord) -> None:
        image = replayed(topic("a", A), partition(A))
        with pytest.raises(ReplayError) as caught:
            MetadataDelta(image).replay(record, 42)
        assert (caught.value.offset, caught.value.record) == (42, record)
        assert "offset 42" in str(caught.value)
        assert type(record).__name__ in str(caught.value)


class TestCluster:
    def test_old_and_new_ways_to_fence(self) -> None:
        image = replayed(broker(1), cluster.UnfenceBrokerRecord(id=1, epoch=5))
        assert not image.cluster.brokers[1].fenced
        image = replayed(cluster.FenceBrokerRecord(id=1, epoch=5), image=image)
        assert image.cluster.brokers[1].fenced
        change = cluster.BrokerRegistrationChangeRecord(
            broker_id=1, broker_epoch=5, fenced=-1, in_controlled_shutdown=1, log_dirs=(DIRECTORY,)
        )
        registration = replayed(change, image=image).cluster.brokers[1]
        assert (registration.fenced, registration.in_controlled_shutdown) == (False, True)
        assert registration.log_dirs == (DIRECTORY,)

    def test_cordoned_directories_are_replaced_and_kept(self) -> None:
        cordon = cluster.BrokerRegistrationChangeRecord(
            broker_id=1, broker_epoch=5, cordoned_log_dirs=(DIRECTORY,)
        )
        fence = cluster.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=1)
        assert replayed(broker(1), cordon, fence).cluster.brokers[1].cordoned_log_dirs == (DIRECTORY,)

    def test_unregistered_broker_is_reported_as_none(self) -> None:
        delta = delta_of(broker(1), cluster.UnregisterBrokerRecord(broker_id=1, broker_epoch=5))
        assert dict(delta.changed_brokers) == {1: None}

    def test_controllers(self) -> None:
        end_point = cluster.ControllerEndpoint(name="C", host="h", port=9093, security_protocol=0)
        register = cluster.RegisterControllerRecord(
            controller_id=7, incarnation_id=A, end_points=(end_point,)
        )
        image = replayed(register)
        assert image.cluster.controllers[7].end_points == (Endpoint("C", "h", 9093, 0),)
        assert replayed(cluster.UnregisterControllerRecord(controller_id=7), image=image).cluster.is_empty

    @pytest.mark.parametrize(
        "record",
        [
            cluster.UnregisterBrokerRecord(broker_id=2, broker_epoch=5),
            cluster.UnregisterBrokerRecord(broker_id=1, broker_epoch=4),
            cluster.FenceBrokerRecord(id=1, epoch=6),
            cluster.UnfenceBrokerRecord(id=2, epoch=5),
            cluster.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=6, fenced=1),
            cluster.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=2),
            cluster.UnregisterControllerRecord(controller_id=1),
        ],
    )
    def test_contradictions(self, record: MetadataRecord) -> None:
        with pytest.raises(ReplayError, match="offset 42"):
            MetadataDelta(replayed(broker(1))).replay(record, 42)


class TestOthers:
    def test_level_zero_takes_a_feature_off(self) -> None:
        on = features.FeatureLevelRecord(name="group.version", feature_level=1)
        off = features.FeatureLevelRecord(name="group.version", feature_level=0)
        assert replayed(on, off).features.is_empty

    def test_log_without_a_level_is_of_the_first(self) -> None:
        assert replayed(broker(1)).metadata_version == 1

    def test_empty_resources_and_entities_vanish(self) -> None:
        entity = (configs.EntityData(entity_type="user", entity_name=None),)
        image = replayed(
            configs.ConfigRecord(resource_type=4, resource_name="", name="k", value="v"),
            configs.ConfigRecord(resource_type=4, resource_name="", name="k", value=None),
            configs.ConfigRecord(resource_type=4, resource_name="1", name="never set", value=None),
            configs.ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=1.0),
            configs.ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=0.0, remove=True),
        )
        assert image.is_empty

    def test_quota_entity_is_the_same_in_any_order(self) -> None:
        user = configs.EntityData(entity_type="user", entity_name="u")
        client = configs.EntityData(entity_type="client-id", entity_name=None)
        image = replayed(
            configs.ClientQuotaRecord(entity=(user, client), key="k", value=1.0),
            configs.ClientQuotaRecord(entity=(client, user), key="k", value=2.0),
        )
        assert [dict(quotas) for quotas in image.client_quotas.entities.values()] == [{"k": 2.0}]

    def test_secrets_are_not_shown(self) -> None:
        record = security.UserScramCredentialRecord(
            name="u", mechanism=1, salt=b"SALT", stored_key=b"STORED", server_key=b"SERVER", iterations=4096
        )
        image = replayed(record)
        assert image.security.scram[ScramUser(1, "u")].salt == b"SALT"
        assert not any(secret in repr(image) for secret in ("SALT", "STORED", "SERVER"))

    @pytest.mark.parametrize(
        "record",
        [
            features.ProducerIdsRecord(broker_id=1, next_producer_id=1000),
            security.AccessControlEntryRecord(
                id=A,
                resource_type=2,
                resource_name="a",
                pattern_type=3,
                principal="User:u",
                host="*",
                operation=3,
                permission_type=3,
            ),
            security.RemoveAccessControlEntryRecord(id=B),
            security.RemoveUserScramCredentialRecord(name="u", mechanism=1),
        ],
    )
    def test_contradictions(self, record: MetadataRecord) -> None:
        entry = security.AccessControlEntryRecord(
            id=A,
            resource_type=2,
            resource_name="a",
            pattern_type=3,
            principal="User:u",
            host="*",
            operation=3,
            permission_type=3,
        )
        image = replayed(entry, features.ProducerIdsRecord(broker_id=1, next_producer_id=1000))
        with pytest.raises(ReplayError, match="offset 42"):
            MetadataDelta(image).replay(record, 42)

    def test_no_ops_and_markers_change_nothing(self) -> None:
        delta = delta_of(features.NoOpRecord(), features.EndTransactionRecord())
        assert delta.is_empty
        assert delta.apply(Provenance()) == MetadataImage.empty()


class TestSnapshots:
    def test_metadata_version_comes_first(self) -> None:
        image = replayed(
            features.FeatureLevelRecord(name="a.version", feature_level=1),
            features.FeatureLevelRecord(name="metadata.version", feature_level=20),
        )
        first = next(image_records(image))
        assert first == features.FeatureLevelRecord(name="metadata.version", feature_level=20)

    def test_directories_are_written_wherever_the_level_has_them(self) -> None:
        level = features.FeatureLevelRecord(name="metadata.version", feature_level=17)
        image = replayed(level, topic("a", A), partition(A))
        assert image_from_values(image_values(image), image.provenance) == image
        written = [record for record in image_records(image) if isinstance(record, topics.PartitionRecord)]
        assert written[0].directories == (MIGRATING, MIGRATING)

    def test_what_the_level_cannot_express_is_refused(self) -> None:
        made = replace(partition(A), directories=(DIRECTORY, DIRECTORY))
        image = replayed(topic("a", A), made)
        with pytest.raises(UnsupportedVersion):
            list(image_values(image))


def test_table_refuses_to_be_written() -> None:
    image = replayed(topic("a", A), partition(A))
    table = image.topics.by_name["a"].partitions
    with pytest.raises(ValueError, match="read-only"):
        table.leaders[0] = 9
    assert table != EMPTY_PARTITIONS
