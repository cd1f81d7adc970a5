"""`brokers`: each broker that ever registered, as it stands at the end of the log."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kquorum.spark_replay.schemas import BROKERS, ENDPOINTS, FEATURES
from kquorum.spark_replay.tables.common import latest, of_types, shaped, state_order, with_payload

REGISTER, UNREGISTER, CHANGE = (
    "RegisterBrokerRecord",
    "UnregisterBrokerRecord",
    "BrokerRegistrationChangeRecord",
)
FENCE, UNFENCE = "FenceBrokerRecord", "UnfenceBrokerRecord"

# `fenced` is a boolean in a registration and -1, 0 or 1 in a change, so it is read as text and told apart by type.
_PAYLOAD = StructType(
    [
        StructField("broker_epoch", LongType()),
        StructField("incarnation_id", StringType()),
        StructField("fenced", StringType()),
        StructField("in_controlled_shutdown", StringType()),
        StructField("rack", StringType()),
        StructField("end_points", ENDPOINTS),
        StructField("features", FEATURES),
        StructField("log_dirs", ArrayType(StringType())),
    ]
)


def brokers(state: DataFrame) -> DataFrame:
    """One row for each broker id of each source. Registering again replaces everything said before."""
    events = with_payload(of_types(state, REGISTER, UNREGISTER, CHANGE, FENCE, UNFENCE), _PAYLOAD)
    prepared = events.withColumns(
        {
            "order": state_order(),
            "is_registration": F.col("record_type") == REGISTER,
            "fenced": fenced_after(),
            "in_controlled_shutdown": in_controlled_shutdown_after(),
            "log_dirs": F.when(
                (F.col("record_type") == REGISTER) | (F.size("p.log_dirs") > 0), F.col("p.log_dirs")
            ),
        }
    )
    return shaped(_summed_up(prepared), BROKERS)


def _summed_up(events: DataFrame) -> DataFrame:
    order = F.col("order")
    registration = F.when(F.col("is_registration"), order)
    registered_ms = F.col("state_timestamp_ms")
    return events.groupBy("source", "broker_id").agg(
        (F.max_by("record_type", order) != UNREGISTER).alias("registered"),
        *(
            F.max_by(f"p.{name}", registration).alias(name)
            for name in ("broker_epoch", "incarnation_id", "rack", "end_points", "features")
        ),
        *(
            latest(F.col(name), order).alias(name)
            for name in ("fenced", "in_controlled_shutdown", "log_dirs")
        ),
        F.count_if("is_registration").alias("registrations"),
        F.count_if(F.col("fenced") & ~F.col("is_registration")).alias("fencings"),
        F.min(F.when(F.col("is_registration"), F.col("state_offset"))).alias("first_registered_offset"),
        F.min_by(registered_ms, registration).alias("first_registered_ms"),
        F.max(F.when(F.col("is_registration"), F.col("state_offset"))).alias("last_registered_offset"),
        F.max_by(registered_ms, registration).alias("last_registered_ms"),
        F.max("state_offset").alias("last_change_offset"),
        F.max_by("state_timestamp_ms", order).alias("last_change_ms"),
    )


def fenced_after() -> Column:
    """True, false, or null where the record says nothing of it."""
    kind, value = F.col("record_type"), F.col("p.fenced")
    return (
        F.when(kind == FENCE, True)
        .when(kind == UNFENCE, False)
        .when(kind == REGISTER, value == "true")
        .when((kind == CHANGE) & (value == "1"), True)
        .when((kind == CHANGE) & (value == "-1"), False)
        .cast(BooleanType())
    )


def in_controlled_shutdown_after() -> Column:
    kind, value = F.col("record_type"), F.col("p.in_controlled_shutdown")
    return F.when(kind == REGISTER, value == "true").when((kind == CHANGE) & (value == "1"), True)
