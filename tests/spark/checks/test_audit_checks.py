"""Planted faults, each found by its check and named with its offset; and nothing found where all is lawful."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kquorum.cli.main import run
from tests.spark.conftest import Audited
from tests.support.spark.planted import SEGMENT, lawful_steps
from tests.support.spark.planted_logs import RANDOM, STEPS, offsets_of

PLANTED = "planted/"
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.slow]


@dataclass
class Planted:
    """The report on all the logs at once, and where the steps of each begin."""

    report: Any
    at: dict[str, dict[str, int]]
    rows: dict[str, list[Any]]
    out: Path

    def violations(self, source: str) -> list[Any]:
        return [row for row in self.rows.get(source, []) if row["severity"] == "violation"]

    def result(self, source: str, check: str) -> Any:
        (result,) = (
            each for each in self.report.results if (each.source, each.check) == (PLANTED + source, check)
        )
        return result


# Of each log: the check that must tell, the step at which, the steps whose offsets prove it (and how far behind them).
EXPECTED: dict[str, tuple[str, tuple[str, int], tuple[tuple[str, int], ...]]] = {
    "flipped": ("checksums", ("moved", 0), ()),
    "dropped": ("offsets", ("idle", 0), (("idle", -1), ("idle", 0), ("second note", 0))),
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


@pytest.fixture(scope="module")
def planted(spark: Any, audited: Audited) -> Planted:
    from kquorum.spark_replay.audit_folder import open_audit
    from kquorum.spark_replay.checks.checking import CheckRequest, check_audit

    tables = open_audit(spark, audited.out)
    names = [each.source for each in tables.manifest.sources if each.source.startswith(PLANTED)]
    report = check_audit(tables, CheckRequest(sources=tuple(names)))
    rows: dict[str, list[Any]] = {}
    for row in report.findings.orderBy("check", "offset", "reason").collect():
        rows.setdefault(row["source"].removeprefix(PLANTED), []).append(row)
    report.findings.unpersist()
    at = {name: offsets_of(steps) for name, steps in STEPS.items()}
    return Planted(report, at, rows, audited.out)


def test_a_valid_log_has_no_finding(planted: Planted) -> None:
    assert planted.rows.get("sound", []) == []
    verdicts = {
        each.check: each.verdict for each in planted.report.results if each.source == PLANTED + "sound"
    }
    assert {check for check, verdict in verdicts.items() if verdict != "passed"} == {
        "snapshot files",
        "snapshot names",
        "snapshot = replay",
        "state hash",
    }
    assert (verdicts["state hash"], verdicts["snapshot = replay"]) == ("skipped", "nothing")
    assert planted.result("sound", "audit chain").checked == 3
    assert planted.result("sound", "transactions").checked == 4


def test_a_snapshot_is_compared_with_the_replay_and_is_not_without_a_log(planted: Planted) -> None:
    compared = planted.result("with-snapshot", "snapshot = replay")
    assert (compared.verdict, compared.checked, planted.rows.get("with-snapshot", [])) == ("passed", 1, [])
    alone = planted.result("only-snapshot", "snapshot = replay")
    assert (alone.verdict, alone.checked) == ("skipped", 0)
    assert "there is no log" in alone.skipped[0]
    assert planted.violations("only-snapshot") == []


@pytest.mark.parametrize("name", RANDOM)
def test_a_random_valid_history_has_no_violation(planted: Planted, name: str) -> None:
    """Unclean elections are in it, and notes; the replay has nothing to say, either."""
    assert planted.violations(name) == []
    assert {row["check"] for row in planted.rows.get(name, [])} <= {"leader in ISR"}
    for check in ("transactions", "after removal", "audit chain", "elections", "replay"):
        assert planted.result(name, check).checked > 5, check


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


def test_what_is_valid_but_worth_knowing_is_a_note(planted: Planted) -> None:
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
    at, facts = planted.at["sound"], report.facts
    second = at["second note"]
    assert (facts.difference.offset, facts.difference.last_offset) == (second, second + 1)
    assert facts.difference.rejoined_offset == at["transaction"]
    (violation,) = (each for each in report.findings if each.is_violation)
    assert (violation.source, violation.offset) == (PLANTED + "voter-2", second)
    assert violation.proof_offsets == (second, at["transaction"])
    assert facts.agreed_below == second
    assert [row["offset"] for row in planted.rows["voter-2"] if row["check"] == "replicas"] == [second]


def test_voters_that_differ_only_in_a_secret_are_not_the_same(planted: Planted) -> None:
    (report,) = (each for each in planted.report.replicas if each.cluster_id == "secrets")
    (finding,) = (each for each in report.findings if each.is_violation)
    assert finding.offset == report.facts.difference.offset == report.facts.agreed_below
    assert {side.record_type for side in report.facts.difference.sides} == {"UserScramCredentialRecord"}
    assert len({side.payload for side in report.facts.difference.sides}) == 1
    assert "they differ in a secret, which is not shown" in finding.reason


def test_the_command_says_all_of_one_log_as_json_and_by_its_exit_status(
    shared_session: None, planted: Planted, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["audit", "check", str(planted.out), "--only", "replay", "--json"]
    assert run([*command, "--source", PLANTED + "removed-topic"]) == 1
    told = json.loads(capsys.readouterr().out)
    (finding,) = told["findings"]
    assert (finding["check"], finding["offset"]) == ("replay", planted.at["removed-topic"]["late"])
    assert (told["violations"], told["replicas"]) == (1, [])
    (log,) = (each for each in told["logs"] if each["checks"])
    assert {each["check"]: each["verdict"] for each in log["checks"]}["replay"] == "violated"
    assert run([*command, "--source", "nowhere"]) == 2
    assert "no log nowhere in this audit" in capsys.readouterr().err
