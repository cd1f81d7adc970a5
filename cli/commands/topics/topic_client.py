"""Topics as a client of a broker sees and changes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kquorum.cli.clients.cluster_client import ClusterClient, PendingRequest, check_change, check_error
from kquorum.cli.failures import CliError
from kquorum.wire.message_schema import ByVersion
from kquorum.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kquorum.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kquorum.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kquorum.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kquorum.wire.uuids import ZERO_UUID, uuid_to_text
from kquorum.wire.wording import counted

_UNKNOWN_TOPIC = 3
_ALREADY_EXISTS = 36
_INVALID_PARTITIONS = 37
_FIRST_VERSION_WITH_TOPICS = 6
# The leader of a partition may be away: the rest of the description holds all the same.
_PARTITION_ERRORS_TOLD_AS_STATE = frozenset({0, 5, 9})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLog:
    """A replica's log. The size is None where the broker does not tell it, the lag where the leader does not answer."""

    broker_id: int
    log_start_offset: int
    log_end_offset: int
    size_bytes: int | None = None
    lag: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """A partition; leader -1 means that there is none. `logs` are those of replicas that were asked and answered."""

    partition_id: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    logs: tuple[ReplicaLog, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """A topic; the id is Kafka's text form, None where the broker does not tell."""

    name: str
    topic_id: str | None
    partitions: tuple[PartitionView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """What to create; -1 leaves the number to the cluster's defaults."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str]


async def describe_topics(client: ClusterClient, names: Sequence[str] | None) -> tuple[TopicView, ...]:
    """The topics asked for, or all of them (None), by name. Raises CliError for one that is not there."""
    topics = None if names is None else tuple(MetadataRequestTopic(name=name) for name in names)
    asked = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    response = await client.ask(PendingRequest(request=asked, takes_long=names is None))
    for topic in response.topics:
        if int(topic.error_code) == _UNKNOWN_TOPIC:
            raise CliError(f"there is no topic {topic.name} (`kquorum topics list` shows those there are)")
        check_error(int(topic.error_code), None, f"topic {topic.name} cannot be described")
    return tuple(sorted((_view(topic) for topic in response.topics), key=lambda topic: topic.name))


async def create_topic(
    client: ClusterClient, topic: NewTopic, timeout_ms: int, *, if_not_exists: bool
) -> bool:
    """Whether it was created now. Raises CliError for a refusal."""
    created = CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()),
    )
    request = CreateTopicsRequest(topics=(created,), timeout_ms=timeout_ms)
    doubt = f"topic {topic.name} may have been created all the same: look with `kquorum topics describe {topic.name}`"
    result = (await client.ask(PendingRequest(request=request, doubt=doubt))).topics[0]
    code = int(result.error_code)
    if code == _ALREADY_EXISTS:
        if if_not_exists:
            return False
        if client.was_in_doubt:
            raise CliError(
                f"topic {topic.name} is there: it was before, or an unanswered attempt of this command made it"
            )
    check_change(code, result.error_message, f"topic {topic.name} was not created", doubt)
    return True


async def delete_topic(client: ClusterClient, name: str, timeout_ms: int) -> None:
    """Raises CliError for a refusal."""

    def asked(version: int) -> DeleteTopicsRequest:
        if version < _FIRST_VERSION_WITH_TOPICS:
            return DeleteTopicsRequest(topic_names=(name,), timeout_ms=timeout_ms)
        return DeleteTopicsRequest(topics=(DeleteTopicState(name=name),), timeout_ms=timeout_ms)

    request = ByVersion(DeleteTopicsRequest, asked)
    doubt = f"topic {name} may have been deleted all the same: look with `kquorum topics list`"
    result = (await client.ask(PendingRequest(request=request, doubt=doubt))).responses[0]
    code = int(result.error_code)
    if code == _UNKNOWN_TOPIC and client.was_in_doubt:
        return  # an attempt before, which was not answered, deleted it
    if code == _UNKNOWN_TOPIC:
        raise CliError(f"there is no topic {name} (`kquorum topics list` shows those there are)")
    check_change(code, result.error_message, f"topic {name} was not deleted", doubt)


async def add_partitions(
    client: ClusterClient, name: str, count: int, timeout_ms: int, *, dry_run: bool
) -> int:
    """Let the topic have `count` partitions; how many it had before, which may be as many. Raises CliError, as
    partitions cannot be taken away."""
    [topic] = await describe_topics(client, [name])
    before = len(topic.partitions)
    if count == before:
        return before
    if count < before:
        raise CliError(
            f"topic {name} has {counted(before, 'partition')}, and partitions cannot be taken away: "
            f"give more than {before}, or create another topic"
        )
    asked = CreatePartitionsTopic(name=name, count=count, assignments=None)
    request = CreatePartitionsRequest(topics=(asked,), timeout_ms=timeout_ms, validate_only=dry_run)
    doubt = f"topic {name} may have been altered all the same: look with `kquorum topics describe {name}`"
    result = (await client.ask(PendingRequest(request=request, doubt=None if dry_run else doubt))).results[0]
    code = int(result.error_code)
    if code == _INVALID_PARTITIONS and client.was_in_doubt:
        return before  # an attempt before, which was not answered, added them
    kind = "would not be altered" if dry_run else "was not altered"
    check_change(code, result.error_message, f"topic {name} {kind}", doubt)
    return before


def _view(topic: MetadataResponseTopic) -> TopicView:
    return TopicView(
        name=topic.name or "",
        topic_id=None if topic.topic_id == ZERO_UUID else uuid_to_text(topic.topic_id),
        partitions=tuple(
            sorted(
                (_partition(partition) for partition in topic.partitions), key=lambda item: item.partition_id
            )
        ),
    )


def _partition(partition: MetadataResponsePartition) -> PartitionView:
    code = int(partition.error_code)
    if code not in _PARTITION_ERRORS_TOLD_AS_STATE:
        check_error(code, None, f"partition {partition.partition_index} cannot be described")
    return PartitionView(
        partition_id=partition.partition_index,
        leader=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replicas=partition.replica_nodes,
        isr=partition.isr_nodes,
        offline_replicas=partition.offline_replicas,
    )
