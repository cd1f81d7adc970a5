"""`voters_history`: who could vote when, by the voter sets in the log or, in a static quorum, by its elections."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import (
    INT,
    INTS,
    QUORUM_EPOCH,
    SOURCE,
    STRING,
    column,
    validity,
)
from kquorum.spark_replay.tables.building.frames import (
    event_columns,
    of_types,
    ordered_by_state,
    shaped,
    with_payload,
    with_validity,
)

VOTERS = ArrayType(
    StructType(
        [
            column("voter_id", INT, "node.id of the controller"),
            column("directory_id", STRING, "id of its metadata directory; null in a static quorum"),
            column(
                "endpoints",
                ArrayType(
                    StructType(
                        [
                            column("name", STRING, "listener name"),
                            column("host", STRING, "host as configured"),
                            column("port", INT, "port"),
                        ]
                    )
                ),
                "its listeners; null in a static quorum",
            ),
            column("min_kraft_version", INT, "lowest kraft.version it supports; null in a static quorum"),
            column("max_kraft_version", INT, "highest kraft.version it supports; null in a static quorum"),
        ]
    )
)

VOTERS_HISTORY = StructType(
    [
        SOURCE,
        column("voter_ids", INTS, "the voters, ascending"),
        column("voters", VOTERS, "the voters as the record tells of them, by ascending id"),
        column("joined", INTS, "voters that the set before had not; null where none is known before"),
        column("left", INTS, "voters of the set before that are gone; null where none is known before"),
        column(
            "record_type",
            STRING,
            "KRaftVoters (KIP-853), or LeaderChange, all that the log of a static quorum tells",
        ),
        QUORUM_EPOCH,
        *validity("the next set of voters"),
    ]
)

VOTER_SET, ELECTION = "KRaftVoters", "LeaderChange"

_ENDPOINT = StructType(
    [
        StructField("name", StringType()),
        StructField("host", StringType()),
        StructField("port", IntegerType()),
    ]
)
_KRAFT_VERSIONS = StructType(
    [
        StructField("min_supported_version", IntegerType()),
        StructField("max_supported_version", IntegerType()),
    ]
)
_VOTER = StructType(
    [
        StructField("voter_id", IntegerType()),
        StructField("voter_directory_id", StringType()),
        StructField("endpoints", ArrayType(_ENDPOINT)),
        StructField("k_raft_version_feature", _KRAFT_VERSIONS),
    ]
)
_PAYLOAD = StructType([StructField("voters", ArrayType(_VOTER))])


def voters_history(counted: DataFrame) -> DataFrame:
    """One row for each set of voters of `counted` (`counted_records`), which need not be committed at its end."""
    order = ordered_by_state("source")
    announced = with_payload(of_types(counted, VOTER_SET, ELECTION), _PAYLOAD).select(
        *event_columns(), _voters().alias("voters")
    )
    sets = announced.withColumn("voter_ids", F.col("voters.voter_id"))
    # An election names the voters by their ids alone: it tells something only where the ids are new.
    ids_before = F.lag("voter_ids").over(order)
    telling = sets.withColumn("ids_before", ids_before).where(
        (F.col("record_type") == VOTER_SET)
        | F.col("ids_before").isNull()
        | (F.col("ids_before") != F.col("voter_ids"))
    )
    changed = telling.withColumns(
        {"voters_before": F.lag("voters").over(order), "ids_before": F.lag("voter_ids").over(order)}
    ).where(F.col("voters_before").isNull() | (F.col("voters_before") != F.col("voters")))
    compared = changed.withColumns(
        {
            "joined": F.array_except("voter_ids", "ids_before"),
            "left": F.array_except("ids_before", "voter_ids"),
        }
    )
    return shaped(with_validity(compared, order), VOTERS_HISTORY)


def _voters() -> Column:
    """By ascending id; of an election the ids only, for its directory ids are zeros."""
    full = F.col("record_type") == VOTER_SET

    def voter(item: Column) -> Column:
        return F.struct(
            item["voter_id"].alias("voter_id"),
            F.when(full, item["voter_directory_id"]).alias("directory_id"),
            F.when(full, item["endpoints"]).alias("endpoints"),
            F.when(full, item["k_raft_version_feature"]["min_supported_version"]).alias("min_kraft_version"),
            F.when(full, item["k_raft_version_feature"]["max_supported_version"]).alias("max_kraft_version"),
        )

    return F.array_sort(F.transform("p.voters", voter)).cast(VOTERS)


TABLE = AuditTable(
    place=50,
    schema=VOTERS_HISTORY,
    description="Who could vote when: one row for each set of voters.",
    build=lambda inputs: voters_history(inputs.counted_records),
)
