"""Images under random histories: to records and back, column tables against plain dicts, deltas against replays."""

from dataclasses import replace
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.partitions import EMPTY_PARTITIONS, PartitionTable, table_of
from kquorum.wire.metadata_records import cluster, configs, features, security, topics
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.image_records import image_from_values, image_records

# Few ids and names, so that records meet what earlier ones made.
BROKERS = st.integers(0, 4)
UUIDS = st.integers(0, 5).map(lambda number: UUID(int=number))
NAMES = st.sampled_from(["a", "b", "a.b", "a_b", "ä"])
NUMBERS = st.integers(-2, 6)
LISTS = st.lists(BROKERS, unique=True, max_size=4).map(tuple)
BOOLS = st.booleans()


@st.composite
def partition_records(draw: st.DrawFn) -> topics.PartitionRecord:
    replicas = draw(LISTS)
    directories = st.lists(UUIDS, min_size=len(replicas), max_size=len(replicas)).map(tuple)
    return topics.PartitionRecord(
        partition_id=draw(st.integers(0, 3)),
        topic_id=draw(UUIDS),
        replicas=replicas,
        isr=draw(LISTS),
        removing_replicas=draw(LISTS),
        adding_replicas=draw(LISTS),
        leader=draw(st.integers(-1, 4)),
        leader_recovery_state=draw(st.integers(0, 1)),
        leader_epoch=draw(NUMBERS),
        partition_epoch=draw(NUMBERS),
        directories=draw(st.one_of(st.just(()), directories)),
        eligible_leader_replicas=draw(st.none() | LISTS),
        last_known_elr=draw(st.none() | LISTS),
    )


CHANGES = st.builds(
    topics.PartitionChangeRecord,
    partition_id=st.integers(0, 3),
    topic_id=UUIDS,
    isr=st.none() | LISTS,
    leader=st.integers(-2, 4),
    replicas=st.none() | LISTS,
    leader_recovery_state=st.integers(-1, 1),
    eligible_leader_replicas=st.none() | LISTS,
)
REGISTRATIONS = st.builds(
    cluster.RegisterBrokerRecord,
    broker_id=BROKERS,
    incarnation_id=UUIDS,
    broker_epoch=NUMBERS,
    end_points=st.lists(
        st.builds(
            cluster.BrokerEndpoint,
            name=NAMES,
            host=NAMES,
            port=st.integers(0, 65535),
            security_protocol=st.integers(0, 3),
        ),
        max_size=2,
    ).map(tuple),
    rack=st.none() | NAMES,
    fenced=BOOLS,
    in_controlled_shutdown=BOOLS,
    log_dirs=st.lists(UUIDS, max_size=2).map(tuple),
    cordoned_log_dirs=st.none() | st.lists(UUIDS, max_size=2).map(tuple),
    is_migrating_zk_broker=BOOLS,
)
REGISTRATION_CHANGES = st.builds(
    cluster.BrokerRegistrationChangeRecord,
    broker_id=BROKERS,
    broker_epoch=NUMBERS,
    fenced=st.integers(-1, 1),
    in_controlled_shutdown=st.integers(0, 1),
    log_dirs=st.lists(UUIDS, max_size=2).map(tuple),
)
ENTITIES = st.lists(
    st.builds(
        configs.EntityData, entity_type=st.sampled_from(["user", "client-id"]), entity_name=st.none() | NAMES
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda entity: entity.entity_type,
).map(tuple)
RECORDS: st.SearchStrategy[MetadataRecord] = st.one_of(
    st.builds(topics.TopicRecord, name=NAMES, topic_id=UUIDS),
    partition_records(),
    CHANGES,
    st.builds(topics.RemoveTopicRecord, topic_id=UUIDS),
    st.builds(topics.ClearElrRecord, topic_name=st.just("") | NAMES),
    REGISTRATIONS,
    REGISTRATION_CHANGES,
    st.builds(cluster.UnregisterBrokerRecord, broker_id=BROKERS, broker_epoch=NUMBERS),
    st.builds(cluster.FenceBrokerRecord, id=BROKERS, epoch=NUMBERS),
    st.builds(cluster.UnfenceBrokerRecord, id=BROKERS, epoch=NUMBERS),
    st.builds(cluster.RegisterControllerRecord, controller_id=BROKERS, incarnation_id=UUIDS),
    st.builds(cluster.UnregisterControllerRecord, controller_id=BROKERS),
    st.builds(
        configs.ConfigRecord,
        resource_type=st.sampled_from([2, 4, 16, 32]),
        resource_name=NAMES,
        name=NAMES,
        value=st.none() | NAMES,
    ),
    st.builds(
        configs.ClientQuotaRecord,
        entity=ENTITIES,
        key=NAMES,
        value=st.floats(0, 9, allow_nan=False),
        remove=BOOLS,
    ),
    st.builds(features.FeatureLevelRecord, name=NAMES, feature_level=st.integers(0, 3)),
    st.builds(
        features.FeatureLevelRecord, name=st.just("metadata.version"), feature_level=st.integers(1, 30)
    ),
    st.builds(features.ZkMigrationStateRecord, zk_migration_state=st.integers(0, 3)),
    st.builds(features.ProducerIdsRecord, broker_id=BROKERS, next_producer_id=st.integers(0, 10**12)),
    st.builds(features.NoOpRecord),
    st.builds(
        security.AccessControlEntryRecord,
        id=UUIDS,
        resource_type=st.integers(2, 7),
        resource_name=NAMES,
        pattern_type=st.integers(3, 4),
        principal=NAMES,
        host=NAMES,
        operation=st.integers(2, 14),
        permission_type=st.integers(2, 3),
    ),
    st.builds(security.RemoveAccessControlEntryRecord, id=UUIDS),
    st.builds(
        security.UserScramCredentialRecord,
        name=NAMES,
        mechanism=st.integers(1, 2),
        salt=st.binary(max_size=4),
        stored_key=st.binary(max_size=4),
        server_key=st.binary(max_size=4),
        iterations=st.integers(4096, 16384),
    ),
    st.builds(security.RemoveUserScramCredentialRecord, name=NAMES, mechanism=st.integers(1, 2)),
    st.builds(
        security.DelegationTokenRecord,
        owner=NAMES,
        requester=NAMES,
        renewers=st.lists(NAMES, max_size=2).map(tuple),
        issue_timestamp=NUMBERS,
        max_timestamp=NUMBERS,
        expiration_timestamp=NUMBERS,
        token_id=NAMES,
    ),
    st.builds(security.RemoveDelegationTokenRecord, token_id=NAMES),
)
HISTORIES = st.lists(RECORDS, max_size=60)


def accepted(
    image: MetadataImage, history: list[MetadataRecord]
) -> tuple[MetadataDelta, list[MetadataRecord]]:
    """A delta of the records that fit what those before them made, and these."""
    delta = MetadataDelta(image)
    kept: list[MetadataRecord] = []
    for record in history:
        try:
            delta.replay(record, len(kept))
        except ReplayError:
            continue
        kept.append(record)
    return delta, kept


@given(HISTORIES)
@settings(deadline=None)
def test_image_to_records_to_image(history: list[MetadataRecord]) -> None:
    image = accepted(MetadataImage.empty(), history)[0].apply(Provenance(last_contained_offset=7))
    values = (encode_record(record) for record in image_records(image))
    loaded = image_from_values(values, image.provenance)
    assert loaded == image
    assert list(image_records(loaded)) == list(image_records(image))


@given(HISTORIES, st.integers(1, 7))
@settings(deadline=None)
def test_one_delta_is_as_good_as_many(history: list[MetadataRecord], size: int) -> None:
    whole, kept = accepted(MetadataImage.empty(), history)
    image = MetadataImage.empty()
    for start in range(0, len(kept), size):
        delta = MetadataDelta(image)
        for offset, record in enumerate(kept[start : start + size], start):
            delta.replay(record, offset)
        image = delta.apply(Provenance())
    assert image == whole.apply(Provenance())


@given(HISTORIES, HISTORIES)
@settings(deadline=None)
def test_refused_record_leaves_no_trace(history: list[MetadataRecord], more: list[MetadataRecord]) -> None:
    delta, kept = accepted(MetadataImage.empty(), history + more)
    clean = MetadataDelta(MetadataImage.empty())
    for offset, record in enumerate(kept):
        clean.replay(record, offset)
    assert delta.apply(Provenance()) == clean.apply(Provenance())


@given(HISTORIES, HISTORIES)
@settings(deadline=None)
def test_delta_to_a_loaded_snapshot_tells_every_difference(
    old: list[MetadataRecord], new: list[MetadataRecord]
) -> None:
    before = accepted(MetadataImage.empty(), old)[0].apply(Provenance())
    target = accepted(MetadataImage.empty(), new)[0].apply(Provenance())
    delta = MetadataDelta(before)
    delta.become(target)
    assert delta.apply(Provenance()) == target
    for broker_id in set(before.cluster.brokers) | set(target.cluster.brokers):
        differs = before.cluster.brokers.get(broker_id) != target.cluster.brokers.get(broker_id)
        assert (broker_id in delta.changed_brokers) == differs
    assert delta.deleted_topic_ids == set(before.topics.by_id) - set(target.topics.by_id)
    assert delta.created_topic_ids == set(target.topics.by_id) - set(before.topics.by_id)


@st.composite
def partition_states(draw: st.DrawFn) -> PartitionState:
    replicas = draw(LISTS)
    return PartitionState(
        replicas=replicas,
        directories=tuple(draw(UUIDS) for _ in replicas),
        isr=draw(LISTS),
        removing_replicas=draw(st.just(()) | LISTS),
        adding_replicas=draw(st.just(()) | LISTS),
        leader=draw(st.integers(-1, 4)),
        leader_recovery_state=draw(st.integers(0, 1)),
        leader_epoch=draw(st.integers(0, 2**31 - 1)),
        partition_epoch=draw(st.integers(0, 2**31 - 1)),
        elr=draw(st.just(()) | LISTS),
        last_known_elr=draw(st.just(()) | LISTS),
    )


STEPS = st.lists(st.dictionaries(st.integers(0, 12), partition_states(), max_size=6), max_size=6)


@given(STEPS)
@settings(deadline=None)
def test_table_of_columns_is_like_a_dict(steps: list[dict[int, PartitionState]]) -> None:
    table: PartitionTable = EMPTY_PARTITIONS
    twin: dict[int, PartitionState] = {}
    for changes in steps:
        before, known = table, dict(twin)
        table = table.with_rows(table_of(changes))
        twin.update(changes)
        assert dict(before.items()) == known, "a table does not change behind its holders"
        check_like(table, twin)
    assert table == table_of(twin)


def check_like(table: PartitionTable, twin: dict[int, PartitionState]) -> None:
    assert len(table) == len(twin)
    assert list(table.items()) == sorted(twin.items())
    for partition_id in range(-1, 14):
        assert table.get(partition_id) == twin.get(partition_id)
    assert table.leaderless().tolist() == [number for number in sorted(twin) if twin[number].leader == -1]


@given(partition_states(), partition_states())
def test_tables_are_equal_by_content_alone(first: PartitionState, second: PartitionState) -> None:
    grown = table_of({0: first}).with_rows(table_of({0: second}))
    assert grown == table_of({0: second})
    other = replace(second, partition_epoch=(second.partition_epoch + 1) % 1000)
    assert (table_of({0: other}) == grown) == (other == second)
