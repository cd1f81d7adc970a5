"""Topics as a client of a broker sees and changes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kquorum.cli.clients.cluster_client import ClusterClient, check_error
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.uuids import ZERO_UUID, uuid_to_text

_UNKNOWN_TOPIC = 3
_ALREADY_EXISTS = 36
_REQUEST_TIMED_OUT = 7
# The leader of a partition may be away: the rest of the description holds all the same.
_PARTITION_ERRORS_TOLD_AS_STATE = frozenset({0, 5, 9})


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """A partition; leader -1 means that there is none."""

    partition_id: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]


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
    topics = None if names is None else [{"topic_id": None, "name": name} for name in names]
    response = await client.ask(
        ApiKey.METADATA,
        {"topics": topics, "allow_auto_topic_creation": False, "include_topic_authorized_operations": False},
        takes_long=names is None,
    )
    for topic in response.topics:
        if int(topic.error_code) == _UNKNOWN_TOPIC:
            raise CliError(f"there is no topic {topic.name} (`kquorum topics list` shows those there are)")
        check_error(int(topic.error_code), None, f"topic {topic.name} cannot be described")
    return tuple(sorted((_view(topic) for topic in response.topics), key=lambda topic: topic.name))


async def create_topic(
    client: ClusterClient, topic: NewTopic, timeout_ms: int, *, if_not_exists: bool
) -> bool:
    """Whether it was created now. Raises CliError for a refusal."""
    body = {
        "topics": [
            {
                "name": topic.name,
                "num_partitions": topic.partitions,
                "replication_factor": topic.replication_factor,
                "assignments": [],
                "configs": [{"name": key, "value": value} for key, value in topic.configs.items()],
            }
        ],
        "timeout": timeout_ms,
        "validate_only": False,
    }
    doubt = f"topic {topic.name} may have been created all the same: look with `kquorum topics describe {topic.name}`"
    result = (await client.ask(ApiKey.CREATE_TOPICS, body, doubt=doubt)).topics[0]
    code = int(result.error_code)
    if code == _ALREADY_EXISTS:
        if if_not_exists:
            return False
        if client.was_in_doubt:
            raise CliError(
                f"topic {topic.name} is there: it was before, or an unanswered attempt of this command made it"
            )
    _check_outcome(code, result.error_message, f"topic {topic.name} was not created", doubt)
    return True


async def delete_topic(client: ClusterClient, name: str, timeout_ms: int) -> None:
    """Raises CliError for a refusal."""
    body = {"topics": [{"name": name, "topic_id": None}], "topic_names": [name], "timeout": timeout_ms}
    doubt = f"topic {name} may have been deleted all the same: look with `kquorum topics list`"
    result = (await client.ask(ApiKey.DELETE_TOPICS, body, doubt=doubt)).responses[0]
    code = int(result.error_code)
    if code == _UNKNOWN_TOPIC and client.was_in_doubt:
        return  # an attempt before, which was not answered, deleted it
    if code == _UNKNOWN_TOPIC:
        raise CliError(f"there is no topic {name} (`kquorum topics list` shows those there are)")
    _check_outcome(code, getattr(result, "error_message", None), f"topic {name} was not deleted", doubt)


def _check_outcome(code: int, message: str | None, what: str, doubt: str) -> None:
    """REQUEST_TIMED_OUT says that the answer did not come in time, not that nothing was done."""
    if code == _REQUEST_TIMED_OUT:
        raise CliError(
            f"{message or 'the controller did not answer in time'}; {doubt}", status=ExitStatus.UNREACHABLE
        )
    check_error(code, message, what)


def _view(topic: Any) -> TopicView:
    topic_id = getattr(topic, "topic_id", None)
    return TopicView(
        name=str(topic.name),
        topic_id=None if topic_id is None or topic_id == ZERO_UUID else uuid_to_text(topic_id),
        partitions=tuple(
            sorted(
                (_partition(partition) for partition in topic.partitions), key=lambda item: item.partition_id
            )
        ),
    )


def _partition(partition: Any) -> PartitionView:
    code = int(partition.error_code)
    if code not in _PARTITION_ERRORS_TOLD_AS_STATE:
        check_error(code, None, f"partition {partition.partition_index} cannot be described")
    return PartitionView(
        partition_id=int(partition.partition_index),
        leader=int(partition.leader_id),
        leader_epoch=int(getattr(partition, "leader_epoch", -1)),
        replicas=tuple(map(int, partition.replica_nodes)),
        isr=tuple(map(int, partition.isr_nodes)),
        offline_replicas=tuple(map(int, getattr(partition, "offline_replicas", ()))),
    )
