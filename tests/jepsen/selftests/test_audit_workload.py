"""The workload audit: its checker finds each way in which tables may tell other than the clients were told."""

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from kquorum.cli.failures import CliError
from tests.jepsen.checkers import audit
from tests.jepsen.checkers.audit import LATER, WHEN, AuditAgrees
from tests.jepsen.checkers.audit_tables import CHANGE, CREATE, DELETE, DESCRIBE, GROW, SET, UNSET
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core import audit_replay
from tests.jepsen.core.audit_replay import AUDIT_FILE, runs_in
from tests.jepsen.core.cluster import NODES_FOLDER
from tests.jepsen.core.generator import Turn
from tests.jepsen.core.history import History, Op, OpType
from tests.jepsen.core.members import Members
from tests.jepsen.core.store import TEST_FILE
from tests.jepsen.workloads.audit import Audit
from tests.jepsen.workloads.workload import Setup

MEMBERS = Members.of(controllers=3, brokers=1)
BROKER = 11
TOPIC, OTHER = "audit-000001", "audit-000002"
RETENTION = "retention.ms"


class ScriptedHistory:
    """What clients did, and the tables of three equal logs that tell of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.history = History()
        self._processes = itertools.count()
        self.logs = [self._log(node) for node in MEMBERS.quorum]
        self.content: dict[str, Any] = {"format": 1, "logs": self.logs, "violations": [], "replicas": []}

    def _log(self, node: int) -> dict[str, Any]:
        names = ("topics", "topics_history", "configs_history", "audit_notes", "damage")
        source = {"source": f"log-{node}", "node": node, "start_offset": 0, "end_offset": 100}
        return source | {name: [] for name in names}

    def op(self, f: str, value: Any, kind: OpType = OpType.OK, *, final: bool = False) -> "ScriptedHistory":
        invoked = Op(
            type=OpType.INVOKE, f=f, value=value, process=next(self._processes), node=BROKER, final=final
        )
        self.history.append(invoked)
        self.history.append(invoked.ended(kind, value))
        return self

    def did(
        self, change: str, topic: str = TOPIC, kind: OpType = OpType.OK, **more: Any
    ) -> "ScriptedHistory":
        return self.op(CHANGE, {"change": change, "topic": topic, **more}, kind)

    def saw(
        self, topics: dict[str, int], configs: dict[str, dict[str, str]] | None = None
    ) -> "ScriptedHistory":
        return self.op(DESCRIBE, {"topics": topics, "configs": configs or {}}, final=True)

    def row(self, table: str, **row: Any) -> "ScriptedHistory":
        for log in self.logs:
            log[table].append(dict(row))
        return self

    def topic(self, offset: int, partitions: int = 1, name: str = TOPIC, **more: Any) -> "ScriptedHistory":
        removed = {"valid_to_offset": None} | more
        self.row("topics", topic_name=name, partitions=partitions, valid_from_offset=offset, **removed)
        return self.row(
            "topics_history",
            topic_name=name,
            change="created",
            partitions=partitions,
            valid_from_offset=offset,
        )

    def config(self, offset: int, value: str, **more: Any) -> "ScriptedHistory":
        ended = {"ended_by": None, "valid_to_offset": None} | more
        return self.row(
            "configs_history",
            resource_name=TOPIC,
            name=RETENTION,
            value=value,
            valid_from_offset=offset,
            **ended,
        )

    def note(self, offset: int, api: str, **more: Any) -> "ScriptedHistory":
        note = {
            "covered_from_offset": offset,
            "covered_to_offset": offset,
            "committed": True,
            "api": api,
            "principal": "User:ANONYMOUS",
            "client_id": "jepsen",
            "reason": f"{TOPIC}, {OTHER}",
        }
        return self.row("audit_notes", **(note | more))

    def judged(self) -> Results:
        (self.folder / AUDIT_FILE).write_text(json.dumps(self.content))
        return AuditAgrees(self.folder, MEMBERS).check(self.history)


@pytest.fixture
def created(tmp_path: Path) -> ScriptedHistory:
    """A topic of two partitions, at offset 10."""
    return ScriptedHistory(tmp_path).did(CREATE, partitions=2).topic(10, 2).note(10, "CREATE_TOPICS")


def a_comparison(**more: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("agreed_below", "committed_below", "majority_below", "not_compared"))
    return nothing | {"violations": [], "lawful": []} | more


def only(anomaly: str, results: Results) -> list[Any]:
    found = {name for name, value in results.items() if name.endswith("_count") and value}
    assert (found, results[VALID_KEY]) == ({f"{anomaly}_count"}, Verdict.INVALID), results
    return cast(list[Any], results[anomaly])


def test_tables_that_tell_what_clients_did_are_valid(created: ScriptedHistory) -> None:
    scripted = created.did(SET, key=RETENTION, value="7").did(UNSET, key=RETENTION).did(GROW, partitions=3)
    scripted.config(12, "7", ended_by="deleted", valid_to_offset=14)
    for offset, api in ((12, "INCREMENTAL_ALTER_CONFIGS"), (14, "INCREMENTAL_ALTER_CONFIGS")):
        scripted.note(offset, api)
    scripted.row(
        "topics_history", topic_name=TOPIC, change="partitions_added", partitions=3, valid_from_offset=16
    ).note(16, "CREATE_PARTITIONS")
    scripted.did(DELETE).note(18, "DELETE_TOPICS")
    for log in scripted.logs:
        log["topics"][0] |= {"valid_to_offset": 18, "partitions": 3}
    results = scripted.saw({}).judged()
    assert results[VALID_KEY] is Verdict.VALID, results
    assert results["acknowledged"] == 5


def test_an_acknowledged_change_that_the_tables_lack_is_missing(created: ScriptedHistory) -> None:
    results = created.did(SET, key=RETENTION, value="7").saw({TOPIC: 2}).judged()
    assert only("missing", results) == [(SET, TOPIC, RETENTION, "7")]


def test_a_failed_change_in_the_tables_is_found(created: ScriptedHistory) -> None:
    scripted = created.did(CREATE, OTHER, OpType.FAIL, partitions=1).topic(20, name=OTHER)
    assert only("failed_but_there", scripted.saw({TOPIC: 2, OTHER: 1}).judged()) == [(CREATE, OTHER, "1")]


def test_a_change_that_was_not_requested_is_found(created: ScriptedHistory) -> None:
    assert only("unasked", created.topic(20, name=OTHER).saw({TOPIC: 2, OTHER: 1}).judged()) == [
        (CREATE, OTHER, "1")
    ]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_change_in_doubt_may_be_there_or_not(created: ScriptedHistory, is_there: bool) -> None:
    created.did(CREATE, OTHER, OpType.INFO, partitions=1)
    if is_there:
        created.topic(20, name=OTHER)
    assert created.saw({TOPIC: 2}).judged()[VALID_KEY] is Verdict.VALID


def test_changes_of_a_topic_in_another_order_are_found(created: ScriptedHistory) -> None:
    scripted = created.did(SET, key=RETENTION, value="7").config(5, "7").note(5, "INCREMENTAL_ALTER_CONFIGS")
    (found,) = only("out_of_order", scripted.saw({TOPIC: 2}, {TOPIC: {RETENTION: "7"}}).judged())
    assert (found["offset"], found["behind"]) == (5, 10)


@pytest.mark.parametrize(
    "wrong",
    [
        {"covered_to_offset": 9},
        {"committed": False},
        {"api": "DELETE_TOPICS"},
        {"principal": "User:mallory"},
        {"client_id": "another"},
        {"reason": "create topics: another"},
    ],
)
def test_a_change_whose_note_does_not_name_it_is_without_note(tmp_path: Path, wrong: dict[str, Any]) -> None:
    scripted = ScriptedHistory(tmp_path).did(CREATE, partitions=2).topic(10, 2)
    scripted.note(10, **({"api": "CREATE_TOPICS"} | wrong))
    (found,) = only("without_note", scripted.saw({TOPIC: 2}).judged())
    assert found["change"] == (CREATE, TOPIC, "2")


@pytest.mark.parametrize(
    ("topics", "configs"), [({}, {}), ({TOPIC: 3}, {}), ({TOPIC: 2}, {TOPIC: {RETENTION: "9"}})]
)
def test_a_state_other_than_the_last_reads_showed_is_found(
    created: ScriptedHistory, topics: dict[str, int], configs: dict[str, dict[str, str]]
) -> None:
    (found,) = only("state_differs", created.saw(topics, configs).judged())
    assert (found["topic"], found["node"]) == (TOPIC, BROKER)


def test_logs_that_tell_of_different_changes_are_found(created: ScriptedHistory) -> None:
    created.logs[0]["end_offset"] = 200  # it is the one that the others are held against
    for log in created.logs[2:]:
        log["topics"].clear()
        log["topics_history"].clear()
    found = only("logs_differ", created.saw({TOPIC: 2}).judged())
    assert [each["log"] for each in found] == ["log-1", "log-2"]


def test_a_log_that_begins_with_a_snapshot_is_not_the_one_to_judge_by(created: ScriptedHistory) -> None:
    newcomer = created.logs[0]
    newcomer |= {"start_offset": 50, "end_offset": 101}
    for table in ("topics", "topics_history", "audit_notes"):
        newcomer[table] = []
    created.content["replicas"].append(a_comparison(majority_below=100))
    results = created.saw({TOPIC: 2}).judged()
    assert results[VALID_KEY] is Verdict.VALID, results
    assert results["judged_by"] == "log-2"


def test_a_log_that_fell_behind_is_not_the_one_to_judge_by(created: ScriptedHistory) -> None:
    for log in created.logs[1:]:
        log |= {"start_offset": 5}
    created.logs[0] |= {"end_offset": 7, "topics": [], "topics_history": []}
    created.content["replicas"].append(a_comparison(majority_below=100))
    results = created.saw({TOPIC: 2}).judged()
    assert (results[VALID_KEY], results["judged_by"]) == (Verdict.UNKNOWN, "log-2")


def test_violations_of_the_audit_count_unless_their_log_is_damaged(created: ScriptedHistory) -> None:
    created.content["violations"].append({"source": "log-3", "check": "checksums", "reason": "flipped"})
    created.saw({TOPIC: 2})
    assert only("violations", created.judged())[0]["source"] == "log-3"
    created.logs[2]["damage"].append({"file": "0.log", "position": 1, "offset": 2, "reason": "flipped"})
    results = created.judged()
    assert results[VALID_KEY] is Verdict.VALID
    assert results["damaged_logs"] == ["log-3"]


def test_a_difference_between_replicas_is_a_violation(created: ScriptedHistory) -> None:
    created.content["replicas"].append(a_comparison(violations=[{"reason": "they differ"}]))
    assert only("violations", created.saw({TOPIC: 2}).judged()) == [{"reason": "they differ"}]


def test_without_final_reads_or_sound_logs_nothing_is_proved(created: ScriptedHistory) -> None:
    assert created.judged()[VALID_KEY] is Verdict.UNKNOWN
    created.saw({TOPIC: 2})
    for log in created.logs:
        log["damage"].append({"file": "0.log", "position": 1, "offset": 2, "reason": "flipped"})
    assert created.judged()["left_out"] == "every log is damaged"


def test_without_spark_the_checker_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_java(_: Any) -> dict[Path, str]:
        raise CliError("no Java found")

    monkeypatch.setattr(audit, "replay", no_java)
    monkeypatch.delenv(WHEN, raising=False)
    results = AuditAgrees(tmp_path, MEMBERS).check(History())
    assert results == {VALID_KEY: Verdict.UNKNOWN, "left_out": "no Java found"}
    monkeypatch.setenv(WHEN, LATER)
    assert "audit_replay" in AuditAgrees(tmp_path, MEMBERS).check(History())["left_out"]


# The replay


def a_run(folder: Path) -> Path:
    (folder / NODES_FOLDER).mkdir(parents=True)
    (folder / TEST_FILE).write_text("{}")
    return folder


def test_runs_are_found_by_themselves_and_in_stores(tmp_path: Path) -> None:
    alone = a_run(tmp_path / "alone")
    stored = a_run(tmp_path / "store" / "audit" / "20260101T000000.000Z")
    (tmp_path / "store" / "audit" / "20260101T000001.000Z").mkdir()
    assert runs_in([alone, tmp_path / "store", tmp_path / "nothing"]) == [alone, stored]


def test_a_path_without_a_run_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["audit_replay", str(tmp_path)])
    assert audit_replay.main() == 2
    assert capsys.readouterr().err == f"no run in {tmp_path}\n"


# The clients


def operations(count: int) -> Iterator[tuple[Audit, Op]]:
    """What the workload asks for while all is acknowledged at once but for every seventh, which is in doubt."""
    setup = Setup(
        network=cast(Any, None),
        cluster=cast(Any, None),
        members=MEMBERS,
        random_source=Random(1),
        rate=1.0,
        concurrency=2,
        op_timeout_s=1.0,
    )
    workload = Audit(setup)
    for number in range(count):
        op = workload._any(Turn(number, 0, BROKER))
        yield workload, op
        workload._hear(op)
        workload._hear(op.ended(OpType.INFO if number % 7 == 0 else OpType.OK, op.value))


def test_no_client_touches_a_topic_whose_state_is_in_doubt_or_gone() -> None:
    changes = [op for _, op in operations(700) if op.f == CHANGE]
    assert {op.value["change"] for op in changes} == {CREATE, GROW, SET, UNSET, DELETE}
    untouchable = set[str]()
    for place, (_, op) in enumerate(operations(700)):
        if op.f == CHANGE and "replicas" not in op.value:
            assert op.value["topic"] not in untouchable
            if place % 7 == 0 or op.value["change"] == DELETE:
                untouchable.add(op.value["topic"])


def test_values_of_configs_and_names_of_topics_are_given_once() -> None:
    changes = [op.value for _, op in operations(700) if op.f == CHANGE]
    values = [value["value"] for value in changes if value["change"] == SET]
    topics = [value["topic"] for value in changes if value["change"] == CREATE]
    assert len(set(values)) == len(values) > 50
    assert len(set(topics)) == len(topics) > 50
