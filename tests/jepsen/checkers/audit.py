"""Judges whether the audit of the logs, made by Spark, tells what the clients were told: see `AuditAgrees`."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kquorum.cli.failures import CliError
from tests.jepsen.checkers.audit_tables import (
    CREATE,
    DELETE,
    DESCRIBE,
    GROW,
    SET,
    UNSET,
    AuditedLog,
    Effect,
    effects_asked,
)
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.audit_replay import AUDIT_FILE, replay
from tests.jepsen.core.client import CLIENT_ID
from tests.jepsen.core.history import History, Operation, OpType
from tests.jepsen.core.members import Members

WHEN = "KQUORUM_JEPSEN_AUDIT"
LATER = "later"
_PRINCIPAL = "User:ANONYMOUS"
_APIS: Final = {
    CREATE: "CREATE_TOPICS",
    GROW: "CREATE_PARTITIONS",
    SET: "INCREMENTAL_ALTER_CONFIGS",
    UNSET: "INCREMENTAL_ALTER_CONFIGS",
    DELETE: "DELETE_TOPICS",
}
_SHOWN_MAX = 50


class AuditAgrees:
    """The rules, for the best log of a controller that nothing is damaged in (see `_best`):

    - Each acknowledged change is in the tables: else it is **missing**. No change that failed is there (**failed, but
      there**), nor one that no client asked for (**unasked**). Those of a topic are in the order in which they were
      acknowledged: else they are **out of order**.
    - The records of an acknowledged change are covered by an audit note that names its API, principal and client id:
      else it is **without note**.
    - What is left at the end of the log is what the last reads of all brokers showed: else the **state differs**.
      Topics with a change in doubt are left out of this.
    - Other undamaged logs tell the same, as far as they reach: else **logs differ**. `audit check` finds no violation
      in undamaged logs, nor between replicas: else **violations**.

    Spark is asked if the run has no `audit.json` yet; not with the variable KQUORUM_JEPSEN_AUDIT=later, which leaves
    that to `python -m tests.jepsen.core.audit_replay`. Without an audit nothing is known.
    """

    name = "audit"

    def __init__(self, folder: Path, members: Members) -> None:
        self._folder = folder
        self._members = members

    def check(self, history: History) -> Results:
        try:
            content = self._audit()
        except CliError as error:
            return {VALID_KEY: Verdict.UNKNOWN, "left_out": str(error)}
        logs = [AuditedLog(each) for each in content["logs"]]
        sound = [log for log in logs if not log.damage]
        facts: Results = {
            "logs": {log.source: {"node": log.node, "start": log.start, "end": log.end} for log in logs},
            "damaged_logs": [log.source for log in logs if log.damage],
            "replicas": [_without_findings(each) for each in content["replicas"]],
        }
        if not sound:
            return {VALID_KEY: Verdict.UNKNOWN, "left_out": "every log is damaged", **facts}
        judge = _Judge(_best(sound, content), history.operations())
        violations: dict[str, list[Any]] = {
            **judge.violations(),
            "state_differs": list(judge.state_differs()),
            "logs_differ": list(_logs_differ(sound)),
            "violations": [*_violations_of(content, sound)],
        }
        silent = [node for node in self._members.brokers if node not in judge.last_views]
        doubt = bool(silent) or not judge.is_from_the_start or not judge.acknowledged
        passed = Verdict.UNKNOWN if doubt else Verdict.VALID
        return {
            VALID_KEY: Verdict.INVALID if any(violations.values()) else passed,
            "acknowledged": len(judge.acknowledged),
            "judged_by": judge.log.source,
            "is_from_the_start": judge.is_from_the_start,
            **{f"{name}_count": len(found) for name, found in violations.items()},
            **{name: found[:_SHOWN_MAX] for name, found in violations.items()},
            "repeated": judge.repeated(),
            "brokers_without_final_read": silent,
            **facts,
        }

    def _audit(self) -> Mapping[str, Any]:
        """Raises CliError."""
        path = self._folder / AUDIT_FILE
        if not path.exists():
            if os.environ.get(WHEN) == LATER:
                raise CliError(
                    f"Spark was not asked ({WHEN}={LATER}); python -m tests.jepsen.core.audit_replay"
                )
            if failed := replay([self._folder]):
                raise CliError(f"the logs could not be audited: {failed[self._folder]}")
        found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found


class _Judge:
    """Holds one log against the history. Where the log was cut below a snapshot, only what is left is judged."""

    def __init__(self, log: AuditedLog, operations: Sequence[Operation]) -> None:
        self.log = log
        self.is_from_the_start = log.start == 0
        asked = effects_asked(operations)
        self.acknowledged = [(effect, each) for effect, each in asked if each.is_ok]
        self._possible = {effect for effect, each in asked if each.kind is not OpType.FAIL}
        self._failed = {effect for effect, each in asked if each.kind is OpType.FAIL} - self._possible
        self._doubtful = {each.invoke.value["topic"] for _, each in asked if each.kind is OpType.INFO}
        self.last_views = {
            each.invoke.node: each
            for each in operations
            if each.invoke.f == DESCRIBE and each.invoke.final and each.is_ok
        }

    def violations(self) -> dict[str, list[Any]]:
        there = self.log.effects
        missing = [effect for effect, _ in self.acknowledged if effect not in there]
        return {
            "missing": missing if self.is_from_the_start else [],
            "failed_but_there": sorted(self._failed & there.keys()),
            "unasked": sorted(there.keys() - self._possible - self._failed),
            "out_of_order": list(self._out_of_order()),
            "without_note": list(self._without_note()),
        }

    def repeated(self) -> list[Effect]:
        return sorted(effect for effect, offsets in self.log.effects.items() if len(offsets) > 1)

    def state_differs(self) -> Iterator[Results]:
        """Offset by offset nothing can be compared with a read; the last ones were made when all was done."""
        ours = self._settled(self.log.state())
        for node, view in self.last_views.items():
            theirs = self._settled(view.value)
            for what in ("topics", "configs"):
                for topic in sorted(ours[what].keys() | theirs[what].keys()):
                    audited, shown = ours[what].get(topic), theirs[what].get(topic)
                    if audited != shown:
                        yield {"topic": topic, "of": what, "audited": audited, "shown": shown, "node": node}

    def _settled(self, state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        return {
            what: {topic: value for topic, value in state[what].items() if topic not in self._doubtful}
            for what in ("topics", "configs")
        }

    def _out_of_order(self) -> Iterator[Results]:
        last: dict[str, int] = {}
        for effect, each in self.acknowledged:
            offsets, topic = self.log.effects.get(effect, []), effect[1]
            if not offsets:
                continue
            if offsets[-1] < last.get(topic, -1):
                yield {
                    "change": effect,
                    "offset": offsets[-1],
                    "behind": last[topic],
                    "index": each.invoke.index,
                }
            last[topic] = offsets[0]

    def _without_note(self) -> Iterator[Results]:
        for effect, _ in self.acknowledged:
            offsets = [offset for offset in self.log.effects.get(effect, []) if offset >= self.log.start]
            if not offsets:
                continue
            found = [self.log.note_for(offset) for offset in offsets]
            if not any(note is not None and _fits(note, effect) for note in found):
                yield {"change": effect, "offset": offsets[0], "note": found[0]}


def _best(logs: Sequence[AuditedLog], content: Mapping[str, Any]) -> AuditedLog:
    """A log that begins with the first record and reaches as far as a majority, if there is one: a node that came in by
    a snapshot has no records from before."""
    marks = [report["majority_below"] or 0 for report in content["replicas"]]
    return max(logs, key=lambda log: (log.start == 0 and log.end >= max(marks, default=0), log.end))


def _fits(note: Mapping[str, Any], effect: Effect) -> bool:
    told = (note["api"], note["principal"], note["client_id"])
    return told == (_APIS[effect[0]], _PRINCIPAL, CLIENT_ID) and effect[1] in note["reason"]


def _logs_differ(logs: Sequence[AuditedLog]) -> Iterator[Results]:
    """Changes that one log has and another one lacks, where both have records."""
    first, last = max(log.start for log in logs), min(log.end for log in logs)

    def within(log: AuditedLog) -> set[tuple[Effect, int]]:
        return {
            (effect, offset)
            for effect, offsets in log.effects.items()
            for offset in offsets
            if first <= offset < last
        }

    everywhere = set[tuple[Effect, int]].intersection(*map(within, logs))
    for log in logs:
        for effect, offset in sorted(within(log) - everywhere):
            yield {"log": log.source, "change": effect, "offset": offset}


def _violations_of(content: Mapping[str, Any], sound: Sequence[AuditedLog]) -> Iterator[Results]:
    """Of the checks those of undamaged logs: what is damaged breaks rules lawfully."""
    sources = {log.source for log in sound}
    for found in content["violations"]:
        if found["source"] in sources:
            yield found
    for report in content["replicas"]:
        yield from report["violations"]


def _without_findings(report: Mapping[str, Any]) -> Results:
    return {
        **{
            name: report[name]
            for name in ("agreed_below", "committed_below", "majority_below", "not_compared")
        },
        "lawful": [each["reason"] for each in report["lawful"]],
    }
