"""Logs of several nodes, made by hand: what may differ, what may not, and which changes of the voters they hold."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from kquorum.raft.voters import ReplicaKey, Voter, VoterSet, voters_record
from kquorum.wire.control_records import encode_control_record
from kquorum.wire.record_batch import write_batch
from kquorum.wire.uuids import uuid_to_text
from tests.jepsen.checkers.replicas import Replicas
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.checkers.voter_logs import VoterLogs
from tests.jepsen.checkers.voters import ADD, REMOVE
from tests.jepsen.core.history import History, Op, OpType
from tests.jepsen.core.members import Members

MEMBERS = Members.of(controllers=3, brokers=0)
# An epoch and a value; each is a batch of one record.
Entry = tuple[int, bytes]
COMMON: Sequence[Entry] = ((1, b"a"), (1, b"b"), (2, b"c"))


def batch(offset: int, epoch: int, value: bytes) -> bytes:
    return write_batch(base_offset=offset, leader_epoch=epoch, timestamp_ms=1000, records=[(None, value)])


class Run:
    """The folder of a run in which every node has the common log, but for what a test writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for node in MEMBERS.all:
            self.write(node, COMMON)

    def log_of(self, node: int) -> Path:
        return self.path / "nodes" / str(node) / "data" / "__cluster_metadata-0" / f"{0:020d}.log"

    def write(self, node: int, entries: Iterable[Entry], *, tail: bytes = b"") -> None:
        log = self.log_of(node)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"".join(batch(at, *entry) for at, entry in enumerate(entries)) + tail)

    def seal(self, node: int, offset: int) -> None:
        (self.log_of(node).parent / f"{offset:020d}-{1:010d}.checkpoint").touch()

    def judged_with(self, f: str, value: object) -> Results:
        history = History([Op(type=OpType.OK, f=f, process=0, value=value)])
        return Replicas(self.path, MEMBERS).check(history)

    def judged(self, *, told: int = 0, disks_were_hurt: bool = False) -> Results:
        value = {"high_watermark": told}
        history = History([Op(type=OpType.OK, f="read", process=0, value=value)])
        return Replicas(self.path, MEMBERS, disks_were_hurt=disks_were_hurt).check(history)


@pytest.fixture
def stored(tmp_path: Path) -> Run:
    return Run(tmp_path)


def only(anomaly: str, results: Results) -> None:
    found = {name for name, value in results.items() if name.endswith("_count") and value}
    assert (found, results[VALID_KEY]) == ({f"{anomaly}_count"}, Verdict.INVALID), results


def test_equal_logs_are_valid_also_if_one_is_shorter(stored: Run) -> None:
    stored.write(3, COMMON[:2])
    results = stored.judged(told=3)
    assert results[VALID_KEY] is Verdict.VALID
    assert (results["agreed_below"], results["ends"]) == (2, {"1": 3, "2": 3, "3": 2})


def test_two_records_of_one_epoch_at_one_offset_conflict(stored: Run) -> None:
    stored.write(3, (*COMMON[:2], (2, b"other")))
    only("conflicts", stored.judged())


def test_an_end_of_an_older_epoch_is_behind_and_valid(stored: Run) -> None:
    stored.write(3, (*COMMON[:2], (1, b"never committed"), (1, b"nor this")))
    results = stored.judged(told=3)
    assert results[VALID_KEY] is Verdict.VALID
    assert {(*each["nodes"], each["offset"]) for each in results["behind"]} == {(1, 3, 2), (2, 3, 2)}


def test_a_fork_below_a_snapshot_of_its_node_is_invalid(stored: Run) -> None:
    stored.write(3, (*COMMON[:2], (1, b"committed by whom?"), (1, b"d")))
    stored.seal(3, 3)
    only("forked_committed", stored.judged())


def test_logs_that_differ_in_the_middle_have_rejoined(stored: Run) -> None:
    stored.write(3, ((1, b"a"), (2, b"x"), (2, b"c")))
    only("rejoined", stored.judged())


@pytest.mark.parametrize(("short", "verdict"), [((3,), Verdict.VALID), ((2, 3), Verdict.INVALID)])
def test_what_was_reported_as_committed_is_held_by_a_majority(
    stored: Run, short: Iterable[int], verdict: Verdict
) -> None:
    for node in short:
        stored.write(node, COMMON[:2])
    results = stored.judged(told=3)
    assert results[VALID_KEY] is verdict
    assert results["lost_count"] == (verdict is Verdict.INVALID)


OBSERVED = ("observe", {"observer": 1, "records": [[1, 1, 5, None], [2, 2, 6, None]]})
WRITTEN = ("write-at", {"controller": 1, "marker": "m", "offset": 2, "epoch": 2})


@pytest.mark.parametrize(("f", "value"), [OBSERVED, WRITTEN])
def test_what_was_shown_or_acknowledged_is_held_by_a_majority_and_in_its_epoch(
    stored: Run, f: str, value: object
) -> None:
    assert stored.judged_with(f, value)[VALID_KEY] is Verdict.VALID
    for node in (2, 3):
        stored.write(node, (*COMMON[:2], (1, b"fork"), (1, b"longer")))
    results = stored.judged_with(f, value)
    assert (results[VALID_KEY], results["lost"][0]["epoch"]) == (Verdict.INVALID, 2)


def test_what_a_snapshot_holds_is_committed_as_well(stored: Run) -> None:
    for node in (2, 3):
        stored.write(node, COMMON[:1])
    stored.seal(1, 3)
    only("lost", stored.judged())


def test_a_flipped_bit_is_damage_unless_disks_were_hurt_on_purpose(stored: Run) -> None:
    log = stored.log_of(2)
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    only("damaged", stored.judged())
    results = stored.judged(disks_were_hurt=True)
    assert results[VALID_KEY] is Verdict.VALID
    assert results["damaged"][0].startswith("node 2: ")


def test_a_torn_end_is_valid_and_reported(stored: Run) -> None:
    stored.write(2, COMMON, tail=batch(3, 2, b"d")[:-3])
    results = stored.judged()
    assert results[VALID_KEY] is Verdict.VALID
    assert len(results["torn"]) == 1


def test_without_any_records_nothing_is_proved(stored: Run) -> None:
    for node in MEMBERS.all:
        stored.write(node, ())
    assert stored.judged()[VALID_KEY] is Verdict.UNKNOWN


# The voters


def text(voter: int) -> str:
    return uuid_to_text(UUID(int=100 + voter))


class VotersRun:
    """Every node has a log of nothing but voters."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ops: list[Op] = []

    def log(self, *sets: set[int]) -> "VotersRun":
        for node in MEMBERS.all:
            folder = self._path / "nodes" / str(node) / "data" / "__cluster_metadata-0"
            folder.mkdir(parents=True)
            (folder / f"{0:020d}.log").write_bytes(b"".join(map(voters_batch, range(len(sets)), sets)))
        return self

    def asked(self, f: str, voter: int, kind: OpType = OpType.OK) -> "VotersRun":
        value = {"voter": voter, "directory": text(voter), "via": 1}
        invoked = Op(type=OpType.INVOKE, f=f, process=len(self._ops), value=value)
        self._ops += [invoked, invoked.ended(kind, value)]
        return self

    def judged(self) -> Results:
        return VoterLogs(self._path, MEMBERS).check(History(self._ops))


def voters_batch(offset: int, voters: set[int]) -> bytes:
    members = VoterSet.of(*(Voter(ReplicaKey(each, UUID(int=100 + each)), ()) for each in sorted(voters)))
    record = encode_control_record(voters_record(members))
    return write_batch(base_offset=offset, leader_epoch=1, timestamp_ms=1000, records=[record], control=True)


def test_changes_in_the_log_as_they_were_acknowledged_are_valid(tmp_path: Path) -> None:
    run = VotersRun(tmp_path).log({1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4}, {2, 3, 4})
    results = run.asked(ADD, 4).asked(REMOVE, 1, OpType.INFO).judged()
    assert results[VALID_KEY] is Verdict.VALID, results
    assert results["changes"] == 2


def test_two_voters_changed_at_once_are_a_leap(tmp_path: Path) -> None:
    run = VotersRun(tmp_path).log({1, 2, 3}, {1, 2, 4}).asked(ADD, 4).asked(REMOVE, 3)
    results = run.judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert [leap["node"] for leap in results["leaps"]] == [1, 2, 3]


def test_an_acknowledged_change_that_the_log_lacks_is_missing(tmp_path: Path) -> None:
    results = VotersRun(tmp_path).log({1, 2, 3}, {1, 2, 3, 4}).asked(ADD, 4).asked(REMOVE, 4).judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["missing"] == [f"remove-voter 4 with directory {text(4)}, 1 times"]


def test_a_change_that_was_refused_or_never_asked_for_is_unasked(tmp_path: Path) -> None:
    run = VotersRun(tmp_path).log({1, 2, 3}, {1, 2, 3, 4}).asked(ADD, 4, OpType.FAIL)
    results = run.judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["unasked"] == [f"add-voter 4 with directory {text(4)}, 1 times"]


def test_a_node_that_came_in_by_a_snapshot_does_not_hide_what_the_others_hold(tmp_path: Path) -> None:
    run = VotersRun(tmp_path).log({1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3})
    folder = tmp_path / "nodes" / "1" / "data" / "__cluster_metadata-0"
    (folder / f"{0:020d}.log").unlink()
    (folder / f"{2:020d}.log").write_bytes(voters_batch(2, {1, 2, 3}) + voters_batch(3, {1, 2, 3}))
    results = run.asked(ADD, 4).asked(REMOVE, 4).judged()
    assert results[VALID_KEY] is Verdict.VALID, results
    assert (results["log"], results["is_from_the_start"]) == (2, True)
