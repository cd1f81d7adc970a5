"""The questions as commands, on a small log with known answers and a topic of a hostile name."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kquorum.cli.main import run
from tests.spark.conftest import Audited
from tests.support.spark.question_log import HOSTILE, NOON_MS
from tests.support.tree import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SHOWN = "[bold]\\x1b[31mred\\u202e"


@pytest.fixture
def ask(shared_session: None, audited: Audited, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs `audit COMMAND AUDIT ... --source questions`; answers the exit status, the output and the complaints."""

    def asked(command: str, *arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = run(["audit", command, str(audited.out), *arguments, "--source", "questions"])
        captured = capsys.readouterr()
        assert captured.out.replace("\n", "").isprintable()
        return status, captured.out, captured.err

    return asked


def test_as_of_tells_who_led_a_partition_at_a_time(ask: Any) -> None:
    about = ("--topic", HOSTILE, "--partition", "1", "--time")
    status, out, _ = ask("as-of", *about, "2026-01-31T12:02:30")
    assert status == 0
    (row,) = (line.split() for line in out.splitlines() if line.split()[1:2] == ["1"])
    assert row[:6] == [SHOWN, "1", "1", "1", "2", "1"]
    assert "questions at offset 12, 2026-01-31T12:02:00.000Z" in out
    status, out, _ = ask("as-of", *about, "2026-01-31T13:01:30+01:00", "--json")
    state = json.loads(out)
    assert [(row["leader"], row["isr"]) for row in state["partitions"]] == [(2, [2, 1])]
    assert state["configs"][0]["value"] == "2"
    assert ask("as-of", *about, "2026-01-31T11:00")[0] == 2


@pytest.mark.slow
def test_as_of_sums_up_what_it_does_not_show(ask: Any, tmp_path: Path) -> None:
    status, out, err = ask("as-of", "--limit", "1")
    assert status == 0
    assert (
        "2 brokers (2 fenced), 1 topic, 2 partitions (2 without leader, 2 under replicated), 1 config" in out
    )
    assert "quorum: controller 2 leads in epoch 3, since offset 19" in out
    assert "... and 1 more of 2; --limit 0 shows all" in out
    status, out, err = ask(
        "as-of", "--offset", "9", "--csv", str(tmp_path), "--parquet", str(tmp_path / "parquet")
    )
    assert (status, out) == (0, "")
    with (tmp_path / "partitions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["topic_name"], row["leader"], row["isr"]) for row in rows] == [
        (HOSTILE, "1", "1 2"),
        (HOSTILE, "2", "2 1"),
    ]
    assert pq.read_table(tmp_path / "parquet" / "brokers").num_rows == 2
    status, _, err = ask("as-of", "--offset", "9", "--parquet", str(tmp_path / "parquet"))
    assert (status, "is there already" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--offset", "24"), "there is no state at offset 24; the log tells of offsets 0 to 23"),
        (("--offset", "-1"), "there is no state at offset -1"),
        (("--topic", "unknown"), "never had a topic unknown"),
        (("--topic", HOSTILE, "--partition", "2"), "never had a partition 2; it had partitions 0 to 1"),
        (("--broker", "9"), "no broker 9 ever registered; those that did: 1, 2"),
        (("--time", "2026-01-31T11:59:59"), "the log begins at offset 0, 2026-01-31T12:00:00.000Z"),
        (("--csv", "-"), "choose one by --table"),
        (("--table", "nothing"), "has no such table"),
    ],
)
def test_what_cannot_be_answered_is_said(ask: Any, arguments: tuple[str, ...], complaint: str) -> None:
    status, out, err = ask("as-of", *arguments)
    assert (status, out) == (2, "")
    assert complaint in err


@pytest.mark.slow
def test_diff_tells_what_changed_and_who_did_it(ask: Any) -> None:
    status, out, _ = ask("diff", "4", "2026-01-31T12:04:30", "--json")
    assert status == 0
    changes = json.loads(out)
    assert changes["summary"] == {
        "brokers": {"restored": 1},
        "topics": {"added": 1},
        "partitions": {"added": 2},
        "configs": {"added": 1},
    }
    assert [row["principal"] for row in changes["topics"]] == ["User:alice"]
    assert [(row["controller_id"], row["principal"]) for row in changes["brokers"]] == [(1, None)]
    status, out, _ = ask("diff", "9", "end")
    assert f"~   {SHOWN}-0" in out
    assert "leader 1 → none, in sync 1 2 → 2" in out
    assert ask("diff", "9", "3")[0] == 2


@pytest.mark.slow
def test_timeline_tells_what_happened_and_why(ask: Any) -> None:
    status, out, _ = ask("timeline", "--topic", HOSTILE, "--partition", "0", "--json")
    assert status == 0
    events = [
        (row["offset"], row["about"], row["what"], row["cause"], row["cause_broker"])
        for row in json.loads(out)["events"]
    ]
    assert events == [
        (6, "topic", "created with 2 partitions of 2 replicas", None, None),
        (7, "partition", "created: leader 1, in sync 1 2 of 1 2", "creation", None),
        (9, "config", "min.insync.replicas = 2", None, None),
        (11, "partition", "in sync 1 2 → 1", "fencing", 2),
        (14, "partition", "in sync 1 → 1 2", "leader_request", 1),
        (17, "partition", "leader 1 → 2, in sync 1 2 → 2", "fencing", 1),
        (22, "partition", "leader 2 → none", "fencing", 2),
    ]
    status, out, _ = ask("timeline", "--broker", "2", "--limit", "3")
    assert "these are the last, before them" in out
    assert "gave up the lead of 2 partitions" in out


@pytest.mark.slow
def test_the_who_column_names_the_principal_or_the_controllers_cause(ask: Any) -> None:
    status, out, err = ask("who", "--topic", HOSTILE, "--until", "2026-01-31T12:03:00", "--csv", "-")
    assert status == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [
        (row["principal"], row["client_address"], row["operator_reason"], row["events"]) for row in rows
    ] == [
        ("User:alice", "10.0.0.7", "for [the] test", "2"),
        ("", "", "", "2"),
    ]
    status, out, err = ask("who", "--topic", HOSTILE)
    assert "User:alice (cli@10.0.0.7)" in out
    assert 'create topic "for [the] test"' in out
    assert "controller 1 (fencing of broker 2)" in out
    assert "no audit notes" not in err
    assert ask("who")[0] == 2


@pytest.mark.slow
def test_unavailable_tells_of_partitions_and_of_the_quorum(ask: Any) -> None:
    status, out, _ = ask("unavailable", "--kind", "under-min-isr", "--min-ms", "1")
    assert status == 0
    assert (
        "under min ISR: 4 intervals of 2 partitions, 2 of them open at the end; the longest 00:06:00" in out
    )
    status, out, err = ask("unavailable", "--quorum", "--min-ms", "120000", "--json")
    (gap,) = json.loads(out)["idle_gaps"]
    assert (gap["kind"], gap["duration_ms"], gap["from_offset"]) == ("new epoch", 300_000, 18)
    assert (gap["from_leader"], gap["to_leader"], gap["epochs_without_records"]) == (1, 2, 1)
    assert "this is inferred" in err


@pytest.mark.slow
def test_churn_counts(ask: Any) -> None:
    status, out, _ = ask("churn", "--json")
    assert status == 0
    answer = json.loads(out)
    assert answer["elections"] == [{"from_ms": NOON_MS, "elections": 2, "epochs": 3, "leaders": [1, 2]}]
    assert [(row["broker_id"], row["fenced"], row["unfenced"]) for row in answer["brokers"]] == [
        (2, 2, 2),
        (1, 1, 1),
    ]
    assert [(row["cause"], row["changes"], row["to_none"]) for row in answer["leader_changes"]] == [
        ("fencing", 5, 2)
    ]
    assert [row["changes"] for row in answer["partitions"]] == [5, 6] or answer["partitions"][0][
        "changes"
    ] >= 5


DUCKDB_QUERIES: list[tuple[str, int, str]] = [
    ("SELECT topic_name, leader FROM partition_history ORDER BY valid_from_offset LIMIT 1", 0, SHOWN),
    ("SELECT leadr FROM partition_history", 2, "there is no column leadr; the nearest are leader"),
    (
        "SELECT * FROM partition_histor",
        2,
        "there is no table partition_histor; there are partition_history",
    ),
    ("SELECT 1 +", 2, "syntax error"),
    ("SELECT offset FROM records", 2, '"offset" and "left" are written in double quotes'),
    ('SELECT min("offset") AS first FROM records', 0, "first"),
    ("SELECT error('told')", 2, "told"),
    ("  ; ", 2, "there is no query in it"),
    ("SELECT 1; SELECT 2", 2, "one query can be asked at a time, and these are 2"),
    ("DROP VIEW records", 2, "only queries can be asked, and drop is none"),
    ("CREATE TABLE t AS SELECT 1", 2, "only queries can be asked, and create is none"),
    ("COPY (SELECT 1) TO 'x.csv'", 2, "only queries can be asked, and copy is none"),
    ("SET threads = 1", 2, "only queries can be asked"),
    ("ATTACH 'x.db'", 2, "only queries can be asked"),
    ("SELECT * FROM read_text('/etc/hostname')", 2, "file system operations are disabled"),
    ("SELECT * FROM '/etc/hostname.csv'", 2, "file system operations are disabled"),
    ("SELECT * FROM query($$COPY (SELECT 1) TO 'x.csv'$$)", 2, "SELECT"),
    ("SELECT (SELECT max(b) FROM (SELECT 1 AS b)) AS a ORDER BY a -- the end", 0, "1"),
    ("DESCRIBE brokers", 0, "broker_id"),
    ("SELECT 1 AS a, 2 AS a", 0, "a_2"),
    ("SELECT count(DISTINCT source) AS logs FROM records", 0, " 1"),
]
SPARK_QUERIES: list[tuple[str, int, str]] = [
    ("SELECT leadr FROM partition_history", 2, "there is no column leadr; the nearest are leader"),
    ("SELECT 1 +", 2, "Syntax error"),
    ("SELECT 1/0", 2, "Division by zero"),
    ("  ; ", 2, "there is no query in it"),
    ("DROP VIEW records", 2, "only queries can be asked"),
    ("WITH a AS (SELECT 1) INSERT INTO brokers SELECT * FROM a", 2, "only queries can be asked"),
    ("EXECUTE IMMEDIATE 'DROP VIEW records'", 2, "only queries can be asked"),
    ("SELECT * FROM (SELECT TRANSFORM(source) USING 'cat' FROM brokers)", 2, "only queries can be asked"),
    ("SELECT (SELECT reflect('java.lang.System', 'exit', 1))", 2, "reaches out"),
    (
        "SELECT IDENTIFIER('reflect')('java.lang.System', 'getProperty', 'user.home')",
        2,
        "IDENTIFIER hides",
    ),
    ("SELECT IDENTIFIER('java_' || 'method')('java.lang.Math', 'abs', 1)", 2, "IDENTIFIER hides"),
    ("CREATE TEMPORARY VIEW IDENTIFIER('records') AS SELECT 1", 2, "IDENTIFIER hides"),
    ("SELECT (SELECT max(b) FROM (SELECT 1 AS b)) AS a ORDER BY a", 0, "1"),
    ("SHOW PARTITIONS records", 2, "only queries can be asked"),
    ("SELECT * FROM parquet.`/tmp`", 2, "there is no table parquet"),
    ("SELECT 1 AS a, 2 AS a", 0, "a_2"),
]


@pytest.mark.parametrize(("query", "status", "told"), DUCKDB_QUERIES)
def test_sql_answers_queries_and_nothing_else(ask: Any, query: str, status: int, told: str) -> None:
    found, out, err = ask("sql", query)
    assert (found, told in out + err) == (status, True), out + err


@pytest.mark.slow
@pytest.mark.parametrize(("query", "status", "told"), SPARK_QUERIES)
def test_sql_in_spark_answers_queries_and_nothing_else(ask: Any, query: str, status: int, told: str) -> None:
    found, out, err = ask("sql", query, "--engine", "spark")
    assert (found, told in out + err) == (status, True), out + err


def test_a_question_to_an_audit_loads_neither_spark_nor_arrow(audited: Audited) -> None:
    probe = (
        "import sys; from kquorum.cli.main import run; status = run(sys.argv[1:]); "
        "print('LOADED', status, *({'pyspark', 'pyarrow', 'pandas', 'prompt_toolkit'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", probe, "audit", "as-of", str(audited.out), "--source", "questions"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED 0", done.stdout[-500:] + done.stderr
