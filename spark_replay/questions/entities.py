"""What a cluster's state is made of: for each kind of thing the table of its history, its key and its fields."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Column
from kquorum.spark_replay.engine.frame import Frame, Tables

QUORUM_FEATURE: Final = "kraft.version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """`name` is of one's many. The quorum's own records count at once, all others from a transaction's end on."""

    name: str
    table: str
    keys: tuple[str, ...]
    fields: tuple[str, ...]
    is_of_quorum: bool = False


ENTITIES: Final = (
    Entity(
        name="voters",
        table="voters_history",
        keys=("source",),
        fields=("voter_ids", "voters"),
        is_of_quorum=True,
    ),
    Entity(name="features", table="features_history", keys=("source", "feature"), fields=("level",)),
    Entity(
        name="brokers",
        table="brokers_history",
        keys=("source", "broker_id"),
        fields=(
            *("fenced", "in_controlled_shutdown", "broker_epoch", "incarnation_id", "rack", "end_points"),
            *("features", "log_dirs", "cordoned_log_dirs"),
        ),
    ),
    Entity(
        name="topics",
        table="topics",
        keys=("source", "topic_name", "topic_id"),
        fields=(),
    ),
    Entity(
        name="partitions",
        table="partition_history",
        keys=("source", "topic_name", "topic_id", "partition_id"),
        fields=(
            *("leader", "isr", "replicas", "eligible_leader_replicas", "last_known_elr", "adding_replicas"),
            *("removing_replicas", "leader_epoch", "partition_epoch", "leader_recovery_state", "directories"),
        ),
    ),
    Entity(
        name="configs",
        table="configs_history",
        keys=("source", "resource_type", "resource_name", "name"),
        fields=("value", "is_redacted"),
    ),
    Entity(
        name="acls",
        table="acls_history",
        keys=("source", "acl_id"),
        fields=(
            *("principal", "host", "permission", "operation", "resource_type", "resource_name"),
            "pattern_type",
        ),
    ),
)
BY_NAME: Final = {entity.name: entity for entity in ENTITIES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """What a question is about; None is everything. A partition goes with a topic."""

    topic: str | None = None
    partition: int | None = None
    broker: int | None = None

    @property
    def is_narrow(self) -> bool:
        return self.topic is not None or self.broker is not None

    def of(self, entity: Entity) -> Column | None:
        """The condition on rows of the entity's table; None where nothing of it is asked for."""
        chosen = [_ABOUT_TOPIC[entity.name](self)] if self.topic is not None else []
        if self.broker is not None:
            chosen.append(_ABOUT_BROKER[entity.name](self))
        joined = F.lit(True)
        for condition in chosen:
            if condition is None:
                return None
            joined = joined & condition
        return joined


def history(tables: Tables, entity: Entity, narrowing: Narrowing) -> Frame | None:
    """The requested rows of an entity's history; None for no rows of its kind."""
    condition = narrowing.of(entity)
    return None if condition is None else tables.frame(entity.table).where(condition)


def is_topic(name_or_id: str) -> Column:
    """Whether a row is about the topic of this name, or of this id: a damaged log may not tell the name."""
    return F.coalesce(F.col("topic_name") == F.lit(name_or_id), F.lit(False)) | (
        F.col("topic_id") == F.lit(name_or_id)
    )


def _none(narrowing: Narrowing) -> None:  # noqa: ARG001
    return None


def _partitions_of_topic(narrowing: Narrowing) -> Column:
    of_topic = is_topic(narrowing.topic or "")
    if narrowing.partition is None:
        return of_topic
    return of_topic & (F.col("partition_id") == narrowing.partition)


def _configs_of(resource_type: str, name: str | int | None) -> Column:
    return (F.col("resource_type") == resource_type) & (F.col("resource_name") == F.lit(str(name)))


_Condition = Callable[["Narrowing"], Column | None]
_ABOUT_TOPIC: dict[str, _Condition] = {
    "voters": _none,
    "features": _none,
    # With a topic a broker is asked for to narrow the partitions.
    "brokers": lambda asked: F.lit(True) if asked.broker is not None else None,
    "topics": lambda asked: is_topic(asked.topic or ""),
    "partitions": _partitions_of_topic,
    "configs": lambda asked: _configs_of("topic", asked.topic),
    "acls": lambda asked: acl_matches_topic(asked.topic or ""),
}
_ABOUT_BROKER: dict[str, _Condition] = {
    "voters": _none,
    "features": _none,
    "brokers": lambda asked: F.col("broker_id") == asked.broker,
    "topics": lambda asked: F.lit(True) if asked.topic is not None else None,
    "partitions": lambda asked: (
        F.array_contains("replicas", F.lit(asked.broker)) | (F.col("leader") == asked.broker)
    ),
    "configs": lambda asked: F.lit(True) if asked.topic is not None else _configs_of("broker", asked.broker),
    "acls": lambda asked: F.lit(True) if asked.topic is not None else None,
}


def acl_matches_topic(topic: str) -> Column:
    """Whether an entry is about this topic, by its name, a prefix of it or the wildcard."""
    named = (F.col("pattern_type") == "LITERAL") & F.col("resource_name").isin(topic, "*")
    prefixed = (F.col("pattern_type") == "PREFIXED") & F.lit(topic).startswith(F.col("resource_name"))
    return (F.col("resource_type") == "TOPIC") & (named | prefixed)
