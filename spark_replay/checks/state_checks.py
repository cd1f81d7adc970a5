"""Checks of partitions: who leads them, who is in sync, and that their epochs only grow.

Kafka's controller elects only from the ISR or, where its config says so, from outside; then the one elected is the ISR
(`PartitionChangeBuilder`). So every leader is in the ISR, also behind an unclean election.
"""

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.checks.findings import NOTE, VIOLATION, CheckName, found
from kquorum.spark_replay.checks.inputs import CheckInputs
from kquorum.spark_replay.tables.leader_changes import RECOVERING

_KEY: Final = ("source", "topic_id", "partition_id")


def leaders(inputs: CheckInputs) -> DataFrame:
    """A leader is in the ISR and a replica; one that is recovering from an unclean election, and that election, are
    notes. No leader (-1) is lawful."""
    led = inputs.table("partition_history").where(F.col("leader") >= 0)
    outside = ~F.array_contains("isr", F.col("leader"))
    recovering = F.col("leader_recovery_state") == RECOVERING
    said = F.concat(
        F.format_string("leader %d is not in the ISR [%s]", "leader", _ids("isr")),
        F.when(recovering, "; it is recovering from an unclean election").otherwise(""),
    )
    out_of_isr = found(
        led.where(outside),
        CheckName.LEADERS,
        severity=F.when(recovering, NOTE).otherwise(VIOLATION),
        offset="valid_from_offset",
        subject=_partition(),
        reason=said,
    )
    no_replica = found(
        led.where(~F.array_contains("replicas", F.col("leader"))),
        CheckName.LEADERS,
        offset="valid_from_offset",
        subject=_partition(),
        reason=F.format_string("leader %d is not among the replicas [%s]", "leader", _ids("replicas")),
    )
    unclean = found(
        inputs.table("leader_changes").where("unclean"),
        CheckName.LEADERS,
        severity=NOTE,
        proof=["cause_offset"],
        subject=_partition(),
        reason=F.format_string(
            "unclean election: broker %d was neither in the ISR [%s] nor eligible: records may be lost",
            "new_leader",
            _ids("old_isr"),
        ),
    )
    return reduce(DataFrame.unionByName, [out_of_isr, no_replica, unclean])


def in_sync_replicas(inputs: CheckInputs) -> DataFrame:
    """Every broker of the ISR is one of the replicas."""
    not_replicas = F.array_except("isr", "replicas")
    wrong = inputs.table("partition_history").where(F.size(not_replicas) > 0)
    reason = F.format_string(
        "the ISR [%s] has [%s], not among the replicas [%s]",
        _ids("isr"),
        F.concat_ws(" ", not_replicas.cast("array<string>")),
        _ids("replicas"),
    )
    return found(wrong, CheckName.ISR, offset="valid_from_offset", subject=_partition(), reason=reason)


def partition_epochs(inputs: CheckInputs) -> DataFrame:
    """Leader epochs and partition epochs only grow, within the log and from snapshot to snapshot."""
    rows = inputs.table("partition_history").select(
        *_KEY, "topic_name", "leader_epoch", "partition_epoch", F.col("valid_from_offset").alias("offset")
    )
    return _going_back(rows).unionByName(_going_back(_of_snapshots(inputs)))


def _of_snapshots(inputs: CheckInputs) -> DataFrame:
    """The partitions as the snapshots hold them; `offset` is the snapshot's last."""
    records = inputs.table("records").where(
        (F.col("file_kind") == "snapshot") & (F.col("record_type") == "PartitionRecord")
    )
    p = F.from_json("payload", "leader_epoch int, partition_epoch int")
    return records.withColumn("p", p).select(
        *_KEY,
        F.lit(None).cast("string").alias("topic_name"),
        "p.*",
        F.col("state_offset").alias("offset"),
        "file",
    )


def _going_back(rows: DataFrame) -> DataFrame:
    order = Window.partitionBy(*_KEY).orderBy("offset")
    names = ("leader_epoch", "partition_epoch", "offset")
    placed = rows.withColumns({f"{name}_before": F.lag(name).over(order) for name in names})

    def back(name: str) -> DataFrame:
        reason = F.format_string(
            f"the {name.replace('_', ' ')} goes back from %d to %d", f"{name}_before", name
        )
        wrong = placed.where(F.col(name) < F.col(f"{name}_before"))
        return found(
            wrong, CheckName.PARTITION_EPOCHS, proof=["offset_before"], subject=_partition(), reason=reason
        )

    return back("partition_epoch").unionByName(back("leader_epoch"))


def _partition() -> Column:
    return F.concat(F.coalesce("topic_name", "topic_id"), F.lit("-"), F.col("partition_id").cast("string"))


def _ids(name: str) -> Column:
    return F.concat_ws(" ", F.col(name).cast("array<string>"))
