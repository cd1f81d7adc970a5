"""What the last leader tells of the voters, beside the log."""

import itertools
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kquorum.raft.adapters.file_log import FOLDER_NAME
from kquorum.raft.voters import ReplicaKey, Voter, VoterSet, voters_record
from kquorum.wire.control_records import encode_control_record
from kquorum.wire.record_batch import write_batch
from kquorum.wire.uuids import uuid_to_text
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.checkers.voter_logs import VoterLogs
from tests.jepsen.checkers.voters import ADD, READ, REMOVE
from tests.jepsen.selftests.scripted_voters import MEMBERS, ScriptedHistory

# Added to a voter's id.
ANOTHER_DISK = 10


def disk(voter: int) -> UUID:
    return UUID(int=100 + voter)


def voters_batch(offset: int, voters: set[int]) -> bytes:
    members = VoterSet.of(*(Voter(ReplicaKey(each, disk(each)), ()) for each in sorted(voters)))
    record = encode_control_record(voters_record(members))
    return write_batch(base_offset=offset, leader_epoch=1, timestamp_ms=1000, records=[record], control=True)


def told_at_the_end(path: Path, sets: list[set[int]], told: set[int], log_end: int | None) -> Results:
    """Every node's log has these sets, a record each; in the end the leader, whose log ended there, tells another."""
    for node in MEMBERS.all:
        folder = path / "nodes" / str(node) / "data" / FOLDER_NAME
        folder.mkdir(parents=True)
        (folder / f"{0:020d}.log").write_bytes(b"".join(map(voters_batch, itertools.count(), sets)))
    scripted = ScriptedHistory()
    for before, after in itertools.pairwise(sets):
        for f, voters in ((ADD, after - before), (REMOVE, before - after)):
            for voter in voters:
                scripted.end(scripted.asked(f, voter, on=uuid_to_text(disk(voter))))
    for node in MEMBERS.quorum:
        value: dict[str, Any] = {"leader": 1, "epoch": 1}
        if node == 1:
            value["voters"] = {str(voter % ANOTHER_DISK): uuid_to_text(disk(voter)) for voter in told}
            value |= {} if log_end is None else {"ends": {"1": log_end, "2": 1}}
        scripted.end(scripted.invoke(READ, node=node, final=True), value)
    return VoterLogs(path, MEMBERS).check(scripted.history)


SETS = [{1, 2, 3}, {1, 2, 3, 4}, {1, 2, 4}]


@pytest.mark.parametrize(
    ("told", "log_end"),
    [
        # The second was told before the last change, the third by a leader that knows more than any log.
        ({1, 2, 4}, 3),
        ({1, 2, 3, 4}, 2),
        ({1, 2}, 4),
        # Older histories do not say how far the leader's log went.
        ({1, 2, 3}, None),
    ],
)
def test_the_last_leader_tells_the_voters_of_the_log_as_far_as_it_knew_it(
    tmp_path: Path, told: set[int], log_end: int | None
) -> None:
    results = told_at_the_end(tmp_path, SETS, told, log_end)
    assert results[VALID_KEY] is Verdict.VALID, results


@pytest.mark.parametrize(
    ("told", "log_end"),
    [({1, 2, 3, 4}, 3), ({1, 2, 4}, 2), ({1, 2}, 3), ({1, 2, 4 + ANOTHER_DISK}, 3)],
)
def test_voters_of_the_last_leader_that_are_missing_in_the_log_are_invalid(
    tmp_path: Path, told: set[int], log_end: int
) -> None:
    results = told_at_the_end(tmp_path, SETS, told, log_end)
    assert results[VALID_KEY] is Verdict.INVALID
    (found,) = results["untrue"]
    assert (found["leader"], found["offset"]) == (1, log_end - 1)
    assert {voter for voter, _ in found["told"]} == {voter % ANOTHER_DISK for voter in told}
    assert {voter for voter, _ in found["in_the_log"]} == SETS[log_end - 1]
