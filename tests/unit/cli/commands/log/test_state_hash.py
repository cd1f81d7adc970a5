"""The states of a quorum's nodes as `quorum status` tells them, and of a log's files."""

import json
from pathlib import Path
from uuid import UUID

import pytest

from kquorum.cli.main import run
from kquorum.metadata.state_hash.comparison import StateAt, StateComparison, annotation_of, reports_message
from kquorum.metadata.state_hash.image_hash import state_hash_text
from kquorum.raft.voters import ReplicaKey
from kquorum.wire.protocol.apis import ApiKey
from kquorum.wire.uuids import uuid_to_text
from tests.support.fake_nodes import fake_node
from tests.support.metadata_folders import END_OFFSET, SECOND, write_folder

LEADER, OTHER, BROKER = (ReplicaKey(number, UUID(int=number + 7)) for number in (1, 2, 101))
HASH = 0xABCDEF << 104


def quorum(annotation: bytes) -> dict[ApiKey, object]:
    def status(key: ReplicaKey) -> dict[str, object]:
        return {
            "replica_id": key.id,
            "replica_directory_id": key.directory_id,
            "log_end_offset": 10,
            "last_fetch_timestamp": 1000,
            "last_caught_up_timestamp": 1000,
        }

    partition = {
        "partition_index": 0,
        "error_code": 0,
        "error_message": None,
        "leader_id": 1,
        "leader_epoch": 4,
        "high_watermark": 10,
        "current_voters": [status(LEADER), status(OTHER)],
        "observers": [status(BROKER)],
    }
    topics = [{"topic_name": "__cluster_metadata", "partitions": [partition]}]
    values = {"error_code": 0, "error_message": None, "topics": topics, "nodes": [], "annotation": annotation}
    return {ApiKey.DESCRIBE_QUORUM: lambda _: values}


def compared(*reports: tuple[ReplicaKey, int, int]) -> bytes:
    comparison = StateComparison(lambda _: None)
    comparison.note_own(0, 9, HASH)
    for replica, offset, state_hash in reports:
        comparison.note_report(0, replica, annotation_of(StateAt(offset, state_hash)))
    return reports_message(comparison).SerializeToString()


def status_of(annotation: bytes, *options: str) -> int:
    with fake_node(quorum(annotation)) as node:  # type: ignore[arg-type]
        return run(["quorum", "status", "--bootstrap-controller", node.address, *options])


def test_equal_states_are_shown_with_their_offset(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(compared((OTHER, 9, HASH), (BROKER, 8, 5))) == 0
    out = capsys.readouterr().out
    assert out.count("abcdef00 at 9") == 2
    assert "00000000 at 8" in out


def test_a_node_that_differs_is_named_and_fails_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(compared((OTHER, 9, HASH), (BROKER, 9, 5))) == 1
    captured = capsys.readouterr()
    assert "DIFFERS" in captured.out
    assert (
        f"node 101 has {state_hash_text(5)} at offset 9, where the leader has {state_hash_text(HASH)}"
        in captured.err
    )
    assert "node 2" not in captured.err


def test_where_most_differ_the_leader_is_suspected(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(compared((OTHER, 9, 5), (BROKER, 9, 5))) == 1
    assert "2 of 2 nodes differ from leader 1, so it may be the wrong one" in capsys.readouterr().err


def test_states_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(compared((OTHER, 9, 5)), "--json") == 1
    voters = {each["replica_id"]: each for each in json.loads(capsys.readouterr().out)["voters"]}
    assert voters[1]["state"]["hash"] == state_hash_text(HASH)
    assert voters[2]["state"]["differs_at"] == 9
    assert voters[2]["directory_id"] == uuid_to_text(OTHER.directory_id)


@pytest.mark.parametrize("annotation", [b"", b"\xff\xff\xff"])
def test_a_controller_of_kafka_tells_of_no_states(
    capsys: pytest.CaptureFixture[str], annotation: bytes
) -> None:
    assert status_of(annotation) == 0
    assert "hash" not in capsys.readouterr().out


def test_the_hash_of_a_log_and_of_an_earlier_offset(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "node")
    capsys.readouterr()
    found = []
    for options in ([], ["--offset", "2"], ["--offset", "2"]):
        assert run(["log", "state-hash", str(folder), "--json", *options]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[1] == found[2]
    assert found[1]["offset"] == 2
    assert found[0]["state_hash"] != found[1]["state_hash"]


def test_an_offset_behind_the_log_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "node")
    assert run(["log", "state-hash", str(folder), "--offset", "99999"]) == 2
    assert "is behind that" in capsys.readouterr().err


def folder_with_snapshot_ahead(root: Path) -> tuple[Path, Path]:
    """As a node leaves it that stopped after it had fetched a snapshot, and before it dropped its log for it; and one
    that has dropped it."""
    whole, behind = write_folder(root / "whole"), write_folder(root / "behind")
    assert run(["snapshot", "take", str(whole), "--committed"]) == 0
    (newest,) = [path for path in whole.glob("*.checkpoint") if path.name.startswith(f"{END_OFFSET:020}")]
    (behind / newest.name).write_bytes(newest.read_bytes())
    for path in behind.glob(f"{SECOND}.*"):
        path.unlink()
    return whole, behind


def test_a_snapshot_ahead_of_the_log_is_where_a_node_begins(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """So it has that state, and not the one at the end of the log that it drops."""
    whole, behind = folder_with_snapshot_ahead(tmp_path)
    capsys.readouterr()
    found = []
    for folder in (whole, behind):
        assert run(["log", "state-hash", str(folder), "--json"]) == 0
        captured = capsys.readouterr()
        found.append(json.loads(captured.out))
        is_reported = (
            "the log ends before it, at offset 100: a node that starts here begins with it" in captured.err
        )
        assert is_reported is (folder == behind)
    assert found[1]["offset"] == found[0]["offset"] == END_OFFSET - 1
    assert found[1]["state_hash"] == found[0]["state_hash"]
    assert run(["log", "state-hash", str(behind), "--json", "--offset", "99"]) == 0
    assert json.loads(capsys.readouterr().out)["offset"] == 99, "the log still says what was before"


def test_a_damaged_snapshot_ahead_of_the_log_is_passed_over(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, behind = folder_with_snapshot_ahead(tmp_path)
    (path,) = [each for each in behind.glob("*.checkpoint") if each.name.startswith(f"{END_OFFSET:020}")]
    path.write_bytes(path.read_bytes()[:-1])
    capsys.readouterr()
    assert run(["log", "state-hash", str(behind), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["offset"] == 99
    assert "is damaged and passed over" in captured.err
