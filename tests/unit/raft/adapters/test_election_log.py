import json
import logging
from pathlib import Path

import pytest

from kquorum.raft.adapters import election_log
from kquorum.raft.adapters.election_log import (
    FILE_NAME,
    OLD_FILE_NAME,
    ElectionEvent,
    ElectionLog,
    read_elections,
)
from kquorum.raft.adapters.file_log import FileLog
from kquorum.raft.ready import RoleChanged

FOLLOWER = RoleChanged("follower", 4, "a peer named the leader of a newer epoch")
PROSPECTIVE = RoleChanged("prospective", 4, "fetch timeout")
CANDIDATE = RoleChanged("candidate", 5, "a majority would vote for it")
LEADER = RoleChanged("leader", 5, "won the election")
RESIGNED = RoleChanged("resigned", 5, "shutdown")


def record(log: ElectionLog, *changes: RoleChanged) -> None:
    for change in changes:
        log.record(1000, 2, change, -1)


def roles(folder: Path) -> list[str]:
    return [event.role for event in read_elections(folder)]


def test_a_candidacy_and_a_leadership_are_noted_from_beginning_to_end(tmp_path: Path) -> None:
    log = ElectionLog(tmp_path)
    record(log, FOLLOWER, PROSPECTIVE, CANDIDATE, LEADER)
    log.record(2000, 2, RESIGNED, 2)
    record(log, RoleChanged("unattached", 6, "resigned, and no other node took over"))
    record(log, RoleChanged("follower", 6, "node 3 named the leader"))
    assert roles(tmp_path) == [
        "follower", "prospective", "candidate", "leader", "resigned", "unattached"
    ]  # fmt: skip
    assert list(read_elections(tmp_path))[4] == ElectionEvent(
        timestamp_ms=2000, node_id=2, epoch=5, role="resigned", cause="shutdown", leader_id=2
    )


def test_following_one_leader_after_the_other_is_no_election_of_this_replica(tmp_path: Path) -> None:
    log = ElectionLog(tmp_path)
    record(log, *(RoleChanged("follower", epoch, "a leader was named") for epoch in range(1, 9)))
    assert [event.epoch for event in read_elections(tmp_path)] == [1], "the first says that the process began"


def test_refused_pre_votes_are_noted_once_and_the_one_that_led_to_something_again(tmp_path: Path) -> None:
    log = ElectionLog(tmp_path)
    record(log, FOLLOWER)
    failed = RoleChanged("unattached", 4, "election timed out")
    again = RoleChanged("prospective", 4, "no leader was heard of")
    record(log, PROSPECTIVE, failed, *(again, failed) * 50)
    assert roles(tmp_path) == ["follower", "prospective", "unattached", "prospective"]
    log.record(7000, 2, again, -1)
    record(log, CANDIDATE)
    events = list(read_elections(tmp_path))
    assert [event.role for event in events[4:]] == ["prospective", "candidate"]
    assert events[4].timestamp_ms == 7000


def test_a_torn_line_is_left_out_and_takes_no_other_with_it(tmp_path: Path) -> None:
    record(ElectionLog(tmp_path), CANDIDATE, LEADER)
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes()[:-20])
    assert roles(tmp_path) == ["candidate"]
    record(ElectionLog(tmp_path), RESIGNED)
    assert roles(tmp_path) == ["candidate", "resigned"]


@pytest.mark.parametrize(
    "line", [b"[]", b"7", b"null", b"{}", b"\xff\xfe", b'{"timestamp_ms": "x"}', b"x" * 1000]
)
def test_lines_of_other_shapes_are_left_out(tmp_path: Path, line: bytes) -> None:
    record(ElectionLog(tmp_path), CANDIDATE)
    path = tmp_path / FILE_NAME
    whole = path.read_bytes()
    wrong_type = json.dumps(json.loads(whole) | {"epoch": "5"}).encode()
    path.write_bytes(line + b"\n" + wrong_type + b"\n" + whole)
    assert roles(tmp_path) == ["candidate"]


def elections(count: int) -> list[RoleChanged]:
    return [RoleChanged("candidate", epoch, "a majority would vote for it") for epoch in range(count)]


def test_the_file_is_rotated_by_lines_and_the_newest_are_kept(tmp_path: Path) -> None:
    log = ElectionLog(tmp_path, limit=10)
    record(log, *elections(35))
    assert [event.epoch for event in read_elections(tmp_path)] == list(range(20, 35))
    record(ElectionLog(tmp_path, limit=10), *elections(6))
    assert len((tmp_path / FILE_NAME).read_bytes().splitlines()) == 1, "what stood there already counts"


def test_the_file_is_rotated_by_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(election_log, "MAX_FILE_BYTES", 1000)
    record(ElectionLog(tmp_path), *elections(100))
    sizes = [(tmp_path / name).stat().st_size for name in (FILE_NAME, OLD_FILE_NAME)]
    assert all(0 < size <= 1000 for size in sizes)
    assert list(read_elections(tmp_path))[-1].epoch == 99


def test_a_disk_that_refuses_a_line_is_logged_and_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = ElectionLog(tmp_path / "absent")
    with caplog.at_level(logging.WARNING):
        record(log, CANDIDATE)
    assert "an election is not recorded" in caplog.text
    assert list(read_elections(tmp_path / "absent")) == []


def test_the_log_beside_it_does_not_mind(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    FileLog(folder).close()
    record(ElectionLog(folder), CANDIDATE, LEADER)
    log = FileLog(folder)
    assert log.summary().log_end_offset == 0
    log.close()
    assert roles(folder) == ["candidate", "leader"]
