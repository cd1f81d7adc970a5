"""What the comparison of the logs of one quorum comes to, from facts made by hand."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kquorum.spark_replay.audit_manifest import AuditedSource
from kquorum.spark_replay.checks.replica_facts import Beyond, Difference, MissingRecords, ReplicaFacts, Side
from kquorum.spark_replay.checks.replica_verdict import ReplicaFinding, findings_of, watermark
from kquorum.spark_replay.decode.bases import StateBase
from kquorum.spark_replay.decode.members import Member

NO_SNAPSHOTS: Mapping[str, Mapping[str, int]] = {}


def log(node_id: int, end: int, *, epoch: int | None = None, leader: int | None = None) -> AuditedSource:
    name = f"v{node_id}"
    return AuditedSource(
        source=name,
        files=(),
        member=Member(cluster_id="c", node_id=node_id, leader_epoch=epoch, leader_id=leader),
        base=StateBase(source=name, snapshot=None, from_offset=0),
        start_offset=0,
        end_offset=end,
    )


def facts(
    *sources: AuditedSource, epochs: Mapping[str, int], difference: Difference | None = None
) -> ReplicaFacts:
    return ReplicaFacts(
        sources=sources,
        voter_ids=(1, 2, 3),
        last_epochs=dict(epochs),
        difference=difference,
        missing_records=(),
        beyond=(),
        batches=1,
    )


def side(epoch: int, *sources: str, base: int = 50) -> Side:
    return Side(
        sources=sources,
        base_offset=base,
        last_offset=base,
        leader_epoch=epoch,
        crc=epoch,
        record_type="NoOpRecord",
        payload="{}",
    )


def apart(*sides: Side, rejoined: int | None = None) -> Difference:
    return Difference(offset=50, last_offset=50, count=1, sides=sides, rejoined_offset=rejoined)


def only(found: ReplicaFacts, snapshots: Mapping[str, Mapping[str, int]] = NO_SNAPSHOTS) -> ReplicaFinding:
    (finding,) = [
        each
        for each in findings_of(found, watermark(found, snapshots), snapshots)
        if each.subject != "uncommitted end"
    ]
    return finding


def test_a_record_that_one_voter_holds_alone_is_not_committed_and_says_who_knows_of_its_epoch() -> None:
    found = facts(
        log(1, 101, epoch=9, leader=1),
        log(2, 100, epoch=8, leader=3),
        log(3, 100, epoch=9, leader=1),
        epochs={"v1": 9, "v2": 8, "v3": 8},
    )
    elected = Beyond(
        source="v1", leader_epoch=9, record_type="LeaderChange", count=1, first_offset=100, last_offset=100
    )
    found = replace(found, beyond=(elected,))
    mark = watermark(found, {"v2": {"a": 60}, "v1": {"b": 70}})
    assert (mark.at_least, mark.by, mark.majority_below) == (70, "b", 100)
    (finding,) = findings_of(found, mark, NO_SNAPSHOTS)
    assert (finding.is_violation, finding.source, finding.offset) == (False, "v1", 100)
    assert "1 LeaderChange" in finding.reason
    assert "v2 has not heard of epoch 9: its quorum-state says 8" in finding.reason
    assert "v3 knows of epoch 9, led by 1" in finding.reason


def test_an_end_that_a_majority_holds_is_no_finding() -> None:
    found = facts(log(1, 120), log(2, 110), log(3, 100), epochs={"v1": 1, "v2": 1, "v3": 1})
    mark = watermark(found, NO_SNAPSHOTS)
    assert mark.majority_below == 110
    assert [each.source for each in findings_of(found, mark, NO_SNAPSHOTS)] == ["v1"]


@pytest.mark.parametrize("nodes", [(1,), (1, 4), (4, 5)])
def test_with_too_few_voters_nothing_is_said_of_a_majority(nodes: tuple[int, ...]) -> None:
    found = facts(*(log(node, 100) for node in nodes), epochs={f"v{node}": 1 for node in nodes})
    assert watermark(found, NO_SNAPSHOTS).majority_below is None


def test_two_copies_of_one_node_are_one_voter() -> None:
    copy = replace(log(1, 100), source="v1-older")
    found = facts(log(1, 120), copy, epochs={"v1": 1, "v1-older": 1})
    assert watermark(found, NO_SNAPSHOTS).majority_below is None


def test_the_end_of_a_deposed_leader_is_valid() -> None:
    """Voter 3 led epoch 4 and wrote records that no replica fetched; the others went on in epoch 5."""
    difference = apart(side(5, "v1", "v2"), side(4, "v3"))
    found = facts(
        log(1, 90), log(2, 90), log(3, 60), epochs={"v1": 5, "v2": 5, "v3": 4}, difference=difference
    )
    finding = only(found)
    assert (finding.is_violation, finding.source, finding.offset) == (False, "v3", 50)
    assert "v3 last heard of epoch 4, and will drop everything from offset 50 on" in finding.reason
    assert watermark(found, NO_SNAPSHOTS).majority_below == 90


def test_an_older_epoch_wins_where_its_log_went_on_later() -> None:
    """Voter 1's record of epoch 5 outlived voter 3's election for epoch 6, as epoch 7 went on from it."""
    difference = apart(side(5, "v1", "v2"), side(6, "v3"))
    found = facts(
        log(1, 90), log(2, 90), log(3, 51), epochs={"v1": 7, "v2": 7, "v3": 6}, difference=difference
    )
    assert only(found).is_violation is False
    assert only(found).source == "v3"


VIOLATIONS = {
    "one epoch": (apart(side(5, "v1", "v2"), side(5, "v3")), {"v1": 5, "v2": 5, "v3": 5}, {}, "one epoch"),
    "the same again behind it": (
        apart(side(5, "v1", "v2"), side(4, "v3"), rejoined=57),
        {"v1": 5, "v2": 5, "v3": 5},
        {},
        "From offset 57 on they hold the same again",
    ),
    "both committed": (
        apart(side(5, "v1", "v2"), side(4, "v3")),
        {"v1": 5, "v2": 5, "v3": 4},
        {"v1": {"a.checkpoint": 51}, "v3": {"b.checkpoint": 55}},
        "Both were committed",
    ),
    "committed records yield": (
        apart(side(5, "v1"), side(6, "v3")),
        {"v1": 5, "v3": 6},
        {"v1": {"a.checkpoint": 51}},
        "committed records are lost",
    ),
    "a majority yields": (
        apart(side(5, "v1", "v2"), side(6, "v3")),
        {"v1": 5, "v2": 5, "v3": 6},
        {},
        "unless the copies were made at different moments",
    ),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_what_no_quorum_can_have_come_to_is_a_violation(name: str) -> None:
    difference, epochs, snapshots, why = VIOLATIONS[name]
    logs = [log(int(source[1:]), 90) for source in epochs]
    found = facts(*logs, epochs=epochs, difference=difference)
    finding = only(found, snapshots)
    assert finding.is_violation
    assert why in finding.reason
    assert finding.offset == 50


def test_batches_of_one_epoch_that_are_cut_otherwise_are_a_violation_though_the_records_read_the_same() -> (
    None
):
    whole = replace(side(5, "v1", "v2"), last_offset=52)
    difference = apart(whole, replace(side(5, "v3"), crc=7))
    found = facts(
        log(1, 90), log(2, 90), log(3, 60), epochs={"v1": 5, "v2": 5, "v3": 5}, difference=difference
    )
    finding = only(found)
    assert (finding.is_violation, finding.source) == (True, "v3")
    assert "v1 and v2 hold NoOpRecord of epoch 5 (batch 50 to 52" in finding.reason
    assert "they differ in a secret, which is not shown" in finding.reason


def test_a_snapshot_that_ends_at_the_difference_proves_nothing_of_it() -> None:
    difference = apart(side(5, "v1", "v2"), side(4, "v3"))
    found = facts(
        log(1, 90), log(2, 90), log(3, 60), epochs={"v1": 5, "v2": 5, "v3": 4}, difference=difference
    )
    assert not only(found, {"v3": {"a.checkpoint": 50}}).is_violation


def test_missing_records_are_reported_and_are_no_difference() -> None:
    found = facts(log(1, 90), log(2, 90), epochs={"v1": 1, "v2": 1})
    found = replace(
        found, missing_records=(MissingRecords(source="v2", first_offset=7, last_offset=9, count=3),)
    )
    finding = only(found)
    assert (finding.is_violation, finding.source, finding.proof_offsets) == (False, "v2", (7, 9))
    assert found.agreed_below == 90
