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

from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import BOOLEAN, INT, LONG, SOURCE, STRING, STRINGS, column
from kquorum.spark_replay.tables.building.frames import latest, of_types, shaped, state_order, with_payload

ENDPOINTS = ArrayType(
    StructType(
        [
            column("name", STRING, "listener name"),
            column("host", STRING, "advertised host"),
            column("port", INT, "advertised port"),
            column("security_protocol", INT, "0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL"),
        ]
    )
)

FEATURES = ArrayType(
    StructType(
        [
            column("name", STRING, "feature name"),
            column("min_supported_version", INT, "lowest level the broker supports"),
            column("max_supported_version", INT, "highest level the broker supports"),
        ]
    )
)

REGISTRATION = [
    column("rack", STRING, "broker.rack"),
    column("end_points", ENDPOINTS, "advertised listeners"),
    column("features", FEATURES, "supported feature levels"),
    column("log_dirs", STRINGS, "ids of its log directories that are online"),
]

BROKERS = StructType(
    [
        SOURCE,
        column("broker_id", INT, "node.id of the broker"),
        column("registered", BOOLEAN, "false once it was unregistered"),
        column("broker_epoch", LONG, "epoch of its last registration"),
        column("incarnation_id", STRING, "uuid of the process that registered last"),
        column("fenced", BOOLEAN, "whether it is fenced at the end of the log"),
        column("in_controlled_shutdown", BOOLEAN, "whether it is shutting down at the end of the log"),
        *REGISTRATION,
        column("registrations", LONG, "how often it registered within the log"),
        column("fencings", LONG, "how often a record fenced it, the fence of its registration not counted"),
        column("first_registered_offset", LONG, "offset of the first registration known"),
        column("first_registered_ms", LONG, "time of that registration"),
        column("last_registered_offset", LONG, "offset of the last registration"),
        column("last_registered_ms", LONG, "time of the last registration"),
        column("last_change_offset", LONG, "offset of the last record about it"),
        column("last_change_ms", LONG, "time of the last record about it"),
    ]
)

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


TABLE = AuditTable(
    place=60,
    schema=BROKERS,
    description="Each broker that ever registered, as it stands at the end of the log.",
    build=lambda inputs: brokers(inputs.state),
)
