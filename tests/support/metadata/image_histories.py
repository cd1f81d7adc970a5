"""Hypothesis strategies for histories of metadata records."""

import random
from uuid import UUID

from hypothesis import strategies as st

from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.wire.metadata_records import cluster, configs, features, security, topics
from kquorum.wire.schema import MetadataRecord

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


TOPICS = [UUID(int=1 << 120), UUID(int=256), UUID(int=77)]


# Ids that end in zeros, and one that means "none".
DIRECTORIES = [UUID(int=0), UUID(int=256), UUID(int=1 << 127), UUID(int=5)]


@st.composite
def alike(draw: st.DrawFn) -> list[MetadataRecord]:
    """Partition records, most of one of few shapes, with topics created in between."""
    counts = draw(st.lists(st.integers(0, 4), min_size=1, max_size=2))
    made: list[MetadataRecord] = []
    for topic_id in draw(st.permutations(TOPICS)):
        made.append(topics.TopicRecord(name=str(topic_id), topic_id=topic_id))
        numbers = draw(st.lists(st.integers(0, 30), max_size=20, unique=draw(st.booleans())))
        seed = draw(st.integers(0, 2**32))
        for place, number in enumerate(numbers):
            stray = TOPICS[0] if (seed + place) % 10 == 0 else topic_id
            made.append(plain_record(stray, number, counts, seed + place))
    return made


def plain_record(topic_id: UUID, number: int, counts: list[int], seed: int) -> topics.PartitionRecord:
    """A record that follows from `seed`: a draw for each of its fields would take most of the time."""
    random_source = random.Random(seed)
    size = random_source.choice(counts)
    replicas = tuple(random_source.randrange(6) for _ in range(size))
    directories = tuple(random_source.choice(DIRECTORIES) for _ in range(size))
    is_rare = random_source.randrange(16) == 0
    return topics.PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=replicas,
        isr=replicas[: random_source.choice([size, size, max(size - 1, 0)])],
        leader=random_source.randrange(-1, 6),
        leader_epoch=random_source.randrange(2**31),
        partition_epoch=random_source.randrange(9),
        directories=directories if random_source.randrange(10) else directories[:1] if is_rare else (),
        leader_recovery_state=int(is_rare),
        adding_replicas=(9,) if is_rare else (),
        eligible_leader_replicas=(4,) if is_rare and random_source.randrange(2) else None,
    )
