"""Checks that no record is about what is not there: a topic, a partition or a broker before it was made, or after it
was removed. Which is what Kafka's controller refuses to replay (`ReplicationControlManager`, `ClusterControlManager`).
"""

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.checks.findings import CheckName, found
from kquorum.spark_replay.checks.inputs import CheckInputs
from kquorum.spark_replay.decode.records import TOPIC_RESOURCE
from kquorum.spark_replay.tables.brokers import CHANGE, FENCE, REGISTER, UNFENCE, UNREGISTER
from kquorum.spark_replay.tables.building.frames import of_types, ordered_by_state
from kquorum.spark_replay.tables.topics import topic_names

_TOPIC, _REMOVED, _PARTITION, _MOVED = (
    "TopicRecord",
    "RemoveTopicRecord",
    "PartitionRecord",
    "PartitionChangeRecord",
)
_REMOVABLE: Final = (
    *(_TOPIC, _REMOVED, _PARTITION, _MOVED, "ConfigRecord"),
    *(REGISTER, UNREGISTER, CHANGE, FENCE, UNFENCE),
)
_COLUMNS: Final = (
    *("source", "file", "file_kind", "position", "offset", "state_offset", "record_type", "payload"),
    *("topic_id", "topic_name", "partition_id", "broker_id"),
)


def after_removal(inputs: CheckInputs) -> DataFrame:
    """Records about topics, partitions and brokers that are not there, by the state before each of them."""
    state = removable_records(inputs)
    checks = [
        _topics(inputs, state),
        _names(state),
        _partitions(inputs, state),
        _brokers(inputs, state),
        _configs(state),
    ]
    return reduce(DataFrame.unionByName, checks)


def removable_records(inputs: CheckInputs) -> DataFrame:
    """The records of the state about what can be removed."""
    return inputs.kept("removable", lambda: inputs.state(*_REMOVABLE).select(*_COLUMNS))


def _topics(inputs: CheckInputs, state: DataFrame) -> DataFrame:
    """Of each topic id: made once, and nothing before or behind."""
    events = of_types(state, _TOPIC, _REMOVED, _PARTITION, _MOVED)
    last = _last_before(events, (_TOPIC, _REMOVED), "topic_id")
    exists = F.coalesce(last["record_type"] == _TOPIC, F.lit(False))
    made = F.col("record_type") == _TOPIC
    was_removed = last["record_type"] == _REMOVED
    kept = events.select("*", last.alias("last")).withColumns({"exists": exists, "removed": was_removed})
    again = kept.where(made & F.col("last").isNotNull())
    removed = kept.where(~made & ~F.col("exists") & (F.col("removed") | _is_known(inputs)))
    return _told(
        again,
        F.concat(F.lit("the topic is made again, after offset "), F.col("last.state_offset").cast("string")),
    ).unionByName(
        _told(
            removed,
            F.concat(
                _type(),
                F.when(
                    F.col("removed"),
                    F.concat(
                        F.lit(" about a topic that was removed at offset "),
                        F.col("last.state_offset").cast("string"),
                    ),
                ).otherwise(" about a topic that was never made"),
            ),
        )
    )


def _names(state: DataFrame) -> DataFrame:
    """Of each topic name: not made while it is there."""
    named = _with_names(state, of_types(state, _TOPIC, _REMOVED))
    last = _last_before(named, (_TOPIC, _REMOVED), "topic_name")
    taken = named.select("*", last.alias("last")).where(
        (F.col("record_type") == _TOPIC)
        & (F.col("last.record_type") == _TOPIC)
        & (F.col("last.topic_id") != F.col("topic_id"))
    )
    said = F.concat(
        F.lit("a topic of this name is there already, since offset "),
        F.col("last.state_offset").cast("string"),
    )
    return _told(taken, said)


def _partitions(inputs: CheckInputs, state: DataFrame) -> DataFrame:
    """A partition is changed only after it was made; a missing topic is reported once, for the topic."""
    events = of_types(state, _PARTITION, _MOVED)
    last = _last_before(events, (_PARTITION,), "topic_id", "partition_id")
    unmade = events.select("*", last.alias("last")).where(
        (F.col("record_type") == _MOVED) & F.col("last").isNull() & _is_known(inputs)
    )
    topics = of_types(state, _TOPIC).select("source", "topic_id")
    return _told(
        unmade.join(topics, ["source", "topic_id"], "left_semi"),
        F.lit("PartitionChange of a partition that was never made"),
    )


def _brokers(inputs: CheckInputs, state: DataFrame) -> DataFrame:
    """A broker is fenced, changed and unregistered only while registered, and under the epoch of its registration."""
    events = of_types(state, REGISTER, UNREGISTER, CHANGE, FENCE, UNFENCE)
    p = F.from_json("payload", "broker_epoch long, epoch long")
    with_epochs = events.withColumn("epoch_told", F.coalesce(p["broker_epoch"], p["epoch"]))
    last = _last_before(with_epochs, (REGISTER, UNREGISTER), "broker_id")
    kept = with_epochs.select("*", last.alias("last")).where(F.col("record_type") != REGISTER)
    is_registered = F.coalesce(F.col("last.record_type") == REGISTER, F.lit(False))
    was_removed = F.coalesce(F.col("last.record_type") == UNREGISTER, F.lit(False))
    unregistered = kept.where(~is_registered & (was_removed | _is_known(inputs)))
    stale = kept.where(is_registered & (F.col("epoch_told") != F.col("last.epoch_told")))
    since = F.col("last.state_offset").cast("string")
    return _told(
        unregistered,
        F.concat(
            _type(),
            F.when(
                was_removed, F.concat(F.lit(" of a broker that was unregistered at offset "), since)
            ).otherwise(" of a broker that never registered"),
        ),
    ).unionByName(
        _told(
            stale,
            F.concat(
                _type(),
                F.lit(" for broker epoch "),
                F.col("epoch_told").cast("string"),
                F.lit(", but the broker is registered with "),
                F.col("last.epoch_told").cast("string"),
                F.lit(" since offset "),
                since,
            ),
        )
    )


def _configs(state: DataFrame) -> DataFrame:
    """No config of a topic after its removal. A config before its creation may belong to a topic of an earlier log."""
    of_topics = F.get_json_object("payload", "$.resource_type") == str(TOPIC_RESOURCE)
    configs = of_types(state, "ConfigRecord").where(of_topics)
    events = configs.unionByName(_with_names(state, of_types(state, _TOPIC, _REMOVED)))
    last = _last_before(events, (_TOPIC, _REMOVED), "topic_name")
    late = events.select("*", last.alias("last")).where(
        (F.col("record_type") == "ConfigRecord") & (F.col("last.record_type") == _REMOVED)
    )
    return _told(
        late,
        F.concat(
            F.lit("Config of a topic that was removed at offset "), F.col("last.state_offset").cast("string")
        ),
    )


def _with_names(state: DataFrame, events: DataFrame) -> DataFrame:
    """A RemoveTopicRecord tells the id only."""
    names = topic_names(state).withColumnsRenamed({"topic_name": "name_of_id"})
    named = events.join(names, ["source", "topic_id"])
    return named.withColumn("topic_name", F.coalesce("topic_name", "name_of_id")).select(*events.columns)


def _last_before(events: DataFrame, types: tuple[str, ...], *keys: str) -> Column:
    """The last record of one of these types before each, of the same key; null before the first."""
    names = [
        name for name in ("record_type", "state_offset", "topic_id", "epoch_told") if name in events.columns
    ]
    order = ordered_by_state("source", *keys).rowsBetween(Window.unboundedPreceding, -1)
    value = F.when(F.col("record_type").isin(*types), F.struct(*names))
    return F.last(value, ignorenulls=True).over(order)


def _is_known(inputs: CheckInputs) -> Column:
    """Whether the log or a snapshot shows everything that exists: the source's state has a beginning."""
    return ~F.col("source").isin(list(inputs.beheaded))


def _told(wrong: DataFrame, reason: Column) -> DataFrame:
    broker = F.concat(F.lit("broker "), F.col("broker_id").cast("string"))
    topic = F.coalesce("topic_name", "topic_id")
    partition = F.concat(topic, F.lit("-"), F.col("partition_id").cast("string"))
    return found(
        wrong,
        CheckName.REMOVALS,
        offset="state_offset",
        proof=["last.state_offset"],
        subject=F.coalesce(partition, topic, broker),
        reason=reason,
    )


def _type() -> Column:
    return F.regexp_replace("record_type", "Record$", "")
