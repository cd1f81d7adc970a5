"""What nodes say of themselves, judged."""

import json
from pathlib import Path

import pytest

from tests.jepsen.checkers.node_logs import STATE_MARKS, NodeLogs
from tests.jepsen.checkers.verdicts import VALID_KEY, Verdict, check_safely
from tests.jepsen.core.cluster import EXITS_FILE, NODES_FOLDER
from tests.jepsen.core.history import History

ROOT = Path(__file__).resolve().parents[3]


def _nodes_folder(folder: Path, log: str, status: int | None) -> Path:
    node = folder / NODES_FOLDER / "1"
    node.mkdir(parents=True)
    (node / "output.log").write_text(log)
    (folder / NODES_FOLDER / EXITS_FILE).write_text(json.dumps({"1": status}))
    return folder


def test_a_traceback_or_an_early_end_of_a_node_is_invalid(tmp_path: Path) -> None:
    well = NodeLogs(_nodes_folder(tmp_path / "well", "ready\n05:48:14 leader in epoch 1: x\n", None))
    failing = NodeLogs(_nodes_folder(tmp_path / "failing", "x\nTraceback (most recent call last):\n", None))
    ended = NodeLogs(_nodes_folder(tmp_path / "ended", "ready\n", 70))
    assert well.check(History())[VALID_KEY] is Verdict.VALID
    assert failing.check(History())["suspicious_lines"][0].startswith("1/output.log:2:")
    assert failing.check(History())[VALID_KEY] is Verdict.INVALID
    assert ended.check(History())["ended_by_themselves"] == {"1": 70}


def test_a_node_whose_disk_was_made_to_fail_may_end_for_that(tmp_path: Path) -> None:
    for status, expected in ((74, Verdict.VALID), (70, Verdict.INVALID)):
        folder = _nodes_folder(tmp_path / str(status), "05:48:14 leader in epoch 1: x\n", status)
        assert NodeLogs(folder, {1}).check(History())[VALID_KEY] is expected
        assert NodeLogs(folder, {2}).check(History())[VALID_KEY] is Verdict.INVALID


CUT_SHORT = (
    "2026-11-22 10:12:08 node 1 CRITICAL raft.adapters.driver: node 1 stops:2026-11-22 10:12:21 node 1 INFO x"
)


def test_a_final_message_lost_to_a_full_disk_is_replaced_by_the_disks_error(tmp_path: Path) -> None:
    folder = _nodes_folder(tmp_path, f"05:48:14 leader in epoch 1: x\n{CUT_SHORT}\n", None)
    assert NodeLogs(folder, {1}).check(History())[VALID_KEY] is Verdict.VALID
    assert NodeLogs(folder).check(History())[VALID_KEY] is Verdict.INVALID


def test_a_fault_of_ours_without_words_is_not_excused_by_a_disk(tmp_path: Path) -> None:
    said = "1 leader in epoch 1: x\n05:48:15 node 1 stops: \nTraceback (most recent call last):\nAssertionError\n"
    folder = _nodes_folder(tmp_path, said, None)
    assert NodeLogs(folder, {1}).check(History())[VALID_KEY] is Verdict.INVALID


def test_no_logs_at_all_make_the_run_unknown(tmp_path: Path) -> None:
    assert check_safely(NodeLogs(tmp_path), History())[VALID_KEY] is Verdict.UNKNOWN


def test_an_epoch_that_two_nodes_led_is_invalid(tmp_path: Path) -> None:
    folder = _nodes_folder(tmp_path, "05:48:14 leader in epoch 1: fetch timeout\n", None)
    other = folder / NODES_FOLDER / "2" / "output.log"
    other.parent.mkdir()
    other.write_text("05:48:20 leader in epoch 2: the leader left\n")
    assert NodeLogs(folder).check(History())[VALID_KEY] is Verdict.VALID
    other.write_text("05:48:20 leader in epoch 1: fetch timeout\n")
    results = NodeLogs(folder).check(History())
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["epochs_led_twice"] == {1: ["1", "2"]}


def test_a_node_that_leads_one_epoch_twice_is_invalid(tmp_path: Path) -> None:
    folder = _nodes_folder(
        tmp_path, "1 leader in epoch 3: x\n2 resigned in epoch 3: x\n3 leader in epoch 4: x\n", None
    )
    assert NodeLogs(folder).check(History())[VALID_KEY] is Verdict.VALID
    with (folder / NODES_FOLDER / "1" / "output.log").open("a") as log:
        log.write("4 leader in epoch 4: after a restart\n")
    results = NodeLogs(folder).check(History())
    assert (results[VALID_KEY], results["epochs_led_twice"]) == (Verdict.INVALID, {4: ["1", "1"]})


def test_nodes_of_which_none_says_that_it_leads_leave_doubt(tmp_path: Path) -> None:
    folder = _nodes_folder(tmp_path, "05:48:14 is now the leader of epoch 1\n", None)
    assert NodeLogs(folder).check(History())[VALID_KEY] is Verdict.UNKNOWN


def test_a_node_may_say_that_its_failing_disk_fails(tmp_path: Path) -> None:
    said = (
        "2026-11-22 06:36:40.001 node 1 INFO leader in epoch 1: x\n"
        "2026-11-22 06:36:46.777 node 1 CRITICAL raft: node 1 stops: cannot flush to stable storage x\n"
        "Traceback (most recent call last):\nOSError: [Errno 5] Input/output error\n"
    )
    folder = _nodes_folder(tmp_path, said, None)
    assert NodeLogs(folder).check(History())["suspicious_line_count"] == 2
    assert NodeLogs(folder, {1}).check(History())[VALID_KEY] is Verdict.VALID
    assert NodeLogs(folder, {2}).check(History())[VALID_KEY] is Verdict.INVALID
    log = folder / NODES_FOLDER / "1" / "output.log"
    log.write_text(
        said + "2026-11-22 06:36:47.000 node 1 ERROR x\nTraceback (most recent call last):\nKeyError: 3\n"
    )
    marks = NodeLogs(folder, {1}).check(History())["suspicious_lines"]
    assert marks == ["1/output.log:6: Traceback (most recent call last):"]


# As the product words them, each in a line of no more than an error.
WRONG_STATE = (
    "STATE DIFFERS: at offset 70 node 2 has made another state of the metadata log than this node 1: its hash is a",
    "a committed record was skipped: offset 7: cannot replay TopicRecord(x): topic 'x' exists already",
    "no snapshots are written from now on, and the log is kept: offset 7: cannot replay a record of 3 bytes: x",
    "applying committed records failed, which is a fault of this program; this node gives up leading",
)


@pytest.mark.parametrize("said", WRONG_STATE)
def test_a_node_whose_state_is_not_that_of_the_others_is_invalid_whatever_its_disk(
    tmp_path: Path, said: str
) -> None:
    first = "2026-11-22 06:36:40.001 node 1 INFO leader in epoch 1: x\n"
    folder = _nodes_folder(tmp_path, f"{first}2026-11-22 06:36:46.777 node 1 ERROR {said}\n", None)
    for failed_disks in ((), (1,)):
        results = NodeLogs(folder, failed_disks).check(History())
        assert results[VALID_KEY] is Verdict.INVALID
        assert [line.split(" ", 1)[0] for line in results["suspicious_lines"]] == ["1/output.log:2:"]


def test_the_marks_are_words_of_the_product() -> None:
    """If its message changed, the checker would no longer find it."""
    sources = ("node/state_watch.py", "broker/state_machine.py", "metadata/adapters/snapshot_manager.py")
    text = "".join((ROOT / each).read_text() for each in (*sources, "node/controller.py"))
    for mark in STATE_MARKS:
        assert mark in text, mark


def test_a_full_disk_only_delays_a_snapshot(tmp_path: Path) -> None:
    said = (
        "2026-11-22 06:36:40.001 node 1 INFO leader in epoch 1: x\n"
        "2026-11-22 06:36:46.777 node 1 WARNING snapshot 0-1.checkpoint could not be written (No space left on "
        "device); nothing of it is left, and it is tried again in 5 s\n"
    )
    assert NodeLogs(_nodes_folder(tmp_path, said, None)).check(History())[VALID_KEY] is Verdict.VALID
