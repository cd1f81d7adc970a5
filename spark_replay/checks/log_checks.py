"""Checks of the log itself: unreadable parts, continuity of offsets and epochs, elections.

The faults that a scan found are in the table `damage`. A row beside a sound batch at the same place means that the
batch does not continue the one before it; a row without a batch means bytes that are no sound batch.
"""

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.checks.findings import NOTE, VIOLATION, CheckName, found
from kquorum.spark_replay.checks.inputs import CheckInputs
from kquorum.wire.metadata_records.registry import BY_API_KEY

_PLACE: Final = ("source", "file", "position")
_UNREAD: Final = (
    *_PLACE,
    "state_offset",
    "record_type",
    "is_control",
    "api_key",
    "version",
    "payload",
    "problem",
)


def checksums(inputs: CheckInputs) -> DataFrame:
    """Bytes that are no sound batch, at the end of a file (torn) or elsewhere."""
    broken = _damage(inputs).where(F.col("kind").isin("torn", "corrupt") & F.col("base_offset").isNull())
    return found(broken, CheckName.CHECKSUMS, reason=F.concat_ws(": ", "kind", "reason"))


def offsets(inputs: CheckInputs) -> DataFrame:
    """Batches that do not begin where the one before them ended, in a file or from one segment to the next."""
    misplaced = (F.col("base_offset") < 0) | (F.col("base_offset") != F.col("offset"))
    wrong = _damage(inputs).where(
        (F.col("kind") == "gap") | ((F.col("kind") == "corrupt") & F.coalesce(misplaced, F.lit(False)))
    )
    proof = (F.col("offset") - 1, "base_offset")
    return found(wrong, CheckName.OFFSETS, reason=F.col("reason"), proof=proof)


def unreadable_records(inputs: CheckInputs) -> DataFrame:
    """Batches with a right checksum that cannot be taken apart, and records that cannot be read. What a newer Kafka
    wrote is a note for each type and version, with the first offset."""
    batches = _damage(inputs).where(F.col("kind") == "undecodable")
    undecodable = found(batches, CheckName.RECORDS, reason=F.col("reason"))
    records = inputs.kept(
        "unreadable",
        lambda: inputs.table("records").where(F.col("payload").isNull()).select(*_UNREAD),
    )
    broken = found(
        records.where(_is_known_version()),
        CheckName.RECORDS,
        offset="state_offset",
        subject=F.col("record_type"),
        reason=F.concat(
            F.col("record_type"), F.lit(" cannot be read: "), F.coalesce("problem", F.lit("why is unknown"))
        ),
    )
    return undecodable.unionByName(broken).unionByName(_newer(records.where(~_is_known_version())))


def _newer(records: DataFrame) -> DataFrame:
    counted = records.groupBy("source", "record_type", "is_control", "api_key", "version").agg(
        F.count("*").alias("count"),
        F.min("state_offset").alias("offset"),
        F.min_by("file", "state_offset").alias("file"),
    )
    kind = F.when(F.col("is_control"), "control records of type").otherwise("records of type")
    version = F.coalesce(F.concat(F.lit(" version "), F.col("version").cast("string")), F.lit(""))
    said = F.format_string(
        "%,d %s %s%s, which this program does not know: they are in `records`, undecoded, and in no other table",
        "count",
        kind,
        F.coalesce(F.col("api_key").cast("string"), F.lit("unknown")),
        version,
    )
    return found(counted, CheckName.RECORDS, severity=NOTE, reason=said)


def quorum_epochs(inputs: CheckInputs) -> DataFrame:
    """The leader epoch never goes back from batch to batch."""
    back = _turns(inputs).where(F.col("leader_epoch") < F.col("epoch_before"))
    reason = F.format_string(
        "the batch is of leader epoch %d, behind one of %d", "leader_epoch", "epoch_before"
    )
    return found(back, CheckName.EPOCHS, offset="base_offset", proof=["last_before"], reason=reason)


def timestamps(inputs: CheckInputs) -> DataFrame:
    """A clock that went back is lawful: times are what the controllers' clocks said."""
    back = _turns(inputs).where(F.col("timestamp_ms") < F.col("ms_before"))
    reason = F.format_string(
        "the batch is %,d ms older than the one before it%s",
        F.col("ms_before") - F.col("timestamp_ms"),
        F.when(
            F.col("leader_epoch") > F.col("epoch_before"), ", with which another controller's clock comes in"
        ).otherwise(", of the same controller"),
    )
    return found(
        back, CheckName.TIMESTAMPS, severity=NOTE, offset="base_offset", proof=["last_before"], reason=reason
    )


def elections(inputs: CheckInputs) -> DataFrame:
    """An epoch has one leader, who is or was a voter, and votes of a majority. That it begins with the record of its
    election is usual, but controllers of Kafka 3.5 have been seen to write their first records before it."""
    begun = _turns(inputs).where(
        (F.col("leader_epoch") > F.col("epoch_before")) & (F.col("base_offset") == F.col("last_before") + 1)
    )
    without = found(
        begun.where(~F.col("is_control")),
        CheckName.ELECTIONS,
        severity=NOTE,
        offset="base_offset",
        proof=["last_before"],
        reason=F.format_string("epoch %d does not begin with the record of its election", "leader_epoch"),
    )
    changes = inputs.table("records").where(
        (F.col("file_kind") == "log")
        & (F.col("record_type") == "LeaderChange")
        & F.col("payload").isNotNull()
    )
    elected = changes.withColumn(
        "p",
        F.from_json(
            "payload",
            "leader_id int, voters array<struct<voter_id int>>, granting_voters array<struct<voter_id int>>",
        ),
    ).select(*_PLACE, "offset", "leader_epoch", "p.*")
    return reduce(DataFrame.unionByName, [without, _two_leaders(elected), _no_majority(elected)])


def _two_leaders(elected: DataFrame) -> DataFrame:
    of_epoch = Window.partitionBy("source", "leader_epoch").orderBy("offset")
    named = elected.withColumns(
        {"other": F.lag("leader_id").over(of_epoch), "offset_before": F.lag("offset").over(of_epoch)}
    )
    reason = F.format_string(
        "epoch %d has leader %d, and had %d before", "leader_epoch", "leader_id", "other"
    )
    wrong = named.where(F.col("other") != F.col("leader_id"))
    return found(wrong, CheckName.ELECTIONS, proof=["offset_before"], reason=reason)


def _no_majority(elected: DataFrame) -> DataFrame:
    """A leader outside of the voters is lawful, and noted, if most of them voted for it: a voter whose removal
    the others do not know can be the only one with enough of the log to lead (Ongaro's dissertation, 4.2.2)."""
    voters, granting = F.col("voters.voter_id"), F.col("granting_voters.voter_id")
    granted = F.size(F.array_intersect(F.array_distinct(granting), voters))
    no_voter = ~F.array_contains(voters, F.col("leader_id"))
    # Kafka 3.0 to 3.2 may have left the list empty; later ones write who voted.
    too_few = (F.size(granting) > 0) & (granted * 2 <= F.size(voters))
    who = F.format_string(
        "leader %d of epoch %d has votes of [%s] among the voters [%s]",
        "leader_id",
        "leader_epoch",
        F.concat_ws(" ", granting.cast("array<string>")),
        F.concat_ws(" ", voters.cast("array<string>")),
    )
    is_leaving = no_voter & ~too_few & (F.size(granting) > 0)
    why = (
        F.when(is_leaving, F.lit("it is no voter itself, which is lawful until its removal is committed"))
        .when(no_voter, F.lit("it is no voter itself"))
        .otherwise(F.lit("that is no majority"))
    )
    return found(
        elected.where(no_voter | too_few),
        CheckName.ELECTIONS,
        reason=F.concat_ws(": ", who, why),
        severity=F.when(is_leaving, NOTE).otherwise(VIOLATION),
    )


def _damage(inputs: CheckInputs) -> DataFrame:
    """`damage` with the `base_offset` of the sound batch at the same place, null if there is none. A scan also finds
    epochs that go back, but only within a file: those are left to `quorum_epochs`."""
    batches = inputs.table("batches").select(*_PLACE, "base_offset")
    return batches.join(inputs.table("damage"), list(_PLACE), "right")


def _turns(inputs: CheckInputs) -> DataFrame:
    """The batches of the log that are of another epoch than the one before, or older, each with what that one says."""
    return inputs.kept("turns", lambda: _found_turns(inputs))


def _found_turns(inputs: CheckInputs) -> DataFrame:
    order = Window.partitionBy("source").orderBy("segment_base_offset", "position")
    before = {"epoch_before": "leader_epoch", "ms_before": "timestamp_ms", "last_before": "last_offset"}
    columns = (
        *_PLACE,
        "segment_base_offset",
        "base_offset",
        "last_offset",
        "leader_epoch",
        "timestamp_ms",
        "is_control",
    )
    log = inputs.table("batches").where(F.col("file_kind") == "log").select(*columns)
    placed = log.withColumns({name: F.lag(column).over(order) for name, column in before.items()})
    is_turn = (F.col("leader_epoch") != F.col("epoch_before")) | (F.col("timestamp_ms") < F.col("ms_before"))
    return placed.where(is_turn)


def _is_known_version() -> Column:
    known = F.lit(False)
    for api_key, record in BY_API_KEY.items():
        known = known | ((F.col("api_key") == api_key) & F.col("version").between(*record.versions))
    return F.coalesce(known & ~F.col("is_control"), F.lit(False))
