"""Which candidates may lead by the votes that their rows record: rows made by hand."""

import pytest
from pyspark.sql import SparkSession

from kquorum.spark_replay.checks.findings import NOTE, VIOLATION
from kquorum.spark_replay.checks.log_checks import _no_majority

SCHEMA = (
    "source string, file string, position long, offset long, leader_epoch int, leader_id int, "
    "voters array<struct<voter_id: int>>, granting_voters array<struct<voter_id: int>>"
)
ELECTIONS = {
    "a majority of the voters": (1, (1, 2, 3), (1, 2), None),
    "too few votes": (1, (1, 2, 3), (1,), (VIOLATION, "that is no majority")),
    "of a Kafka that names no votes": (1, (1, 2, 3), (), None),
    "no voter any more, elected by most": (
        *(4, (1, 2, 3), (1, 2, 4)),
        (NOTE, "it is no voter itself, which is lawful until its removal is committed"),
    ),
    "no voter, and its own vote was needed": (
        *(4, (1, 2, 3), (1, 4)),
        (VIOLATION, "it is no voter itself"),
    ),
    "no voter, and the votes are unknown": (4, (1, 2, 3), (), (VIOLATION, "it is no voter itself")),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[int, tuple[str, str]]:
    """Severity and last words of what is found, by offset: one election each."""
    rows = [
        ("log", "0.log", 0, offset, offset, leader, [(each,) for each in voters], [(each,) for each in votes])
        for offset, (leader, voters, votes, _) in enumerate(ELECTIONS.values())
    ]
    findings = _no_majority(spark.createDataFrame(rows, SCHEMA)).collect()
    return {row["offset"]: (row["severity"], row["reason"].rpartition(": ")[2]) for row in findings}


@pytest.mark.parametrize("name", ELECTIONS)
def test_an_election_is(name: str, found: dict[int, tuple[str, str]]) -> None:
    assert found.get(list(ELECTIONS).index(name)) == ELECTIONS[name][3]
