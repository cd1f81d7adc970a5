"""Planted faults, each found by its check and named with its offset; and nothing found where all is lawful."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.spark.planted import (
    SEGMENT,
    History,
    Step,
    config,
    drop_batch,
    flip_byte,
    forged,
    lawful_steps,
    set_epoch_back,
    unfenced,
    with_step,
    write_history,
)
from tests.support.sample_logs import COMMITTED, ORDERS, broker, partition
from wire.metadata_records.features import BeginTransactionRecord, EndTransactionRecord, NoOpRecord
from wire.metadata_records.topics import PartitionChangeRecord, RemoveTopicRecord, TopicRecord

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

VOTERS = ("voter-1", "voter-2", "voter-3")


@dataclass
class Planted:
    """The report on all the logs at once, and where the steps of each begin."""

    report: Any
    at: dict[str, dict[str, int]]
    rows: dict[str, list[Any]]

    def violations(self, source: str) -> list[Any]:
        return [row for row in self.rows.get(source, []) if row["severity"] == "violation"]

    def result(self, source: str, check: str) -> Any:
        (result,) = (each for each in self.report.results if (each.source, each.check) == (source, check))
        return result


def moved(number: int = 0, **values: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=number, topic_id=ORDERS, **values)  # type: ignore[arg-type]


def index_of(name: str) -> int:
    return [step.name for step in lawful_steps()].index(name)


STEPS: dict[str, list[Step]] = {
    "sound": lawful_steps(),
    "flipped": lawful_steps(),
    "dropped": lawful_steps(),
    "epoch-back": lawful_steps(),
    "forged-note": forged(lawful_steps(), "second note"),
    "leader-outside": with_step("moved", moved(leader=1, isr=(2, 3))),
    "recovering": with_step("moved", moved(leader=1, isr=(2, 3), leader_recovery_state=1)),
    "isr-outside": with_step("moved", moved(isr=(1, 4))),
    "partition-epoch": with_step("again", partition(ORDERS, 0, 1, (1, 2, 3)), before="second note"),
    "removed-topic": with_step(
        "late", PartitionChangeRecord(partition_id=0, topic_id=COMMITTED, isr=(1,)), before="end"
    ),
    "removed-twice": with_step("late", RemoveTopicRecord(topic_id=COMMITTED), before="end"),
    "made-twice": with_step("late", TopicRecord(name="orders", topic_id=COMMITTED), before="end"),
    "no-partition": with_step("late", moved(7, isr=(1,)), before="end"),
    "gone-broker": with_step("late", unfenced(3), before="end"),
    "stale-broker": with_step("newer", broker(2, 9), unfenced(2), before="end"),
    "begin-twice": with_step("open", BeginTransactionRecord(name="open"), before="begun"),
    "end-alone": with_step("alone", EndTransactionRecord(), before="end"),
    "left-open": with_step("last", BeginTransactionRecord(name="open"), config("9"), before="end")[:-1],
}
# Of each log: the check that must tell, the step at which, the steps whose offsets prove it (and how far behind them).
EXPECTED: dict[str, tuple[str, tuple[str, int], tuple[tuple[str, int], ...]]] = {
    "flipped": ("checksums", ("moved", 0), ()),
    "dropped": ("offsets", ("idle", 0), (("idle", -1), ("second note", 0))),
    "epoch-back": ("quorum epochs", ("third note", 0), (("aborted", 0), ("third note", 0))),
    "forged-note": ("audit chain", ("third note", 0), (("second note", 0), ("third note", 0))),
    "leader-outside": ("leader in ISR", ("moved", 0), ()),
    "isr-outside": ("ISR in replicas", ("moved", 0), ()),
    "partition-epoch": ("partition epochs", ("again", 0), (("moved", 0), ("again", 0))),
    "removed-topic": ("after removal", ("late", 0), (("removed", 0), ("late", 0))),
    "removed-twice": ("after removal", ("late", 0), (("removed", 0), ("late", 0))),
    "no-partition": ("after removal", ("late", 0), ()),
    "gone-broker": ("after removal", ("late", 0), (("unregistered", 0), ("late", 0))),
    "stale-broker": ("after removal", ("newer", 1), (("newer", 0), ("newer", 1))),
    "begin-twice": ("transactions", ("begun", 0), (("open", 0), ("begun", 0))),
    "end-alone": ("transactions", ("alone", 0), (("aborted", 0), ("alone", 0))),
}
BYTES: dict[str, Callable[[Path], None]] = {
    "flipped": lambda folder: flip_byte(folder, index_of("moved")),
    "dropped": lambda folder: drop_batch(folder, index_of("idle")),
    "epoch-back": lambda folder: set_epoch_back(folder, index_of("third note"), 1),
}


@pytest.fixture(scope="module")
def planted(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Planted:
    from spark_replay.audit import build
    from spark_replay.audit_folder import open_audit
    from spark_replay.checks.checking import check_audit

    root, out = tmp_path_factory.mktemp("planted"), tmp_path_factory.mktemp("tables")
    at = {}
    for name, steps in STEPS.items():
        at[name] = write_history(root / name, steps).at
        BYTES.get(name, lambda _: None)(root / name)
    at |= _write_voters(root)
    build(spark, root, out)
    report = check_audit(open_audit(spark, out))
    rows: dict[str, list[Any]] = {}
    for row in report.findings.orderBy("check", "offset", "reason").collect():
        rows.setdefault(row["source"], []).append(row)
    report.findings.unpersist()
    return Planted(report, at, rows)


def _write_voters(root: Path) -> dict[str, dict[str, int]]:
    """The three voters of one quorum. One has not fetched the last batch, and another holds another record where
    all have committed."""
    steps = lawful_steps()
    lied = [
        replace(step, records=(NoOpRecord(), NoOpRecord())) if step.name == "second note" else step
        for step in steps
    ]
    histories: dict[str, History] = {}
    for node_id, (name, held) in enumerate(zip(VOTERS, (steps, lied, steps[:-1]), strict=True), start=1):
        histories[name] = write_history(root / name, held, node_id=node_id, cluster="voters")
    return {name: history.at for name, history in histories.items()}


def test_a_lawful_log_has_no_finding(planted: Planted) -> None:
    assert planted.rows.get("sound", []) == []
    verdicts = {each.check: each.verdict for each in planted.report.results if each.source == "sound"}
    assert {check for check, verdict in verdicts.items() if verdict != "passed"} == {
        "snapshot files",
        "snapshot names",
        "snapshot = replay",
        "state hash",
    }
    assert (verdicts["state hash"], verdicts["snapshot = replay"]) == ("skipped", "nothing")
    assert planted.result("sound", "audit chain").checked == 3
    assert planted.result("sound", "transactions").checked == 4


@pytest.mark.parametrize("name", EXPECTED)
def test_a_planted_fault_is_found_and_named_with_its_offset(planted: Planted, name: str) -> None:
    check, (step, behind), proof = EXPECTED[name]
    offset = planted.at[name][step] + behind
    (found,) = [row for row in planted.violations(name) if row["check"] == check]
    assert (found["offset"], found["file"]) == (offset, SEGMENT)
    proofs = [planted.at[name][each] + more for each, more in proof] or [offset]
    assert found["proof_offsets"] == proofs
    # And nothing else is made of it.
    assert {row["check"] for row in planted.violations(name)} == {check}


def test_a_topic_made_again_under_its_id_and_a_name_that_is_taken(planted: Planted) -> None:
    late = planted.at["made-twice"]["late"]
    found = [(row["offset"], row["reason"]) for row in planted.violations("made-twice")]
    assert [offset for offset, _ in found] == [late, late]
    assert any("made again" in reason for _, reason in found)
    assert any("of this name is there already" in reason for _, reason in found)


def test_what_is_lawful_but_worth_knowing_is_a_note(planted: Planted) -> None:
    for name, check, step in (
        ("recovering", "leader in ISR", "moved"),
        ("left-open", "transactions", "last"),
    ):
        found = [row for row in planted.rows[name] if row["check"] == check]
        assert [(row["severity"], row["offset"]) for row in found] == [("note", planted.at[name][step])]
        assert planted.violations(name) == []


def test_a_fault_behind_missing_records_may_be_their_consequence(planted: Planted) -> None:
    """The records of the damaged batch moved the partition: what follows may only look wrong."""
    result = planted.result("flipped", "checksums")
    assert (result.violations, result.verdict, result.checked) == (1, "violated", len(lawful_steps()))
    assert planted.violations("flipped")[0]["position"] is not None


def test_a_voter_with_another_record_below_what_all_committed_is_named(planted: Planted) -> None:
    (report,) = (each for each in planted.report.replicas if each.cluster_id == "voters")
    at, facts = planted.at["voter-1"], report.facts
    second = at["second note"]
    assert (facts.difference.offset, facts.difference.last_offset) == (second, second + 1)
    assert facts.difference.rejoined_offset == at["transaction"]
    (violation,) = (each for each in report.findings if each.is_violation)
    assert (violation.source, violation.offset) == ("voter-2", second)
    assert violation.proof_offsets == (second, at["transaction"])
    assert facts.agreed_below == second
    assert [row["source"] for row in planted.rows["voter-2"] if row["check"] == "replicas"] == ["voter-2"]
