"""`audit check` without Spark: the hashes it is given, and how findings are shown."""

import json
from pathlib import Path

import pytest

from kquorum.cli.commands.audit.check import recorded_hashes, show_report
from kquorum.cli.failures import CliError
from kquorum.cli.main import run
from kquorum.metadata.log_check.state_replay import RecordedHash
from kquorum.spark_replay.audit_manifest import AuditedSource, AuditManifest
from kquorum.spark_replay.checks.findings import CheckName
from kquorum.spark_replay.checks.results import CheckReport, CheckResult, FoundRow
from kquorum.spark_replay.decode.bases import StateBase
from kquorum.spark_replay.decode.members import Member

ONE, OTHER = "0123456789abcdef" * 2, "f" * 32


def test_hashes_of_options_are_for_one_log_or_for_all() -> None:
    found = recorded_hashes([f"10:{ONE}", f"a=b/c=7:{OTHER.upper()}"], [])
    assert found == {None: (RecordedHash(10, ONE),), "a=b/c": (RecordedHash(7, OTHER),)}


def test_hashes_are_found_in_what_quorum_status_and_log_state_hash_print(tmp_path: Path) -> None:
    status, single = tmp_path / "status.json", tmp_path / "single.json"
    state = {"offset": 12, "hash": ONE, "agreed_offset": 12}
    status.write_text(json.dumps({"leader_id": 1, "voters": [{"state": state}, {"state": None}]}))
    single.write_text(json.dumps({"source": "node-1", "offset": 9, "state_hash": OTHER, "scheme": 1}))
    assert recorded_hashes([], [status, single, status]) == {
        None: (RecordedHash(12, ONE), RecordedHash(9, OTHER))
    }


@pytest.mark.parametrize("text", ["", "12", f":{ONE}", "12:abc", f"12:{ONE}0", f"-1:{ONE}"])
def test_a_hash_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(CliError, match="OFFSET:HASH"):
        recorded_hashes([text], [])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "is no JSON"),
        ('{"offset": 1}', "holds no hash"),
        (json.dumps({"offset": 1, "state_hash": ONE, "scheme": 9}), "of scheme 9"),
    ],
)
def test_a_file_without_usable_hashes_is_refused(tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "hashes.json"
    path.write_text(content)
    with pytest.raises(CliError, match=why):
        recorded_hashes([], [path])


def test_a_wrong_hash_option_costs_no_spark(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["audit", "check", str(tmp_path), "--state-hash", "x"]) == 2
    assert capsys.readouterr().err.startswith("error: --state-hash x: expected")


def result(check: CheckName, **values: object) -> CheckResult:
    return CheckResult(source="log", check=check, unit="batches", **values)  # type: ignore[arg-type]


def test_what_was_not_checked_is_never_shown_as_passed(capsys: pytest.CaptureFixture[str]) -> None:
    source = AuditedSource(
        source="log",
        files=(),
        member=Member(node_id=1),
        base=StateBase(source="log", snapshot=None, from_offset=0),
        start_offset=0,
        end_offset=8,
    )
    finding = FoundRow(
        check="checksums",
        severity="violation",
        source="log",
        file="a.log",
        position=61,
        offset=7,
        proof_offsets=(6, 7),
        subject="[bold]x\x1b[2J",
        reason="corrupt",
    )
    report = CheckReport(
        results=(
            result(CheckName.CHECKSUMS, checked=1, violations=3, first=(finding,)),
            result(CheckName.OFFSETS, checked=2),
            result(CheckName.AUDIT_CHAIN, checked=0),
            result(CheckName.REPLAY, checked=0, skipped=("the files are gone",)),
            result(CheckName.SNAPSHOT_STATE, checked=1, skipped=("b is damaged",)),
        ),
        replicas=(),
        states=(),
        findings=None,
    )
    manifest = AuditManifest(inputs=(), made_ms=0, sources=(source,), rows={})
    show_report(manifest, report, keep=1)
    lines = capsys.readouterr().out.splitlines()
    table = {line.split("  ")[0].strip(): line.split("   ")[-1].strip() for line in lines if "batch" in line}
    assert table == {
        "checksums": "3 violations",
        "offsets": "fine",
        "audit chain": "there are none",
        "replay": "not checked: the files are gone",
        "snapshot = replay": "fine; not checked: b is damaged",
    }
    assert "violation checksums: a.log, byte 61, offset 7, proved by offsets 6, 7" in lines
    assert "    [bold]x\\x1b[2J: corrupt" in lines
    assert "  and 2 more of checksums; --keep shows more, --json all" in lines
    assert lines[-1] == "rules are violated: 3 violations"
