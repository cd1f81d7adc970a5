"""`acls_history`: every access control entry, from the record that made it to the one that removed it."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import QUORUM_EPOCH, SOURCE, STRING, column, validity
from kquorum.spark_replay.tables.building.frames import (
    event_columns,
    named,
    of_types,
    ordered_by_state,
    shaped,
    with_payload,
    with_validity,
)

ACLS_HISTORY = StructType(
    [
        SOURCE,
        column("acl_id", STRING, "id of the entry"),
        column("principal", STRING, "the principal that the entry allows or denies, as in User:alice"),
        column("host", STRING, "from which address; * for any"),
        column("permission", STRING, "ALLOW or DENY"),
        column("operation", STRING, "READ, WRITE, ALTER_CONFIGS, ...; UNKNOWN(number) if Kafka 4.3 has none"),
        column("resource_type", STRING, "TOPIC, GROUP, CLUSTER, ..."),
        column("resource_name", STRING, "name or prefix of the resource"),
        column("pattern_type", STRING, "LITERAL or PREFIXED"),
        QUORUM_EPOCH,
        column("ended_by", STRING, "removed, or replaced by another of its id; null while it holds"),
        *validity("its removal"),
    ]
)

CREATED, REMOVED = "AccessControlEntryRecord", "RemoveAccessControlEntryRecord"
PATTERN_TYPES = {3: "LITERAL", 4: "PREFIXED"}
PERMISSIONS = {2: "DENY", 3: "ALLOW"}

_NUMBERS = ("resource_type", "pattern_type", "operation", "permission_type")
_TEXTS = ("resource_name", "principal", "host")
_PAYLOAD = StructType(
    [
        StructField("id", StringType()),
        *(StructField(name, IntegerType()) for name in _NUMBERS),
        *(StructField(name, StringType()) for name in _TEXTS),
    ]
)


def acls_history(state: DataFrame) -> DataFrame:
    """One row for each entry, which never changes: what is altered gets another id."""
    events = with_payload(of_types(state, CREATED, REMOVED), _PAYLOAD).select(
        *event_columns(),
        F.col("p.id").alias("acl_id"),
        *(F.col(f"p.{name}").alias(name) for name in _TEXTS),
        _named("resource_type", {each.value: each.name for each in ResourceType}),
        _named("pattern_type", PATTERN_TYPES),
        _named("operation", {each.value: each.name for each in Operation}),
        _named("permission_type", PERMISSIONS).alias("permission"),
        F.when(F.col("record_type") == REMOVED, "removed").otherwise("replaced").alias("ending"),
    )
    held = with_validity(events, ordered_by_state("source", "acl_id"), "ending")
    created = held.where(F.col("record_type") == CREATED).withColumn("ended_by", F.col("next_ending"))
    return shaped(created, ACLS_HISTORY)


def _named(field: str, names: Mapping[int, str]) -> Column:
    code = F.col(f"p.{field}")
    return named(code, names, F.format_string("UNKNOWN(%d)", code)).alias(field)


TABLE = AuditTable(
    place=150,
    schema=ACLS_HISTORY,
    description="Each access control entry, from its creation to its removal.",
    build=lambda inputs: acls_history(inputs.state),
    made_from=(CREATED,),
)
