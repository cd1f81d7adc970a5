"""Tables about the quorum and the brokers."""

from pyspark.sql.types import ArrayType, StructType

from kquorum.spark_replay.schema_columns import (
    BATCH_BASE_OFFSET,
    BOOLEAN,
    INT,
    INTS,
    LONG,
    QUORUM_EPOCH,
    SOURCE,
    STRING,
    STRINGS,
    TIMESTAMP,
    column,
    validity,
)

QUORUM_EPOCHS = StructType(
    [
        SOURCE,
        column("epoch", INT, "quorum epoch"),
        column("leader_id", INT, "controller elected, by the leader change record"),
        column("voters", INTS, "voters at the election"),
        column("granting_voters", INTS, "voters whose vote it had"),
        column("start_offset", LONG, "offset of the first record of the epoch"),
        column("start_ms", LONG, "time of that record"),
        column("start", TIMESTAMP, "start_ms as a timestamp"),
        column("end_offset", LONG, "first offset of the next epoch in the log, exclusive; null for the last"),
        column("end_ms", LONG, "time of the first record of the next epoch; null for the last"),
        column("records", LONG, "records written in the epoch"),
        column("last_record_ms", LONG, "time of the last of them"),
    ]
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
_REGISTRATION = [
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
        *_REGISTRATION,
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
        column("fenced", BOOLEAN, "whether it is fenced: it then leads nothing and is told to nobody"),
        column("in_controlled_shutdown", BOOLEAN, "whether it is handing over what it leads"),
        *_REGISTRATION,
        column("cordoned_log_dirs", STRINGS, "directories that take no new partitions; null if never told"),
        column("record_type", STRING, "type of the record that brought this about"),
        QUORUM_EPOCH,
        BATCH_BASE_OFFSET,
        column("ended_by", STRING, "the next row's change, or unregistered; null while it holds"),
        *validity("the next record about the broker"),
    ]
)
