"""`brokers_history`: what each broker was between any two records about it.

A registration replaces everything said before; a change holds only what changed, so the rest is carried forward from
the rows since the registration (Kafka's `ClusterDelta`).
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from kquorum.spark_replay.tables.brokers import (
    CHANGE,
    ENDPOINTS,
    FEATURES,
    FENCE,
    REGISTER,
    REGISTRATION,
    UNFENCE,
    UNREGISTER,
    fenced_after,
    in_controlled_shutdown_after,
)
from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import (
    BATCH_BASE_OFFSET,
    BOOLEAN,
    INT,
    LONG,
    QUORUM_EPOCH,
    SOURCE,
    STRING,
    STRINGS,
    column,
    validity,
)
from kquorum.spark_replay.tables.building.frames import (
    event_columns,
    of_types,
    ordered_by_state,
    shaped,
    up_to_here,
    with_payload,
    with_validity,
)

BROKERS_HISTORY = StructType(
    [
        SOURCE,
        column("broker_id", INT, "node.id of the broker"),
        column(
            "change",
            STRING,
            "what brought it there: registered, fenced, unfenced, controlled_shutdown, directories, other",
        ),
        column("broker_epoch", LONG, "epoch of the registration"),
        column("incarnation_id", STRING, "uuid of the process that registered"),
        column(
            "fenced",
            BOOLEAN,
            "whether it is fenced: it then leads no partition, and clients do not learn of it",
        ),
        column("in_controlled_shutdown", BOOLEAN, "whether it is handing over what it leads"),
        *REGISTRATION,
        column("cordoned_log_dirs", STRINGS, "directories that take no new partitions; null if never told"),
        column("record_type", STRING, "type of the record that brought this about"),
        QUORUM_EPOCH,
        BATCH_BASE_OFFSET,
        column("ended_by", STRING, "the next row's change, or unregistered; null while it holds"),
        *validity("the next record about the broker"),
    ]
)

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
        StructField("cordoned_log_dirs", ArrayType(StringType())),
    ]
)
_REGISTERED = ("broker_epoch", "incarnation_id", "rack", "end_points", "features")
_CHANGING = ("fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")


def brokers_history(state: DataFrame) -> DataFrame:
    """One row for each state that a broker was in, from its registration to its removal."""
    order = ordered_by_state("source", "broker_id")
    held = with_validity(broker_events(state), order, "change")
    lives = held.withColumns(
        {
            "life": F.count_if(F.col("record_type") == REGISTER).over(up_to_here(order)),
            "ended_by": F.col("next_change"),
        }
    )
    return shaped(_with_carried(lives), BROKERS_HISTORY)


def broker_events(state: DataFrame) -> DataFrame:
    """The records about brokers: what each did, as `change`, and the fields that it tells, null where it does not."""
    events = with_payload(of_types(state, REGISTER, UNREGISTER, CHANGE, FENCE, UNFENCE), _PAYLOAD)
    is_registration = F.col("record_type") == REGISTER
    fields = {
        **{name: F.when(is_registration, F.col(f"p.{name}")) for name in _REGISTERED},
        "fenced": fenced_after(),
        "in_controlled_shutdown": in_controlled_shutdown_after(),
        # An empty list changes nothing.
        "log_dirs": F.when(is_registration | (F.size("p.log_dirs") > 0), F.col("p.log_dirs")),
        "cordoned_log_dirs": F.col("p.cordoned_log_dirs"),
    }
    return events.select(
        *event_columns(),
        "broker_id",
        _change(fields).alias("change"),
        *(value.alias(name) for name, value in fields.items()),
    )


def _change(fields: dict[str, Column]) -> Column:
    kind = F.col("record_type")
    return (
        F.when(kind == REGISTER, "registered")
        .when(kind == UNREGISTER, "unregistered")
        .when(fields["fenced"], "fenced")
        .when(~fields["fenced"], "unfenced")
        .when(fields["in_controlled_shutdown"], "controlled_shutdown")
        .when(fields["log_dirs"].isNotNull() | fields["cordoned_log_dirs"].isNotNull(), "directories")
        .otherwise("other")
    )


def _with_carried(lives: DataFrame) -> DataFrame:
    """The fields of the registration and what changed since; nothing before a registration or after a removal."""
    so_far = up_to_here(ordered_by_state("source", "broker_id", "life"))
    carried = {
        **{name: F.first(name).over(so_far) for name in _REGISTERED},
        **{name: F.last(name, ignorenulls=True).over(so_far) for name in _CHANGING},
        "removals": F.count_if(F.col("record_type") == UNREGISTER).over(so_far),
    }
    return lives.withColumns(carried).where((F.col("life") > 0) & (F.col("removals") == 0))


TABLE = AuditTable(
    place=70,
    schema=BROKERS_HISTORY,
    description="Each broker between any two records about it: registered, fenced, unfenced, shutting down.",
    build=lambda inputs: brokers_history(inputs.state),
)
